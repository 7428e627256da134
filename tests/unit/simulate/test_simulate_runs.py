"""Policies in closed loop: the command, an interrupted run, and the metric that it shares with the experiments."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fleet_inputs import START_MS, three_regions
from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.infra.cli import headrace
from headrace.infra.fleet.closed_loop import ClosedLoop, LoopSettings
from headrace.infra.fleet.request import Ended, Kind, Request
from headrace.infra.simulate.compare_runs import compared
from headrace.infra.simulate.observer import Observer
from headrace.infra.simulate.run import Plan, simulate
from headrace.infra.simulate.trace_arrivals import with_trace
from headrace.infra.traces import read_trace
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.variant import parse_variants
from headrace.replay.score.length_spread import equal_lengths
from headrace.replay.score.movement import moved_per_minute
from headrace.replay.score.off_policy import OffPolicyEstimate
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import moved_percent_a_minute
from headrace.replay.score.variant import VariantScorer
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings

OLD_LOOP = SolverSettings(policy="proportional", proportional_gain=0.3)


def test_the_moved_traffic_of_a_score_is_that_of_the_closed_loop_experiments() -> None:
    loop = ClosedLoop(
        three_regions(), LoopSettings(solver=OLD_LOOP, delay_s=5.0), Glop(1), START_MS, np.random.default_rng(1)
    )
    scorer = VariantScorer("old loop")
    loop.warm_up(60.0)
    from_s = loop.simulation.timeline.now_s
    loop.watchers.append(
        lambda problem, tick: scorer.add(PlayedTick(tick.snapshot.commit.tick_ms, problem, tick.snapshot, tick.record))
    )
    loop.simulation.run_until(from_s + 20.0)
    experiment = moved_per_minute(loop.snapshots, from_s + 0.5, from_s + 20.0)
    assert experiment > 0.0
    assert moved_percent_a_minute(scorer.finish().sums) == pytest.approx(experiment, rel=0.1)


def test_the_command_writes_a_report_of_every_policy_and_prints_the_table(tmp_path: Path) -> None:
    faults = tmp_path / "faults.txt"
    faults.write_text("t=4s replicas engine-a 3\n")
    arguments = f"replay simulate --out {tmp_path}/out --for 10 --load 0.05 --delay 0.5 --faults {faults}"
    policies = ["--policy", "old=proportional:k=0.3", "--policy", "lp", "--set", "solver.period_ms=1000"]
    result = CliRunner().invoke(headrace, [*arguments.split(), *policies])
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert [v["name"] for v in written["variants"]] == ["old", "lp"]
    assert written["complete"]
    assert written["recorded"] == "old"
    assert written["variants"][0]["sessions"]["returning"] > 0
    assert written["variants"][1]["off_policy"]["outcome"] in ("ESTIMATED", "REFUSED")
    assert written["variants"][1]["numbers"]["mean_ms"]["value"] > 0.0
    assert "faults of faults.txt" in written["source"]
    assert "report:" in result.output


def test_a_run_that_is_interrupted_gives_what_it_has() -> None:
    fleet = with_trace(three_regions(), read_trace("azure", None), 0.02, 60.0, 1)
    plan = Plan(fleet, 30.0, (), equal_lengths(), 1, ScoreSettings())
    asked: list[float] = []

    def advance(step_s: float) -> bool:
        asked.append(step_s)
        return len(asked) == 3

    settings = LoopSettings(solver=SolverSettings(period_ms=1000), delay_s=0.5)
    run = simulate("lp", plan, settings, Glop(1), advance)
    assert run.seconds == 3.0
    assert run.score.ticks == 3


def test_the_same_seed_gives_the_same_score() -> None:
    fleet = with_trace(three_regions(), read_trace("azure", None), 0.02, 60.0, 1)
    plan = Plan(fleet, 3.0, (), equal_lengths(), 1, ScoreSettings())
    settings = LoopSettings(solver=SolverSettings(period_ms=1000), delay_s=0.5)
    runs = [simulate("lp", plan, settings, Glop(1), lambda _: False) for _ in range(2)]
    assert runs[0].score.sums.tolist() == runs[1].score.sums.tolist()
    assert runs[0].waited == runs[1].waited


def test_requests_of_one_session_are_one_draw_of_an_estimate() -> None:
    fleet = with_trace(three_regions(), read_trace("azure", None), 0.2, 60.0, 1)
    plan = Plan(fleet, 10.0, (), equal_lengths(), 1, ScoreSettings())
    settings = LoopSettings(solver=SolverSettings(period_ms=1000), delay_s=0.5)
    run = simulate("lp", plan, settings, Glop(1), lambda _: False)
    sessions = {choice.session for choice in run.choices}
    assert None not in sessions
    assert len(sessions) < len(run.choices) / 1.5
    found = compared({"lp": run}, parse_variants(("lp",), (), settings.solver), plan.score).variants[0].off_policy
    assert isinstance(found, OffPolicyEstimate)
    assert found.choices == len(run.choices)
    assert found.effective <= len(sessions)


def test_an_estimate_takes_the_data_planes_propensity_and_leaves_out_what_was_not_drawn() -> None:
    observer = Observer("m", 0.0, lambda at_s: round(1000 * at_s))
    for number, (reason, propensity) in enumerate(
        [
            (DecisionReason.SLOT, 0.25),
            (DecisionReason.RELEASED, 1.0),
            (DecisionReason.HINT, 0.5),
            (DecisionReason.FAILOVER, 0.75),
            (DecisionReason.SLOT, None),
        ]
    ):
        decision = Decision(Outcome.ROUTED, "e", None, reason, propensity=propensity)
        request = Request(number, "c", float(number), b"s", 1, 1)
        observer.end(request, Ended(Kind.ANSWERED, "OK", "e", 0.5, 0.1, 1, decision))
    assert [(choice.at_ms, choice.propensity) for choice in observer.choices] == [(0, 0.25), (3_000, 0.75)]
