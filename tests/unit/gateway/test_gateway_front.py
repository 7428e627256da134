"""The listening side: callers, TLS, bounds, malformed HTTP, readiness, metrics."""

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
import trustme

from gateway_inputs import GOOD, MODEL, QUICK, Rig, on_loop, rig, say, until
from gateway_strain import WHOLE, raw, survives_malformed_http
from headrace.dataplane.settings import DataPlaneSettings, FallbackEngine
from headrace.infra.gateway.settings import EngineAccess, GatewaySettings, TrustSettings
from headrace.infra.gateway_engine.behaviour import constant
from headrace.schemas.errors import InvalidInputError

CHAT: dict[str, Any] = {"model": MODEL, "messages": say()}
CHAT_PATH = "/v1/chat/completions"


async def post(r: Rig, document: object = None, path: str = CHAT_PATH, **more: Any) -> tuple[int, dict[str, Any], Any]:  # noqa: ANN401 - aiohttp's options
    """Ask once; gives status, headers (lower case) and document."""
    async with (
        aiohttp.ClientSession() as client,
        client.post(r.url + path, json=CHAT if document is None and "data" not in more else document, **more) as answer,
    ):
        document = await answer.json() if answer.content_type == "application/json" else await answer.text()
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, document


async def get(r: Rig, path: str, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(r.url + path, headers=headers) as answer:
        return answer.status, await answer.text()


def test_only_known_callers_where_there_is_a_file_of_them(tmp_path: Path) -> None:
    callers = tmp_path / "callers"
    callers.write_text("search sk-search-1\n")

    async def test() -> None:
        async with rig(1, replace(QUICK, bearer_file=str(callers))) as r:
            async with r.client(api_key="sk-search-1") as client:
                await client.chat.completions.create(**CHAT)
                assert [model.id async for model in client.models.list()] == [MODEL]
                assert (await client.models.retrieve(MODEL)).id == MODEL
            # The caller's credential is ours: no engine gets it.
            assert "Authorization" not in r.engines["e1"].asked[-1]
            async with r.client(api_key="sk-search-2") as client:
                with pytest.raises(openai.AuthenticationError) as raised:
                    await client.chat.completions.create(**CHAT)
                assert raised.value.response.headers["www-authenticate"] == "Bearer"
                with pytest.raises(openai.AuthenticationError):
                    await client.models.list()
                with pytest.raises(openai.AuthenticationError):
                    await client.models.retrieve(MODEL)
            assert (await get(r, "/healthz"))[0] == 200
            assert (await get(r, "/readyz"))[0] == 200
            assert (await get(r, "/metrics"))[0] == 401
            assert (await get(r, "/metrics", Authorization="Bearer sk-search-1"))[0] == 200
            assert r.engines["e1"].requests == 1

    on_loop(test)


def test_tls_in_front_and_to_engines_with_each_ones_own_credential(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    files = {name: str(tmp_path / name) for name in ("ca", "chain", "key")}
    authority.cert_pem.write_to_path(files["ca"])
    certificate.private_key_and_cert_chain_pem.write_to_path(files["chain"])
    (tmp_path / "key").write_text("sk-engine\n")
    of_engine = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(of_engine)
    settings = replace(
        QUICK,
        tls_certificate_file=files["chain"],
        engine_ca_file=files["ca"],
        engines={"*": EngineAccess(auth_file=files["key"])},
    )

    async def test() -> None:
        async with rig(1, settings, tls=of_engine, credential="Bearer sk-engine") as r:
            assert r.url.startswith("https")
            assert r.engines["e1"].url.startswith("https")
            checked = openai.DefaultAsyncHttpxClient(verify=ssl.create_default_context(cafile=files["ca"]))
            async with r.client(http_client=checked) as client:
                stream = await client.chat.completions.create(**CHAT, stream=True)
                assert len([chunk async for chunk in stream]) == 18
            async with r.client() as client:
                with pytest.raises(openai.APIConnectionError):  # the system does not know who signed this
                    await client.chat.completions.create(**CHAT)

    on_loop(test)


def test_an_engine_whose_certificate_nobody_vouches_for_gets_nothing() -> None:
    of_engine = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(of_engine)

    async def test() -> None:
        async with rig(1, tls=of_engine) as r:
            assert (await post(r))[0] == 502
            assert r.engines["e1"].requests == 0

    on_loop(test)


def test_tls_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")

    async def enter(settings: GatewaySettings) -> None:
        async with rig(1, settings):
            pass

    for name in ("tls_certificate_file", "engine_ca_file", "bearer_file"):
        with pytest.raises(InvalidInputError, match=name):
            on_loop(lambda name=name: enter(replace(QUICK, **{name: missing})))
    with pytest.raises(InvalidInputError, match=r"trust\.secret_file"):
        on_loop(lambda: enter(replace(QUICK, trust=TrustSettings(secret_file=missing))))


def test_a_taken_port_is_an_error_with_the_address() -> None:
    async def test() -> None:
        async with rig(1) as r:
            with pytest.raises(InvalidInputError, match=f"127.0.0.1:{r.gateway.port}"):
                async with rig(1, replace(QUICK, port=r.gateway.port)):
                    pass

    on_loop(test)


def test_a_body_above_the_bound_is_refused_whether_or_not_it_says_so() -> None:
    async def test() -> None:
        async with rig(1, replace(QUICK, max_body_bytes=2_000)) as r:
            large = {**CHAT, "messages": say("x" * 3_000)}
            assert (await post(r, large))[0] == 413

            async def pieces() -> Any:  # noqa: ANN401 - an async generator
                for _ in range(30):
                    yield b"x" * 100

            status, _, document = await post(r, data=pieces())
            assert (status, document["error"]["code"]) == (413, "body_too_large")
            assert r.engines["e1"].requests == 0
            assert r.gateway.admission.bodies.reserved == 0

    on_loop(test)


def test_a_body_that_is_no_gzip_is_the_clients_error_and_nobody_elses(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with rig() as r:
            answer = await raw(r, WHOLE.replace(b"Content-Type", b"Content-Encoding: gzip\r\nX"))
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert b"invalid_request" in answer
            assert r.metric("turned_away_total", cause="invalid_request") == 1

    on_loop(test)
    assert not caplog.records


def test_bodies_together_are_bounded() -> None:
    async def test() -> None:
        slow = replace(GOOD, pace=constant(0.5))
        settings = replace(QUICK, max_body_bytes=20_000, max_buffered_bytes=30_000)
        async with rig({"e1": slow}, settings) as r:
            large = {**CHAT, "messages": say("x" * 19_000)}
            statuses = [answer[0] for answer in await asyncio.gather(*(post(r, large) for _ in range(3)))]
            assert sorted(statuses) == [200, 503, 503]
            assert r.gateway.admission.bodies.reserved == 0

    on_loop(test)


def test_requests_in_flight_are_bounded_and_the_rest_told_when_to_come_back() -> None:
    async def test() -> None:
        slow = replace(GOOD, pace=constant(0.3))
        async with rig({"e1": slow}, replace(QUICK, max_in_flight=2)) as r:
            answers = await asyncio.gather(*(post(r) for _ in range(5)))
            assert sorted(status for status, _, _ in answers) == [200, 200, 503, 503, 503]
            refused = next(headers for status, headers, _ in answers if status == 503)
            assert refused["retry-after"] == "1"
            assert r.metric("turned_away_total", cause="gateway_overloaded") == 3
            assert r.gateway.admission.in_flight == 0

    on_loop(test)


def test_connections_are_bounded_and_the_rest_told_so() -> None:
    async def test() -> None:
        async with rig(1, replace(QUICK, max_connections=2)) as r:
            idle = [await asyncio.open_connection("127.0.0.1", r.gateway.port) for _ in range(2)]
            await until(lambda: r.metric("connections") == 2)
            assert (await raw(r, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 503 ")
            for _, writer in idle:
                writer.close()
            await until(lambda: r.metric("connections") == 0)
            assert (await get(r, "/healthz"))[0] == 200

    on_loop(test)


@pytest.mark.parametrize("sent", [b"", b"POST ", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-"])
def test_a_head_that_never_comes_whole_is_not_waited_for(sent: bytes) -> None:
    async def test() -> None:
        async with rig(1, replace(QUICK, head_s=0.2)) as r:
            await raw(r, sent)
            assert r.metric("connections") == 0

    on_loop(test)


def test_a_body_that_never_comes_whole_is_not_waited_for() -> None:
    async def test() -> None:
        async with rig(1, replace(QUICK, body_s=0.2)) as r:
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
            assert b" 408 " in await raw(r, head)
            assert r.gateway.admission.in_flight == 0

    on_loop(test)


def test_an_idle_connection_is_closed_and_a_used_one_is_not() -> None:
    async def test() -> None:
        async with rig({"e1": replace(GOOD, pace=constant(0.6))}, replace(QUICK, keepalive_s=0.3, head_s=0.3)) as r:
            body = b'{"model":"m","messages":[]}'
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
            answer = await raw(r, head + body)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert answer.endswith(b"}")
            assert r.metric("connections") == 0

    on_loop(test)


def test_headers_are_bounded() -> None:
    async def test() -> None:
        async with rig(1, replace(QUICK, max_header_bytes=2_048, max_headers=20)) as r:
            many = b"".join(b"X-%d: 1\r\n" % i for i in range(40))
            for extra in (b"X: " + b"x" * 4_000 + b"\r\n", many):
                answer = await raw(r, b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + extra + b"\r\n")
                assert answer.startswith(b"HTTP/1.0 400 ")
                assert b"malformed_http" in answer
            assert (await get(r, "/healthz", X="x" * 1_000))[0] == 200

    on_loop(test)


def test_tier_and_class_are_believed_from_whom_the_rule_says(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("edge-secret\n")

    async def test() -> None:
        trust = TrustSettings(secret_file=str(secret))
        async with rig(1, replace(QUICK, trust=trust)) as r:
            wanted = {"x-headrace-class": "batch"}
            assert (await post(r, headers=wanted))[0] == 200
            assert (await post(r, headers=wanted | {"x-headrace-trust": "wrong"}))[0] == 200
            status, _, document = await post(r, headers=wanted | {"x-headrace-trust": "edge-secret"})
            assert (status, document["error"]["code"]) == (404, "model_not_found")  # there is no class `batch`
            assert not any("headrace" in name.lower() for asked in r.engines["e1"].asked for name in asked)

    on_loop(test)


def test_other_paths_and_methods_are_errors_of_the_same_shape() -> None:
    async def test() -> None:
        async with rig(1) as r:
            status, headers, document = await post(r, path="/v1/nothing")
            assert (status, document["error"]["code"]) == (404, "not_found")
            assert headers["server"] == "headrace"
            status, headers, document = await post(r, path="/v1/models")
            assert (status, headers["allow"], document["error"]["code"]) == (405, "GET", "method_not_allowed")

    on_loop(test)


def test_ready_only_with_weights_or_a_fallback() -> None:
    async def test() -> None:
        async with rig(1) as r:
            status, text = await get(r, "/readyz")
            assert (status, '"version":"1.1"' in text) == (200, True)
            r.gateway.router._installed = None
            status, text = await get(r, "/readyz")
            assert (status, '"weights":"ABSENT"' in text) == (503, True)
            refused, headers, document = await post(r)
            assert (refused, document["error"]["code"], headers["retry-after"]) == (503, "no_snapshot", "1")
            assert headers["x-headrace-decision"] == "outcome=REFUSED, reason=NO_SNAPSHOT, attempt=1"

    on_loop(test)


def test_a_configured_fallback_serves_before_any_weights() -> None:
    async def test() -> None:
        fallback = DataPlaneSettings(fallback={MODEL: (FallbackEngine("e1"),)})
        async with rig(1, dataplane=fallback) as r:
            address = r.engines["e1"].url
            settings = replace(QUICK, engines={"e1": EngineAccess(address=address)})
            async with rig(0, settings, dataplane=fallback) as cold:
                cold.gateway.router._installed = None
                assert (await get(cold, "/readyz"))[0] == 200
                assert (await get(cold, "/v1/models"))[1].count(f'"id":"{MODEL}"') == 1
                status, headers, _ = await post(cold)
                assert (status, "reason=FALLBACK_CONFIGURED" in headers["x-headrace-decision"]) == (200, True)

    on_loop(test)


def test_a_chosen_engine_without_an_address_is_a_refusal_that_names_its_alias() -> None:
    async def test() -> None:
        fallback = DataPlaneSettings(fallback={MODEL: (FallbackEngine("10.0.0.7"),)})
        async with rig(0, dataplane=fallback) as r:
            r.gateway.router._installed = None
            status, headers, document = await post(r)
            assert (status, document["error"]["code"]) == (503, "engine_without_address")
            assert 'engine="engine-' in headers["x-headrace-decision"]
            assert "10.0.0.7" not in str(headers)
            assert "its entry in fleet.toml needs `address`" in document["error"]["message"]

    on_loop(test)


def test_metrics_have_bounded_labels_whatever_models_are_asked_for() -> None:
    async def test() -> None:
        async with rig(1) as r:
            await post(r)
            for i in range(20):
                assert (await post(r, {"model": f"invented-{i}", "messages": []}))[0] == 404
            _, text = await get(r, "/metrics")
            assert "invented" not in text
            assert 'requests_total{endpoint="/v1/chat/completions",model="other",status="404"} 20.0' in text
            assert 'requests_total{endpoint="/v1/chat/completions",model="m",status="200"} 1.0' in text
            assert "headrace_gateway_snapshot_version 1.0" in text
            assert "headrace_gateway_ready 1.0" in text

    on_loop(test)


def test_demand_counts_what_was_asked_but_not_invented_models() -> None:
    async def test() -> None:
        async with rig(1) as r:
            for _ in range(3):
                await post(r)
            await post(r, {"model": "invented", "messages": []})
            pending = list(r.gateway.router.demand._pending)
            assert [(model, rejected) for model, _, _, rejected, _ in pending] == [(MODEL, False)] * 3

    on_loop(test)


def test_a_stop_lets_answers_end_and_is_not_ready_meanwhile() -> None:
    async def test() -> None:
        slow = replace(GOOD, pace=constant(0.4))
        async with rig({"e1": slow}) as r, aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{r.gateway.port}/v1/chat/completions"
            asking = asyncio.create_task(session.post(url, json={"model": MODEL, "messages": say()}))
            await until(lambda: r.engines["e1"].in_service == 1)
            await r.gateway.__aexit__(None, None, None)
            assert not r.gateway.readiness.ready()
            answer = await asking
            assert answer.status == 200
            assert answer.headers["Connection"] == "close"

    on_loop(test)


def test_malformed_http_never_stops_it() -> None:
    async def test() -> None:
        quick = replace(QUICK, head_s=0.2, body_s=0.2, keepalive_s=0.2)
        async with rig(1, quick) as r:
            await survives_malformed_http(r, 300, seed=1)
            assert (await post(r))[0] == 200

    on_loop(test)
