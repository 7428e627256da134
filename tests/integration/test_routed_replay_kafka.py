"""Sessions of a real client through a gateway, onto Kafka, out with the export: what a replay then tells of them.

client ─► gateway ─► two engines            weights ◄─ headrace solver ◄─ state ◄─ headrace streams ◄─ signals
             └─ demand, sampled requests ─► Kafka ─► headrace export ─► headrace replay run ─► comparison.json
"""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner
from openai import AsyncOpenAI
from streams_run import Bus, Worker

from gateway_inputs import CLUSTER, MODEL, QUICK, on_loop, until
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.gateway.serve import Running
from headrace.infra.gateway.weights_source import FromKafka
from headrace.infra.gateway_engine.behaviour import Behaviour, constant
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.replay.core.routed import sample_of
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.codec import encode
from headrace.schemas.histogram import pack
from headrace.schemas.routed import RoutedOutcome, RoutedRequest
from headrace.schemas.signals import Distribution, EngineSignals, EngineStatus, Health, Metric, NetworkProbe, Vantage
from headrace.schemas.topics import FLEET, PROFILES, ROUTED, SIGNALS_ENGINE, SIGNALS_NETWORK, TopicSettings
from solver_desk import Desk, Solver, wall_ms
from solver_inputs import profile, spec

TTFT_S = {"far": 0.030, "near": 0.010}
RTT_S = {"far": 0.020, "near": 0.001}
SESSIONS, TURNS = 300, 3
AT_ONCE = 4
"""`in_flight_min`: no engine is crowded, so each session stays where its slot is."""
BEAT_S = 0.5
CAPACITY_RPS = 5_000.0
"""More than any machine asks for here: nothing is shed, and nobody has to go to the far engine."""
RECORDED_POLICY = "solver.policy=capacity_weighted"
"""The recorded policy divides the traffic by replicas, however much there is, so that propensities are known here."""
EVEN, A_QUARTER = 500_000, 250_000


