"""The real `openai` client against the gateway and simulated engines."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from time import monotonic

import aiohttp
import openai
import pytest

from gateway_inputs import GOOD, MODEL, QUICK, Rig, faulty, on_loop, rig, say, until
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.gateway_engine.behaviour import Fault, constant


def test_a_chat_answer_comes_through_with_the_decision_and_without_an_address() -> None:
    async def test() -> None:
        async with rig(2) as r, r.client() as client:
            raw = await client.chat.completions.with_raw_response.create(model=MODEL, messages=say())
            answer = raw.parse()
            assert answer.choices[0].message.content == "word " * 16
            assert answer.usage is not None
            assert answer.usage.completion_tokens == 16
            header = raw.headers["x-headrace-decision"]
            assert header.startswith('version="1.1", engine="e')
            assert header.endswith("outcome=ROUTED, reason=SLOT, attempt=1")
            assert "127.0.0.1" not in str(raw.headers)

    on_loop(test)


def test_a_stream_arrives_token_by_token_while_the_engine_is_still_at_it() -> None:
    async def test() -> None:
        behaviour = replace(GOOD, pace=constant(0.05, 0.05), tokens=6)
        async with rig({"e1": behaviour}) as r, r.client() as client:
            stream = await client.chat.completions.create(model=MODEL, messages=say(), stream=True)
            in_service, text = [], ""
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    text += chunk.choices[0].delta.content
                    in_service.append(r.engines["e1"].in_service)
            assert text == "word " * 6
            assert in_service[0] == 1

    on_loop(test)


def test_ttft_and_tbot_are_measured_from_the_first_token_not_from_the_role() -> None:
    async def test() -> None:
        behaviour = replace(GOOD, pace=constant(0.2, 0.02), tokens=5)
        async with rig({"e1": behaviour}) as r, r.client() as client:
            began_s = monotonic()
            async for _ in await client.chat.completions.create(
                model=MODEL, messages=say(), stream=True, stream_options={"include_usage": True}
            ):
                pass
            whole_s = monotonic() - began_s
            await until(lambda: r.metric("streams_total", ending="DONE") == 1)
            # Timers fire a little early and loops wake late, so nothing is held to a paced time itself: what
            # a role counted as a token would break holds at any speed of the machine.
            before_first_token_s = 0.15
            assert r.metric("ttft_seconds_sum", model=MODEL, engine="e1") > before_first_token_s
            assert r.metric("ttft_seconds_count", model=MODEL, engine="e1") == 1
            assert 0.0 < 4 * r.metric("tbot_seconds_sum", model=MODEL, engine="e1") < whole_s - before_first_token_s

    on_loop(test)


def test_completions_embeddings_and_models() -> None:
    async def test() -> None:
        async with rig(2) as r, r.client() as client:
            text = await client.completions.create(model=MODEL, prompt="once", max_tokens=2)
            assert text.choices[0].text == "word word "
            parts = [c async for c in await client.completions.create(model=MODEL, prompt="once", stream=True)]
            assert "".join(part.choices[0].text for part in parts) == "word " * 16
            vectors = await client.embeddings.create(model=MODEL, input=["a", "b"], encoding_format="float")
            assert [item.index for item in vectors.data] == [0, 1]
            assert [model.id async for model in client.models.list()] == [MODEL]
            assert (await client.models.retrieve(MODEL)).owned_by == "headrace"
            with pytest.raises(openai.NotFoundError):
                await client.models.retrieve("no-such")

    on_loop(test)


def test_an_unknown_model_is_the_clients_not_found_error() -> None:
    async def test() -> None:
        async with rig(1) as r, r.client() as client:
            with pytest.raises(openai.NotFoundError) as raised:
                await client.chat.completions.create(model="no-such", messages=say())
            assert raised.value.code == "model_not_found"
            assert raised.value.param == "model"

    on_loop(test)


def test_turns_of_one_conversation_stay_and_conversations_spread() -> None:
    async def test() -> None:
        async with rig(4) as r, r.client() as client:

            async def engine(*messages: dict[str, str]) -> str:
                raw = await client.chat.completions.with_raw_response.create(model=MODEL, messages=list(messages))
                return raw.headers["x-headrace-decision"].split('engine="')[1][:2]

            system = {"role": "system", "content": "You are everyone's assistant."}
            first = [{"role": "user", "content": f"question {i}"} for i in range(24)]
            began = [await engine(system, message) for message in first]
            answer, further = {"role": "assistant", "content": "so"}, {"role": "user", "content": "and then?"}
            went_on = [await engine(system, message, answer, further) for message in first]
            assert began == went_on
            assert set(began) == {"e1", "e2", "e3", "e4"}

    on_loop(test)


def test_a_client_that_leaves_in_mid_stream_stops_the_engine() -> None:
    async def test() -> None:
        behaviour = replace(GOOD, pace=constant(0.0, 0.02), tokens=10_000)
        async with rig({"e1": behaviour}) as r, r.client() as client:
            stream = await client.chat.completions.create(model=MODEL, messages=say(), stream=True)
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
            assert r.engines["e1"].in_service == 1
            await stream.close()
            await until(lambda: r.engines["e1"].cancelled == 1)
            await until(lambda: r.gateway.admission.in_flight == 0)
            assert r.metric("client_gone_total") == 1

    on_loop(test)


def test_a_client_that_leaves_before_the_first_token_stops_the_engine_too() -> None:
    async def test() -> None:
        behaviour = replace(GOOD, pace=constant(30.0, 0.0))
        async with rig({"e1": behaviour}, replace(QUICK, first_byte_s=30, total_s=60)) as r, r.client() as client:
            asking = asyncio.create_task(client.chat.completions.create(model=MODEL, messages=say()))
            await until(lambda: r.engines["e1"].in_service == 1)
            asking.cancel()
            await until(lambda: r.engines["e1"].cancelled == 1)
            await until(lambda: r.gateway.admission.in_flight == 0)

    on_loop(test)


def test_a_prompt_of_a_megabyte_goes_through() -> None:
    async def test() -> None:
        async with rig(1) as r, r.client() as client:
            answer = await client.chat.completions.create(model=MODEL, messages=say("x" * (1 << 20)))
            assert answer.choices[0].finish_reason == "stop"
            assert int(r.engines["e1"].asked[-1]["Content-Length"]) > 1 << 20

    on_loop(test)


def test_a_slow_reader_gets_every_token_and_is_not_measured_as_a_slow_engine() -> None:
    tokens, word = 400, "w" * 20_000

    async def test() -> None:
        behaviour = replace(GOOD, tokens=tokens, word=word)
        async with rig({"e1": behaviour}) as r, r.client() as client:
            read = 0
            async for chunk in await client.chat.completions.create(model=MODEL, messages=say(), stream=True):
                if chunk.choices[0].delta.content:
                    read += 1
                    if read % 100 == 0:
                        await asyncio.sleep(0.25)
            assert read == tokens
            await until(lambda: r.metric("streams_total", ending="DONE") == 1)
            assert r.metric("ttft_seconds_count", model=MODEL, engine="e1") == 1
            assert r.metric("tbot_seconds_count", model=MODEL, engine="e1") == 0

    on_loop(test)


def test_a_client_that_stops_reading_is_left_after_the_idle_time_and_holds_one_buffer_meanwhile() -> None:
    async def test() -> None:
        behaviour = replace(GOOD, tokens=10_000, word="w" * 20_000)
        async with rig({"e1": behaviour}, replace(QUICK, idle_s=0.5)) as r:
            reader, writer = await asyncio.open_connection("127.0.0.1", r.gateway.port, limit=1 << 14)
            body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}'
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            await reader.read(100)
            await until(lambda: r.engines["e1"].cancelled == 1)
            await until(lambda: r.gateway.admission.in_flight == 0)
            writer.transport.abort()

    on_loop(test)


def test_an_engine_that_dies_in_mid_stream_is_an_error_the_client_sees() -> None:
    async def test() -> None:
        async with rig({"e1": faulty(Fault.CLOSE_MID_STREAM)}) as r, r.client() as client:
            seen: list[str] = []
            with pytest.raises(openai.APIError, match="broke off"):
                await _count(_words(client), seen)
            assert seen == ["word "] * 3
            assert r.metric("streams_total", ending="CUT") == 1

    on_loop(test)


def test_an_engine_that_dies_inside_an_event_cuts_the_stream_and_nothing_is_made_up() -> None:
    async def test() -> None:
        async with rig({"e1": faulty(Fault.CLOSE_MID_EVENT)}) as r, aiohttp.ClientSession() as client:
            body = {"model": MODEL, "messages": say(), "stream": True}
            parts: list[bytes] = []
            async with client.post(f"{r.url}/v1/chat/completions", json=body) as response:
                with pytest.raises(aiohttp.ClientPayloadError):
                    await _read_into(parts, response)
            received = b"".join(parts)
            assert received.count(b"word") == 3
            assert b"error" not in received

    on_loop(test)


def test_an_error_event_of_the_engine_is_passed_on_and_counted() -> None:
    async def test() -> None:
        async with rig({"e1": faulty(Fault.ERROR_MID_STREAM)}) as r, r.client() as client:
            with pytest.raises(openai.APIError, match="as told"):
                await _count(_words(client), [])
            await until(lambda: r.metric("streams_total", ending="ERROR") == 1)

    on_loop(test)


@pytest.mark.parametrize("fault", [Fault.CLOSE_BEFORE_HEAD, Fault.CLOSE_BEFORE_BODY, Fault.NOT_HTTP, Fault.STATUS_503])
def test_an_engine_that_gives_nothing_before_the_first_byte_is_replaced_by_another(fault: Fault) -> None:
    async def test() -> None:
        async with rig({"bad": faulty(fault), "good": GOOD}) as r, r.client() as client:
            seen = set()
            for i in range(12):
                raw = await client.chat.completions.with_raw_response.create(
                    model=MODEL, messages=say(), extra_headers={"x-session-id": f"s{i}"}
                )
                seen.add(raw.headers["x-headrace-decision"].partition("engine=")[2])
            # Every session got the good one: some at once, some after the bad one, which then is left out.
            assert seen == {
                '"good", outcome=ROUTED, reason=SLOT, attempt=1',
                '"good", outcome=ROUTED, reason=REHASH, attempt=2',
                '"good", outcome=ROUTED, reason=REHASH, attempt=1',
            }
            assert r.metric("retries_total", result="granted") == r.engines["bad"].requests

    on_loop(test)


async def _statuses(r: Rig, count: int) -> list[int]:
    async with aiohttp.ClientSession() as client:
        body = {"model": MODEL, "messages": say()}
        answers = [
            await client.post(f"{r.url}/v1/chat/completions", json=body, headers={"x-session-id": f"s{i}"})
            for i in range(count)
        ]
    return [answer.status for answer in answers]


async def _read_into(parts: list[bytes], response: aiohttp.ClientResponse) -> None:
    async for part in response.content.iter_any():
        parts.append(part)  # noqa: PERF401 - what came before an error is kept


async def _words(client: openai.AsyncOpenAI) -> AsyncIterator[str]:
    """Stream one chat answer; give its tokens."""
    async for chunk in await client.chat.completions.create(model=MODEL, messages=say(), stream=True):
        if chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


async def _count(words: AsyncIterator[str], seen: list[str]) -> None:
    async for word in words:
        seen.append(word)  # noqa: PERF401 - what came before an error is kept


def test_retries_end_with_the_budget_of_the_snapshot() -> None:
    async def test() -> None:
        behaviours = {"bad": faulty(Fault.CLOSE_BEFORE_HEAD), "good": GOOD}
        settings = DataPlaneSettings(retry_burst=2)
        async with rig(behaviours, retry_ratio=0.001, dataplane=settings) as r:
            statuses = await _statuses(r, 30)
            assert r.metric("retries_total", result="granted") == 2
            assert statuses.count(502) == r.engines["bad"].requests - 2 > 0

    on_loop(test)


def test_no_retry_where_the_fleet_is_too_full_for_any_and_none_to_the_same_engine() -> None:
    async def test() -> None:
        async with rig({"e1": faulty(Fault.CLOSE_BEFORE_HEAD)}, retry_ratio=1.0) as r:
            assert await _statuses(r, 3) == [502] * 3
            assert r.engines["e1"].requests == 3
            assert r.metric("retries_total", result="no_other_engine") == 3
        behaviours = {"bad": faulty(Fault.CLOSE_BEFORE_HEAD), "good": GOOD}
        async with rig(behaviours, retry_ratio=0.0) as r:
            await _statuses(r, 12)
            assert r.engines["bad"].requests > 0
            assert r.engines["good"].requests == 12 - r.engines["bad"].requests

    on_loop(test)


def test_at_most_one_retry_even_where_that_one_fails_too() -> None:
    async def test() -> None:
        bad = faulty(Fault.CLOSE_BEFORE_HEAD)
        async with rig({"e1": bad, "e2": bad, "e3": bad}, retry_ratio=1.0) as r:
            assert await _statuses(r, 4) == [502] * 4
            assert sum(engine.requests for engine in r.engines.values()) == 8

    on_loop(test)


@pytest.mark.parametrize(("fault", "status"), [(Fault.STATUS_429, 429), (Fault.STATUS_500, 500)])
def test_an_engines_own_error_is_the_clients_untouched(fault: Fault, status: int) -> None:
    async def test() -> None:
        async with rig({"e1": faulty(fault), "e2": faulty(fault)}) as r, r.client() as client:
            with pytest.raises(openai.APIStatusError) as raised:
                await client.chat.completions.create(model=MODEL, messages=say())
            response = raised.value.response
            assert response.status_code == status
            assert response.headers["retry-after"] == "7"
            assert response.headers["x-engine-said"] == "so"
            assert response.json() == {
                "error": {"message": "as told", "type": "EngineError", "param": None, "code": status}
            }
            assert sum(engine.requests for engine in r.engines.values()) == 1

    on_loop(test)


def test_a_503_with_nobody_else_to_ask_is_passed_through_as_it_is() -> None:
    async def test() -> None:
        async with rig({"e1": faulty(Fault.STATUS_503)}) as r, r.client() as client:
            with pytest.raises(openai.InternalServerError, match="as told") as raised:
                await client.chat.completions.create(model=MODEL, messages=say())
            assert raised.value.response.headers["x-engine-said"] == "so"

    on_loop(test)


def test_a_slow_engine_is_given_up_at_the_bound_and_not_asked_twice() -> None:
    async def test() -> None:
        behaviours = {"e1": faulty(Fault.HANG_BEFORE_HEAD), "e2": faulty(Fault.HANG_BEFORE_HEAD)}
        async with rig(behaviours, replace(QUICK, first_byte_s=0.2)) as r, r.client() as client:
            with pytest.raises(openai.InternalServerError, match=r"the first byte took more than 0\.2 s"):
                await client.chat.completions.create(model=MODEL, messages=say())
            assert sum(engine.requests for engine in r.engines.values()) == 1

    on_loop(test)


def test_an_engine_that_falls_silent_in_mid_stream_is_cut_at_the_bound() -> None:
    async def test() -> None:
        behaviour = faulty(Fault.HANG_MID_STREAM)
        async with rig({"e1": behaviour}, replace(QUICK, idle_s=0.2)) as r, r.client() as client:
            seen: list[str] = []
            with pytest.raises(openai.APIError, match="more than"):  # the engine would be silent for an hour
                await _count(_words(client), seen)
            assert seen == ["word "] * 3
            await until(lambda: r.engines["e1"].in_service == 0)
            assert r.metric("streams_total", ending="CUT") == 1

    on_loop(test)


def test_an_engine_that_died_is_down_at_once_and_back_when_it_answers() -> None:
    async def test() -> None:
        async with rig(2) as r:
            dead = r.engines["e1"]
            await dead.stop()
            assert await _statuses(r, 12) == [200] * 12
            assert r.gateway.router.is_down("e1")
            assert r.metric("engine_answers_total", engine="e1", result="error") == 1
            await dead.start()
            await until(lambda: not r.gateway.router.is_down("e1"))
            assert await _statuses(r, 12) == [200] * 12
            assert dead.served > 0

    on_loop(test)


def test_an_engine_at_a_host_that_no_name_service_has_a_form_for_is_down_and_others_serve_its_sessions() -> None:
    async def test() -> None:
        async with rig(1, addresses={"nowhere": f"http://{'a' * 70}.example"}) as r:
            assert await _statuses(r, 12) == [200] * 12
            assert r.gateway.router.is_down("nowhere")

    on_loop(test)


def test_all_engines_down_is_refused_with_when_to_come_back() -> None:
    async def test() -> None:
        async with rig(1) as r, r.client() as client:
            await r.engines["e1"].stop()
            await _statuses(r, 1)
            with pytest.raises(openai.InternalServerError) as raised:
                await client.chat.completions.create(model=MODEL, messages=say())
            assert raised.value.code == "all_down"
            assert raised.value.response.headers["retry-after"] == "1"
            header = raised.value.response.headers["x-headrace-decision"]
            assert header == 'version="1.1", outcome=REFUSED, reason=ALL_DOWN, attempt=1'

    on_loop(test)
