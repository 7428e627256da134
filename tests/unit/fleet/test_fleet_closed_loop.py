"""The whole loop in virtual time: what the demo shows, without a broker, to the last byte."""

import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fleet_inputs import START_MS, three_regions
from headrace.dataplane.settings import DataPlaneSettings, GuardSettings
from headrace.infra.demo.movement import shares, shed_rps
from headrace.infra.fleet.closed_loop import ClosedLoop, LoopSettings
from headrace.infra.fleet.request import Ended, Kind, Request
from headrace.infra.fleet.script import parse_script
from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.codec import encode
from headrace.schemas.weights import RouteWeights, Snapshot
from headrace.solver.glop import Glop


def run(script: str, seconds: float, seed: int = 1) -> tuple[ClosedLoop, float]:
    loop = ClosedLoop(three_regions(), LoopSettings(), Glop(threads=1), START_MS, np.random.default_rng(seed))
    loop.warm_up()
    start_s = loop.simulation.timeline.now_s
    for timed in parse_script(script, three_regions().names):
        loop.simulation.schedule(timed, start_s)
    loop.simulation.run_until(start_s + seconds)
    return loop, start_s


def route(snapshot: Snapshot, cluster: str) -> RouteWeights:
    return next(r for r in snapshot.routes if r.cluster == cluster)


def last_before(loop: ClosedLoop, at_s: float) -> Snapshot:
    return next(snapshot for time_s, snapshot in reversed(loop.snapshots) if time_s <= at_s)


def test_b_sends_its_surplus_to_c_which_is_near_and_everyone_is_served() -> None:
    loop, _ = run("", 20.0)
    snapshot = loop.snapshots[-1][1]
    # 120 RPS beside an engine of 100: the surplus goes to C, 15 ms away, and next to nothing to A, 64 ms away; all
    # three engines then run at about 250 / 280 of their capacity.
    assert shares(route(snapshot, "cluster-b")).get("engine-a", 0.0) < 0.03
    assert shares(route(snapshot, "cluster-b"))["engine-c"] > 0.2
    assert shares(route(snapshot, "cluster-a"))["engine-a"] > 0.85
    load = Counter[str]()
    for r in snapshot.routes:
        for engine_id, share in shares(r).items():
            load[engine_id] += round(share * r.demand_rps)
    assert load["engine-a"] / 100 == pytest.approx(0.89, abs=0.06)
    assert load["engine-b"] / 100 == pytest.approx(0.89, abs=0.06)
    assert load["engine-c"] / 80 == pytest.approx(0.89, abs=0.06)
    loop.simulation.drain()
    assert loop.simulation.tally.by(Kind.REFUSED) == {}
    assert loop.simulation.tally.by(Kind.FAILED) == {}


def test_a_dead_engine_is_excluded_when_its_silence_has_expired_and_what_is_too_much_is_shed() -> None:
    loop, start_s = run("t=5 kill engine-b", 25.0)
    fading, expired = last_before(loop, start_s + 8.0), last_before(loop, start_s + 22.0)
    assert "engine-b" in shares(route(fading, "cluster-b"))
    for r in expired.routes:
        assert "engine-b" not in shares(r)
        assert [e.reason for e in r.excluded if e.engine_id == "engine-b"] == ["STALE"]
    # 250 RPS are asked for; 180 are left.
    assert shed_rps(expired) == pytest.approx(70.0, abs=12.0)
    assert loop.simulation.tally.routed_to_known_dead == 0


def test_replicas_taken_away_are_known_within_two_seconds_and_given_back_likewise() -> None:
    loop, start_s = run("t=5 replicas engine-a 2\nt=15 replicas engine-a 4", 22.0)
    # 100 + 80 + 50 RPS are left for 250.
    assert shed_rps(last_before(loop, start_s + 5.0)) == 0.0
    assert shed_rps(last_before(loop, start_s + 12.0)) == pytest.approx(20.0, abs=10.0)
    assert shed_rps(last_before(loop, start_s + 20.0)) == 0.0