@dataclass
class Engines:
    """What the engines' own telemetry and a probe say, each half second."""

    bus: Bus
    far_replicas: int = 1
    _stop: threading.Event = field(default_factory=threading.Event)

    def beat(self) -> None:
        """Say it until stopped."""
        while not self._stop.wait(BEAT_S):
            now_ms = wall_ms()
            for name, rtt_s in RTT_S.items():
                self.bus.send(SIGNALS_ENGINE, name.encode(), encode(self._said(name, now_ms)), now_ms)
                probe = NetworkProbe(CLUSTER, f"{name}-site", "probe", now_ms, rtt_s)
                self.bus.send(SIGNALS_NETWORK, probe.key, encode(probe), now_ms)
            self.bus.flush()

    @contextmanager
    def beating(self) -> Generator[None]:
        """Say it while the body runs."""
        thread = threading.Thread(target=self.beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(30.0)

    def _said(self, name: str, now_ms: int) -> EngineSignals:
        took = [TTFT_S[name] - RTT_S[name]] * 5
        zeros, first, counts = pack(took)
        ttft = Distribution(MODEL, Metric.TTFT, len(took), sum(took), took[0], took[0], zeros, first, counts)
        ready = self.far_replicas if name == "far" else 1
        status = EngineStatus(Health.HEALTHY, ready, ready, ready, 1.0, 0.0, 0.1)
        return EngineSignals(name, f"{name}/0", Vantage.ENGINE, now_ms - round(1000 * BEAT_S), now_ms, (ttft,), status)


async def turn(client: AsyncOpenAI, answered: dict[str, list[str]]) -> None:
    """Let every session have its next turn; takes note of who answered it."""
    free = asyncio.Semaphore(AT_ONCE)

    async def session(user: str) -> None:
        async with free:
            raw = await client.chat.completions.with_raw_response.create(
                model=MODEL, messages=[{"role": "user", "content": "hello"}], user=user
            )
            answered[user].append(raw.headers["x-headrace-decision"].split('engine="')[1].split('"')[0])

    await asyncio.gather(*map(session, answered))


def run(*arguments: str) -> str:
    result = CliRunner().invoke(headrace, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def served(broker: Broker, topics: TopicSettings, folder: Path) -> dict[str, list[str]]:
    """Serve all sessions by weights that the solver makes of signals; the whole path stands meanwhile."""
    bus = Bus(broker.kafka, topics)
    engines = Engines(bus)

    async def serve() -> dict[str, list[str]]:
        router = Router(DataPlaneSettings(source="gateway-1", routed_share=1.0), CLUSTER)
        async with (
            SimulatedEngine(MODEL, Behaviour(constant(TTFT_S["far"]), tokens=1)) as far,
            SimulatedEngine(MODEL, Behaviour(constant(TTFT_S["near"]), tokens=1)) as near,
            Running(
                QUICK, router, lambda r, say, new: FromKafka(broker.kafka, topics, r, say, new), structlog.get_logger()
            ) as gateway,
            AsyncOpenAI(base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key="none", max_retries=0) as client,
        ):
            bus.send(PROFILES, b"p", encode(profile(capacity_rps=CAPACITY_RPS, output_tokens=1.0)))
            for name, engine in (("far", far), ("near", near)):
                told = spec(name, site=f"{name}-site", capacity_rps_per_replica=CAPACITY_RPS, address=engine.url)
                bus.send(FLEET, told.key, encode(told))
            await asyncio.to_thread(bus.flush)
            answered: dict[str, list[str]] = {f"user-{number}": [] for number in range(SESSIONS)}
            await until(lambda: near_share(router) == EVEN, 90.0)
            await turn(client, answered)
            await turn(client, answered)
            engines.far_replicas = 3
            await until(lambda: near_share(router) == A_QUARTER, 90.0)
            await turn(client, answered)
            return answered

    streams = Worker(bus, folder / "streams")
    solver = Solver(Desk(broker.kafka, topics), folder / "solver.log", "solver.leader_election=false", RECORDED_POLICY)
    try:
        solver.start()
        with engines.beating():
            answered = on_loop(serve, 240.0)  # the gateway's end publishes what is not published yet
            time.sleep(1.0)  # a few ticks more, by the demand that there was
        return answered
    finally:
        solver.kill()
        streams.kill()


def near_share(router: Router) -> int:
    """Give the near engine's share in the installed weights, ppm; 0 where there are none."""
    tables = router.installation.tables.values() if router.installation is not None else ()
    return sum(t.weight_ppm for table in tables for t in table.weights.targets if t.engine_id == "near")


def sample(folder: Path) -> list[RoutedRequest]:
    history = HistoryFolder(folder)
    fold = sample_of((record for place in history.places(ROUTED) for record in history.read(place)), history.span)
    assert fold.findings() == ()
    return [sampled.request for sampled in fold.requests()]


def mean_ms(requests: list[RoutedRequest], weight: Callable[[RoutedRequest], float]) -> float:
    total = sum(weight(each) for each in requests)
    return 1_000.0 * sum(weight(each) * (each.e2e_s or 0.0) for each in requests) / total


@pytest.mark.slow
def test_warm_caches_and_off_policy_estimates_come_from_the_sessions_that_a_gateway_served(
    broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    began_ms = wall_ms()
    answered = served(broker, topics, tmp_path)
    place = ("--bootstrap", broker.kafka.bootstrap_servers, "--set", f"kafka.broker={broker.kafka.broker}")
    names = ("--set", f"topics.prefix={topics.prefix}", "--set", f"topics.partitions={topics.partitions}")
    history, out = tmp_path / "history", tmp_path / "out"
    exported = json.loads(run("export", "--from", str(began_ms), "--out", str(history), "--json", *place, *names))
    assert exported["records"]["routed"] > 0
    policies = ("--policy", "lp", "--policy", "proportional:k=0.1", "--policy", "nearest")
    run("replay", "run", "--dir", str(history), *policies, "--processes", "1", "--out", str(out))
    written: dict[str, Any] = json.loads((out / "comparison.json").read_text())
    assert written["complete"]
    variants = {variant["name"]: variant for variant in written["variants"]}
    assert list(variants) == ["recorded", "lp", "proportional:k=0.1", "nearest"]

    found = sample(history)
    assert Counter(each.engine_id for each in found) == Counter(engine for each in answered.values() for engine in each)
    assert Counter((each.reason, each.outcome) for each in found) == {("SLOT", RoutedOutcome.OK): SESSIONS * TURNS}
    for variant in variants.values():
        assert variant["sessions"]["returning"] == SESSIONS * (TURNS - 1)
        assert variant["off_policy"]["choices"] == SESSIONS * TURNS

    # Between the second turn and the third, the recorded weights moved a quarter of the sessions away from "near".
    stayed = sum(one == two for each in answered.values() for one, two in pairwise(each))
    assert SESSIONS * (TURNS - 1) - SESSIONS / 2 < stayed < SESSIONS * (TURNS - 1)
    assert variants["recorded"]["sessions"]["hits"] == stayed
    assert variants["nearest"]["sessions"]["hits"] == SESSIONS * (TURNS - 1)
    cold = variants["recorded"]["numbers"]["cold_percent"]["value"]
    assert cold == pytest.approx(100.0 * (1.0 - stayed / (SESSIONS * (TURNS - 1))), rel=0.001)

    # A session's turns are one draw, of the recorded weights and of others.
    recorded, nearest = (variants[name]["off_policy"] for name in ("recorded", "nearest"))
    assert recorded["effective"] == pytest.approx(SESSIONS, rel=0.001)
    assert recorded["snips_ms"] == pytest.approx(mean_ms(found, lambda _: 1.0), rel=0.001)
    weight = {"near": 1.0, "far": 0.0}
    at_near: dict[int | None, float] = {}
    for each in found:
        at_near[each.session] = at_near.get(each.session, 0.0) + weight[each.engine_id] / (each.propensity or 0.0)
    effective = sum(at_near.values()) ** 2 / sum(each**2 for each in at_near.values())
    assert nearest["effective"] == pytest.approx(effective, rel=0.001)
    assert nearest["outcome"] == "ESTIMATED"
    assert nearest["snips_ms"] == pytest.approx(
        mean_ms(found, lambda each: weight[each.engine_id] / (each.propensity or 0.0)), rel=0.001
    )
    assert f"effective {effective:,.0f} of {SESSIONS * TURNS}" in (out / "report.html").read_text("utf-8")
