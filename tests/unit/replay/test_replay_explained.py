"""An explanation is of the tick it stands under: of the snapshot before it, its settings, the share in its heading."""

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from fleet_inputs import three_regions
from headrace.infra.cli import headrace
from headrace.infra.fleet.closed_loop import LoopSettings
from headrace.infra.simulate.run import Plan, simulate
from headrace.infra.simulate.trace_arrivals import with_trace
from headrace.infra.traces import read_trace
from headrace.replay.report.differences import OTHERWISE, decider, largest_differences
from headrace.replay.score.length_spread import equal_lengths
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.variant import score_variant
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from played_ticks import played
from replay_history import SETTINGS, START_MS, Run
from solver_problems import engine, problem, profile, row

LP = Glop(threads=1)
LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))
WORLD = problem([row("A", 9.0)], [engine("e1"), engine("e2")], 2.0, (LINE,))


def agrees(share: float, sentence: str) -> bool:
    """Whether the share that a sentence tells, if it tells one, is that of its heading."""
    told = re.search(r"sends \S+ ([\d.]+) %", sentence)
    return told is None or abs(float(told[1]) / 100.0 - share) < 0.0006


def test_the_first_tick_of_a_simulation_is_explained_upon_the_snapshot_that_stood_before_it() -> None:
    fleet = with_trace(three_regions(), read_trace("azure", None), 0.5, 60.0, 1)
    plan = Plan(fleet, 3.0, (), equal_lengths(), 1, ScoreSettings())
    settings = [SolverSettings(period_ms=1000, policy=policy) for policy in ("proportional", "pid")]
    runs = [simulate(s.policy, plan, LoopSettings(solver=s, delay_s=0.5), LP, lambda _: False) for s in settings]
    scores = [run.score for run in runs]
    first = [score.witnesses[0] for score in scores]
    assert all(witness.previous is not None for witness in first)
    deciders = {s.policy: decider(s, LP) for s in settings}
    for score in scores:
        witness = score.witnesses[0]
        again = deciders[score.name](witness).snapshot
        assert again.commit.digest == witness.tick.snapshot.commit.digest
    for found in largest_differences(scores[0], scores[1:], deciders):
        assert agrees(found.recorded_share, found.recorded_because[0])
        assert agrees(found.share, found.because[0])


def test_a_tick_that_comes_out_otherwise_when_decided_again_is_not_explained_by_terms_of_another_answer() -> None:
    settings = SolverSettings(period_ms=1000)
    ticks = [[played(float(s), WORLD, {"A": {"e1": e1, "e2": 1.0 - e1}}) for s in range(5)] for e1 in (0.9, 0.2)]
    scores = [score_variant(name, each) for name, each in zip(("one", "other"), ticks, strict=True)]
    found = largest_differences(scores[0], scores[1:], {"one": decider(settings, LP), "other": decider(settings, LP)})
    assert found
    assert {each.recorded_because for each in found} == {("why", OTHERWISE)}


def test_a_difference_is_of_the_demand_of_its_tick_though_records_that_stand_are_of_an_older_one() -> None:
    scores = []
    for e1 in (0.9, 0.2):
        ticks = [played(float(s), WORLD, {"A": {"e1": e1, "e2": 1.0 - e1}}) for s in range(5)]
        old = [tuple(replace(r, demand_rps=8.7) for r in tick.snapshot.routes) for tick in ticks]
        stand = [replace(t, snapshot=replace(t.snapshot, routes=o)) for t, o in zip(ticks, old, strict=True)]
        scores.append(score_variant(f"{e1}", stand))
    found = largest_differences(scores[0], scores[1:], {})
    # Seven tenths of 9 RPS are decided otherwise, at either engine.
    assert [each.rps for each in found] == pytest.approx([6.3, 6.3])


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of the program, which a P controller takes over in the middle, beside the program all the way."""
    place = tmp_path_factory.mktemp("changed")
    run = Run()
    run.declare()
    for number in range(16):
        if number == 8:
            run.settings = replace(SETTINGS, policy="proportional", proportional_gain=0.5)
            run.new_writer()
        run.beat(60.0 + 4 * (number % 5), {"engine-b": 3.0} if number > 8 else None)
        run.tick()
    asked = ("replay", "run", "--dir", run.write(place / "h"), "--policy", "lp", "--out", place / "o", "--processes", 1)
    result = CliRunner().invoke(headrace, [str(each) for each in asked])
    assert result.exit_code == 0, result.output + repr(result.exception)
    document: dict[str, Any] = orjson.loads((place / "o" / "comparison.json").read_bytes())
    return document


def test_ticks_after_a_change_of_policy_are_explained_by_the_policy_that_decided_them(changed: dict[str, Any]) -> None:
    assert changed["differences"]
    for each in changed["differences"]:
        assert each["at_ms"] >= START_MS + 8_000
        assert OTHERWISE not in each["recorded_because"]
        assert any("decided without prices" in sentence for sentence in each["recorded_because"])
        assert agrees(each["recorded_share"], each["recorded_because"][0])


def test_a_change_of_policy_within_the_range_is_told_beside_the_verdict(changed: dict[str, Any]) -> None:
    assert any(
        "changed within the range: lp, proportional from 2023-11-14T22:13:28Z." in c for c in changed["cautions"]
    )
