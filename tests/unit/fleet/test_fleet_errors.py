"""The whole loop when an engine fails requests: by the solver alone it loses its traffic, and gets it back.

The data planes' own ejections are off: they act first, and by themselves.
"""

from dataclasses import replace

import numpy as np
import pytest

from fleet_inputs import START_MS
from headrace.dataplane.settings import DataPlaneSettings, GuardSettings
from headrace.infra.demo.movement import shares
from headrace.infra.fleet import simulation
from headrace.infra.fleet.closed_loop import ClosedLoop, LoopSettings
from headrace.infra.fleet.curves import h100_curve
from headrace.infra.fleet.engine_signals import signals_record
from headrace.infra.fleet.scenario import ClusterSpec, Scenario, engine_setup, profile_of
from headrace.infra.fleet.script import parse_script
from headrace.schemas.weights import Snapshot
from headrace.solver.glop import Glop

ENGINES = 8
EVEN = 1 / ENGINES


def one_pool() -> Scenario:
    curve = h100_curve()
    return Scenario(
        name="one-pool",
        model=curve.model,
        clusters=(ClusterSpec("cluster-a", "us-east-1", 96.0, 0.0),),
        engines=tuple(engine_setup(f"engine-{n}", "us-east-1", 1, 20.0, curve) for n in range(ENGINES)),
        profiles=(profile_of(curve, 20.0),),
        mean_tokens=(curve.input_tokens, curve.output_tokens),
    )


def run(script: str, seconds: float, seed: int = 1) -> tuple[ClosedLoop, float]:
    quiet = DataPlaneSettings(guards=GuardSettings(error_once_in=1e18, ttft_requests=100_000))
    loop = ClosedLoop(one_pool(), LoopSettings(dataplane=quiet), Glop(threads=1), START_MS, np.random.default_rng(seed))
    loop.warm_up()
    start_s = loop.simulation.timeline.now_s
    for timed in parse_script(script, one_pool().names):
        loop.simulation.schedule(timed, start_s)
    loop.simulation.run_until(start_s + seconds)
    return loop, start_s


def share_at(loop: ClosedLoop, at_s: float, engine_id: str = "engine-3") -> float:
    (route,) = snapshot_at(loop, at_s).routes
    return shares(route).get(engine_id, 0.0)


def snapshot_at(loop: ClosedLoop, at_s: float) -> Snapshot:
    return next(snapshot for time_s, snapshot in reversed(loop.snapshots) if time_s <= at_s)


def test_an_engine_that_fails_a_fifth_of_its_requests_loses_most_of_its_traffic_and_gets_it_back() -> None:
    loop, start_s = run("t=20 errors engine-3 0.2\nt=60 heal engine-3", 260.0)
    assert share_at(loop, start_s + 19.0) == pytest.approx(EVEN, abs=0.03)
    assert share_at(loop, start_s + 40.0) < EVEN / 3
    told = [p for p in snapshot_at(loop, start_s + 40.0).commit.protections if p.engine_id == "engine-3"]
    assert [p.protection for p in told if p.factor < 0.5] == ["errors"]
    assert share_at(loop, start_s + 250.0) > 0.8 * EVEN
    last = snapshot_at(loop, start_s + 250.0).commit
    assert [p for p in last.protections if p.protection == "errors"] == []


def test_a_fleet_that_all_fails_alike_goes_on_as_before() -> None:
    everyone = "\n".join(f"t=10 errors engine-{n} 0.2" for n in range(ENGINES))
    loop, _ = run(everyone, 60.0)
    acted = {p.protection for _, snapshot in loop.snapshots for p in snapshot.commit.protections}
    assert "errors" not in acted


@pytest.mark.parametrize("seed", [1, 2])
def test_failures_at_the_base_rate_of_everybody_penalise_nobody(seed: int) -> None:
    everyone = "\n".join(f"t=0 errors engine-{n} 0.005" for n in range(ENGINES))
    loop, _ = run(everyone, 120.0, seed)
    acted = {p.protection for _, snapshot in loop.snapshots for p in snapshot.commit.protections}
    assert "errors" not in acted


def test_counting_how_requests_end_changes_no_weight_while_none_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, _ = run("", 20.0)
    monkeypatch.setattr(simulation, "signals_record", lambda *told: replace(signals_record(*told), outcomes=None))
    uncounted, _ = run("", 20.0)
    assert counted.snapshots == uncounted.snapshots
