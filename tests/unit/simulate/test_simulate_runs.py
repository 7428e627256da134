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
from headrace.replay.score.latency_mass import mass_of
from headrace.replay.score.length_spread import equal_lengths
from headrace.replay.score.movement import moved_per_minute
from headrace.replay.score.off_policy import OffPolicyEstimate
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of, moved_percent_a_minute
from headrace.replay.score.variant import VariantScorer
from headrace.schemas.errors import InvalidInputError
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
    assert written["variants"][0]["met"]["requests"] > 0
    assert written["verdict"][0].count("simulated users") >= 1
    assert "recorded" not in result.output
    assert "recorded" not in " ".join((*written["verdict"], written["calibration"]["sentence"], *written["notes"]))
    heading, columns, first, *_ = (line for line in result.stdout.splitlines() if line)
    assert heading.startswith("latencies, failed and shed as simulated users met them")
    assert columns.split()[:9] == ["variant", "mean", "ms", "p95", "ms", "p99", "ms", "failed", "%"]
    assert first.split()[0] == "old"
    assert first.split()[1] == f"{written['variants'][0]['numbers']['met_mean_ms']['value']:,.0f}"


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
    met = [run.score.met.mass.tolist() for run in runs if run.score.met is not None]
    assert met[0] == met[1]


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


def simulated(*arguments: object) -> str:
    """What the command says that does not do what it was asked for."""
    result = CliRunner().invoke(headrace, ["replay", "simulate", *(str(each) for each in arguments)])
    assert isinstance(result.exception, InvalidInputError), repr(result.exception)
    return str(result.exception)


def test_a_folder_that_holds_something_is_not_written_over_unless_told_to(tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text("mine")
    told = simulated("--out", tmp_path, "--for", 10)
    assert "which is not empty; a folder that is empty or new, or --force" in told
    assert (tmp_path / "comparison.json").read_text() == "mine"
    asked = (
        f"replay simulate --out {tmp_path} --force --for 10 --load 0.02 --policy nearest --set solver.period_ms=1000"
    )
    assert CliRunner().invoke(headrace, asked.split()).exit_code == 0
    assert json.loads((tmp_path / "comparison.json").read_text())["recorded"] == "nearest"


def test_faults_that_would_come_after_the_end_are_each_told(tmp_path: Path) -> None:
    faults = tmp_path / "faults.txt"
    faults.write_text("t=4s kill engine-a\nt=10s revive engine-a\nt=2m slow engine-b 3\n")
    told = simulated("--out", tmp_path / "out", "--for", 10, "--faults", faults)
    assert "t=10s" in told
    assert "t=120s" in told
    assert "t=4s" not in told
    assert "would never happen: the run ends at 10 s (--for)" in told


def test_users_are_counted_by_what_became_of_them_and_when_they_sent() -> None:
    observer = Observer("m", 10.0, lambda at_s: round(1000 * at_s))
    endings = [
        (9.9, Ended(Kind.ANSWERED, "OK", "e", 9.0, 0.1, 1)),  # sent before scoring begins
        (10.0, Ended(Kind.ANSWERED, "OK", "e", 0.5, 0.1, 1)),
        (10.5, Ended(Kind.ANSWERED, "OK", "e", 1.5, 0.1, 2)),
        (12.0, Ended(Kind.REFUSED, "SHED", None, None, None, 0)),
        (12.0, Ended(Kind.REFUSED, "QUEUE_FULL", "e", None, None, 2)),
        (12.5, Ended(Kind.FAILED, "BROKEN_OFF", "e", None, None, 1)),
    ]
    for number, (sent_s, ended) in enumerate(endings):
        observer.end(Request(number, "c", sent_s, b"s%d" % number, 1, 1), ended)
    met = observer.met
    kinds = (Of.OFFERED, Of.SERVED, Of.SHED, Of.REFUSED, Of.ENGINE)
    assert [float(met.sums[kind]) for kind in kinds] == [5.0, 2.0, 1.0, 2.0, 2.0]
    assert [(at_ms, float(each.sums[Of.OFFERED])) for at_ms, each in met.bins] == [(10_000, 2.0), (12_000, 3.0)]
    assert met.mass.tolist() == mass_of(np.array([0.5, 1.5]), np.ones(2)).tolist()


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
