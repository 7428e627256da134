"""What the router's guards learn from the gateway: each attempt once, with what it says of its engine."""

import asyncio
import contextlib
from dataclasses import replace

import aiohttp
import openai
import pytest

from gateway_inputs import GOOD, MODEL, QUICK, Rig, faulty, on_loop, rig, say, until
from gateway_strain import mixed, mixed_engines
from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.infra.gateway.core.experience import outcome_of_status, outcome_of_stream
from headrace.infra.gateway.core.generation import Endpoint, Generation
from headrace.infra.gateway.core.session_key import established
from headrace.infra.gateway.core.stream_timing import Ending
from headrace.infra.gateway.settings import EngineAccess
from headrace.infra.gateway_engine.behaviour import Fault, constant


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "OK"), (400, "OK"), (404, "OK"), (429, "REJECTED"), (500, "ERROR"), (503, "ERROR")],
)
def test_a_full_engine_is_not_a_broken_one_and_a_clients_error_is_neither(status: int, outcome: str) -> None:
    assert outcome_of_status(status) == outcome
    assert outcome_of_stream(status, None) == outcome


def test_a_stream_that_says_that_it_failed_did() -> None:
    assert outcome_of_stream(200, Ending.ERROR) is AttemptOutcome.ERROR
    assert outcome_of_stream(200, Ending.DONE) is outcome_of_stream(200, Ending.CUT) is AttemptOutcome.OK


@pytest.mark.parametrize(
    ("roles", "begun"), [(["user"], False), (["system", "user"], False), (["user", "assistant", "user"], True)]
)
def test_a_conversation_has_begun_where_it_holds_an_answer(roles: list[str], begun: bool) -> None:  # noqa: FBT001 - a table's column
    messages = [{"role": role, "content": "x"} for role in roles]
    assert established(Generation(Endpoint.CHAT, "m", stream=False, body={"messages": messages})) is begun
    assert established(Generation(Endpoint.COMPLETIONS, "m", stream=False, body={"messages": messages})) is None


def results(r: Rig, engine: str = "e1") -> dict[str, float]:
    names = [outcome.value.lower() for outcome in AttemptOutcome]
    return {name: n for name in names if (n := r.metric("engine_answers_total", engine=engine, result=name))}


async def stream(client: openai.AsyncOpenAI) -> None:
    async for _ in await client.chat.completions.create(model=MODEL, messages=say(), stream=True):
        pass


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault.NONE, "ok"),
        (Fault.CLOSE_BEFORE_HEAD, "error"),
        (Fault.CLOSE_MID_STREAM, "error"),
        (Fault.ERROR_MID_STREAM, "error"),
        (Fault.STATUS_500, "error"),
        (Fault.STATUS_503, "error"),
        (Fault.STATUS_429, "rejected"),
        (Fault.HANG_BEFORE_HEAD, "timeout"),
        (Fault.HANG_MID_STREAM, "timeout"),
    ],
)
def test_each_attempt_ends_once_with_what_it_says_of_its_engine(fault: Fault, outcome: str) -> None:
    async def test() -> None:
        async with rig({"e1": faulty(fault)}, replace(QUICK, first_byte_s=0.2, idle_s=0.2)) as r, r.client() as client:
            with contextlib.suppress(openai.APIError):
                await stream(client)
            await until(lambda: results(r) == {outcome: 1})
            assert r.gateway.router.in_flight(MODEL, "default", "e1") == 0

    on_loop(test)


def test_a_client_that_leaves_or_does_not_read_says_nothing_of_the_engine() -> None:
    async def test() -> None:
        behaviour = replace(GOOD, pace=constant(0.0, 0.02), tokens=10_000)
        async with rig({"e1": behaviour}) as r, r.client() as client:
            asking = asyncio.create_task(stream(client))
            await until(lambda: r.engines["e1"].in_service == 1)
            asking.cancel()
            await until(lambda: results(r) == {"cancelled": 1})
        floods = replace(GOOD, tokens=10_000, word="w" * 20_000)
        async with rig({"e1": floods}, replace(QUICK, idle_s=0.3)) as r, aiohttp.ClientSession() as session:
            body = {"model": MODEL, "stream": True, "messages": say()}
            async with session.post(f"{r.url}/v1/chat/completions", json=body):
                await until(lambda: results(r) == {"cancelled": 1})  # nothing is read here

    on_loop(test)


def test_an_engine_that_keeps_failing_is_left_out_by_the_guards() -> None:
    async def test() -> None:
        behaviours = {"bad": faulty(Fault.STATUS_500)} | {f"e{i}": GOOD for i in range(4)}
        async with rig(behaviours) as r, aiohttp.ClientSession() as session:
            for i in range(300):
                body = {"model": MODEL, "messages": say(str(i))}
                async with session.post(f"{r.url}/v1/chat/completions", json=body) as answer:
                    await answer.read()
            asked = r.engines["bad"].requests
            assert 0 < asked < 30  # of about 60, had nobody learned

    on_loop(test)


def test_whatever_happens_no_attempt_stays_open() -> None:
    async def test() -> None:
        async with rig(mixed_engines()) as r:
            await mixed(r, 400)
            await until(lambda: r.gateway.admission.in_flight == 0)
            assert [r.gateway.router.in_flight(MODEL, "default", engine) for engine in r.engines] == [0] * 6
            begun = sum(engine.requests for engine in r.engines.values())
            ended = sum(sum(results(r, engine).values()) for engine in r.engines)
            assert ended >= begun > 0  # an attempt that its client left may never have reached its engine

    on_loop(test)


def test_metrics_show_what_the_router_knows_by_aliases() -> None:
    settings = replace(QUICK, engines={"e1": EngineAccess(alias="first")})

    async def test() -> None:
        async with rig({"e1": faulty(Fault.STATUS_500), "e2": GOOD, "e3": GOOD, "e4": GOOD}, settings) as r:
            async with r.client() as client:
                for i in range(60):
                    with contextlib.suppress(openai.APIError):
                        await client.chat.completions.create(model=MODEL, messages=say(str(i)))
            assert r.metric("weights_state", state="FRESH") == 1
            assert r.metric("weights_state", state="FALLBACK") == 0
            assert r.metric("weight", model=MODEL, **{"class": "default"}, engine="e2") == 0.25
            assert r.metric("ejected", engine="first", cause="ERRORS") == 1
            assert r.metric("retries_saved", model=MODEL, **{"class": "default"}) == 10
            assert r.metric("attempts_in_flight", model=MODEL, **{"class": "default"}, engine="e2") == 0
            assert r.metric("not_counted_total", what="invalid") == 0

    on_loop(test)


def test_metrics_of_very_many_engines_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.infra.gateway.router_metrics.MAX_SERIES", 3)

    async def test() -> None:
        async with rig(addresses={f"x{i}": "http://127.0.0.1:1" for i in range(9)}) as r:
            assert r.metric("series_left_out", family="weight") == 7
            assert r.metric("weight", model=MODEL, **{"class": "default"}, engine="e1") == pytest.approx(0.1)

    on_loop(test)