def test_every_snapshot_is_sound_and_a_run_gives_the_same_bytes_again() -> None:
    digests: list[str] = []
    for _ in range(2):
        loop, _ = run("t=2 surge cluster-b 1.5\nt=4 kill engine-c\nt=7 revive engine-c", 10.0)
        digest = hashlib.sha256()
        for _, snapshot in loop.snapshots:
            assert check_snapshot(snapshot) == ()
            digest.update(encode(snapshot.commit))
            for r in snapshot.routes:
                digest.update(encode(r))
        digests.append(digest.hexdigest())
    assert digests[0] == digests[1]


def test_without_engines_that_speak_the_warm_up_says_so() -> None:
    loop = ClosedLoop(three_regions(), LoopSettings(), Glop(threads=1), START_MS, np.random.default_rng(1))
    for engine in loop.simulation.engines.values():
        engine.silent = True
    with pytest.raises(TimeoutError, match="not every router"):
        loop.warm_up(limit_s=3.0)


def refused_by(script: str, seconds: float, from_s: float) -> Counter[str]:
    """Count endings by reason from `from_s` of the script on."""
    loop = ClosedLoop(three_regions(), LoopSettings(), Glop(threads=1), START_MS, np.random.default_rng(1))
    loop.warm_up()
    start_s = loop.simulation.timeline.now_s
    ends = Counter[str]()

    def end(_: Request, ended: Ended) -> None:
        if loop.simulation.timeline.now_s - start_s >= from_s:
            ends[str(ended.reason)] += 1

    loop.simulation.listeners.append(end)
    for timed in parse_script(script, three_regions().names):
        loop.simulation.schedule(timed, start_s)
    loop.simulation.run_until(start_s + seconds)
    return ends


def test_an_engine_three_times_slower_than_stated_is_found_and_what_is_too_much_is_shed_before_it_refuses() -> None:
    # 100 + 80 + 33 RPS are left for 250; from ten seconds on it is the weights that say no, not a full queue.
    ends = refused_by("t=5 slow engine-b 3", 40.0, 15.0)
    print(dict(ends))
    assert ends["QUEUE_FULL"] <= 0.01 * ends.total()
    assert ends["SHED"] / ends.total() == pytest.approx(37 / 250, abs=0.06)


def test_a_slow_engine_that_is_well_again_gets_its_traffic_back() -> None:
    loop, start_s = run("t=5 slow engine-b 3\nt=25 heal engine-b", 50.0)
    slow, well = last_before(loop, start_s + 25.0), loop.snapshots[-1][1]
    (measured,) = [p for p in slow.commit.protections if p.protection == "measured_capacity"]
    assert (measured.engine_id, measured.factor) == ("engine-b", pytest.approx(0.36, abs=0.06))
    assert shed_rps(slow) > 20.0
    assert shed_rps(well) == 0.0


def surge_seen_late(surge_most: float) -> tuple[int, float]:
    """Let a cluster ask for half as much again while signals are 20 s late; give (spilled, mean ms since then)."""
    data_plane = DataPlaneSettings(guards=GuardSettings(surge_most=surge_most))
    quiet = replace(
        three_regions(), clusters=tuple(replace(c, rate_rps=0.9 * c.rate_rps) for c in three_regions().clusters)
    )
    settings = LoopSettings(dataplane=data_plane, delay_s=20.0)
    loop = ClosedLoop(quiet, settings, Glop(threads=1), START_MS, np.random.default_rng(1))
    loop.warm_up(limit_s=60.0)
    start_s = loop.simulation.timeline.now_s
    took: list[float] = []

    def end(request: Request, ended: Ended) -> None:
        if request.arrived_s >= start_s + 80.0 and ended.latency_s is not None:
            took.append(ended.latency_s)

    loop.simulation.listeners.append(end)
    for timed in parse_script("t=80 surge cluster-a 1.5", quiet.names):
        loop.simulation.schedule(timed, start_s)
    loop.simulation.run_until(start_s + 100.0)
    return loop.simulation.tally.spilled, 1000 * sum(took) / len(took)


def test_a_surge_that_the_signals_tell_late_is_answered_by_the_gateway_that_meets_it() -> None:
    spilled, quick_ms = surge_seen_late(2.0)
    none, slow_ms = surge_seen_late(1.0)
    assert none == 0 < spilled
    assert quick_ms < 0.8 * slow_ms
