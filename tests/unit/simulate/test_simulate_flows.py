"""Flows: the same decisions over rates; by hand where it can be, and against single requests in kind."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fleet_inputs import three_regions
from headrace.infra.cli import headrace
from headrace.infra.fleet.closed_loop import LoopSettings
from headrace.infra.fleet.script import parse_script
from headrace.infra.simulate.flow_demand import FlowDemand, flow_demand
from headrace.infra.simulate.flow_run import simulate_flows
from headrace.infra.simulate.run import Plan, SimulatedRun
from headrace.infra.traces.request_trace import RequestTrace
from headrace.replay.score.length_spread import equal_lengths
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of, moved_percent_a_minute, unserved_percent
from headrace.schemas.errors import InvalidInputError
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings


def run(policy: SolverSettings, script: str = "", seconds: float = 120.0, delay_s: float = 2.0) -> SimulatedRun:
    fleet = three_regions()
    steps = int(seconds / (policy.period_ms / 1000.0))
    rates = np.repeat(np.array([[70.0], [100.0], [40.0]]), steps, axis=1)
    plan = Plan(fleet, seconds, parse_script(script, fleet.names), equal_lengths(), 1, ScoreSettings())
    demand = FlowDemand(policy.period_ms / 1000.0, rates)
    return simulate_flows("x", plan, demand, LoopSettings(solver=policy, delay_s=delay_s), Glop(1), lambda _: False)


def unserved(found: SimulatedRun) -> float:
    """Give what went unserved, %, as users met it."""
    assert found.score.met is not None
    return unserved_percent(found.score.met.sums)


def test_steady_demand_on_a_healthy_fleet_is_all_served_and_the_program_stands_still() -> None:
    found = run(SolverSettings(period_ms=1000), seconds=60.0)
    assert unserved(found) == 0.0
    assert found.score.sums[Of.OFFERED] == pytest.approx(60 * 210.0)
    assert moved_percent_a_minute(found.score.sums) < 5.0


def test_an_engine_that_dies_is_gone_round_at_once_and_excluded_when_its_silence_has_expired() -> None:
    found = run(SolverSettings(period_ms=1000), "t=20s kill engine-b\nt=70s revive engine-b")
    # 180 RPS are left for 210: a seventh is too much for the fifty seconds.
    assert 2.0 < unserved(found) < 8.0
    last = found.score.witnesses[-1].tick.snapshot
    assert any(t.engine_id == "engine-b" and t.weight_ppm for r in last.routes for t in r.targets)


def test_the_old_loop_swings_when_signals_are_late_and_the_program_does_not() -> None:
    old = SolverSettings(
        policy="proportional", proportional_gain=0.3, trim_bound=1.0, cold_ramp_ms=0, backlog_drain_ms=0, period_ms=1000
    )
    script = "t=20s surge cluster-b 1.2"
    swinging, calm = (
        run(policy, script, seconds=100.0, delay_s=10.0) for policy in (old, SolverSettings(period_ms=1000))
    )
    moved = [moved_percent_a_minute(each.score.sums) for each in (swinging, calm)]
    print(f"moved a minute, signals 10 s late: old loop {moved[0]:.1f} %, program {moved[1]:.1f} %")
    assert moved[0] > 3.0 * moved[1]
    assert swinging.score.sums[Of.REVERSALS] > calm.score.sums[Of.REVERSALS]


def test_rates_follow_the_trace_and_their_mean_is_the_load() -> None:
    t_s = np.concatenate([np.linspace(0, 50, 100, endpoint=False), np.linspace(50, 100, 300, endpoint=False)])
    ones = np.ones(400)
    found = flow_demand(three_regions(), RequestTrace("t", "", t_s, ones, ones, None), 0.5, 100.0, 1.0)
    total = found.rps.sum(axis=0)
    assert total.mean() == pytest.approx(140.0, rel=0.05)
    # Three times as many in the second half; the ends of each are averaged with the other.
    assert total[70:80].mean() / total[20:30].mean() == pytest.approx(3.0, rel=0.1)
    assert found.rps[1].sum() / found.rps.sum() == pytest.approx(120.0 / 250.0)


def test_faults_of_single_requests_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="flows have no requests"):
        run(SolverSettings(period_ms=1000), "t=1s errors engine-b 0.5")


def test_the_command_plays_a_trace_as_flows(tmp_path: Path) -> None:
    arguments = f"replay simulate --out {tmp_path} --by flows --for 300 --set solver.period_ms=10000"
    result = CliRunner().invoke(headrace, arguments.split())
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "comparison.json").read_text())
    assert written["variants"][0]["seconds"] == 300.0
    assert written["variants"][0]["sessions"] is None
    assert written["variants"][0]["numbers"]["met_mean_ms"]["value"] > 0.0
    assert "hold 0 measured" not in written["verdict"][2]
