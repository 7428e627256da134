"""A tick's decision: what makes it wait, hold or solve; a snapshot that its own check refuses is never given out."""

from dataclasses import replace

import pytest

from headrace.schemas.records import Record
from headrace.schemas.weights import Snapshot, SnapshotStatus
from headrace.solver.core import decide as module
from headrace.solver.core.decide import Decided, Waiting, decide
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.state_view import StateFold
from headrace.solver.core.linear import Failed, LinearProgram, Method
from headrace.solver.core.problem import Problem
from headrace.solver.core.tick import Tick, TickStamp
from headrace.solver.settings import SolverSettings
from solver_inputs import NOW_MS, TOPICS, demand_state, engine_state, network_state, profile, raw, spec
from solver_ticks import snapshot_of, stamp, tick_of

SETTINGS = SolverSettings()
STAMP = stamp(1, 2)
ONE_ROUTE = {"A|m|default": {"e1": 1_000_000}}
PREVIOUS, _ = snapshot_of(ONE_ROUTE, stamp(1, 1))


class NoLp:
    def solve(self, programs: list[LinearProgram], method: Method) -> tuple[Failed, ...]:  # noqa: ARG002 - the port's
        return tuple(Failed("NOT_ASKED") for _ in programs)


def problem_of(*records: Record) -> Problem:
    fold = StateFold(TOPICS)
    for record in records:
        assert fold.offer(raw(record)) is None
    return assemble(fold.view(), SETTINGS, NOW_MS)


WHOLE = (spec("e1"), profile(), engine_state("e1"), demand_state("A", 10.0), network_state("A", "site-a", 0.01))
LOST = (spec("e1"), profile(), engine_state("e1", NOW_MS - 60_000), demand_state("A", 10.0))


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the solve: it answers with one route, and a hold answers with the snapshot before."""

    def solve(_p: Problem, previous: Snapshot | None, _s: SolverSettings, _lp: NoLp, at: TickStamp) -> Tick:
        return tick_of(ONE_ROUTE, at, previous)

    def hold(_p: Problem, previous: Snapshot, _s: SolverSettings, at: TickStamp, sentence: str) -> Tick:
        return tick_of(ONE_ROUTE, at, previous, SnapshotStatus.HELD, sentence)

    monkeypatch.setattr(module, "solve_tick", solve)
    monkeypatch.setattr(module, "hold_tick", hold)


NO_PROFILE = (
    spec("e1", capacity_rps_per_replica=None),
    engine_state("e1"),
    demand_state("A", 10.0),
    network_state("A", "site-a", 0.01),
)


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ((), "there are no engines in the fleet yet"),
        ((spec("e1"), profile()), "none of 1 engines has been heard of yet"),
        (NO_PROFILE, "none of 1 engines has a known profile yet"),
        (
            (spec("e1"), profile(), engine_state("e1")),
            "no cluster is known yet: neither demand nor a network probe has come",
        ),
    ],
)
def test_before_the_first_snapshot_it_waits_for_what_is_missing(records: tuple[Record, ...], sentence: str) -> None:
    assert decide(problem_of(*records), None, SETTINGS, NoLp(), STAMP, NOW_MS) == Waiting(
        sentence, nothing_to_solve=True
    )


def test_the_first_snapshot_has_patience_with_what_is_not_heard_of_yet_but_not_for_ever() -> None:
    problem = problem_of(*WHOLE, spec("e2", site="site-b"))
    within = decide(problem, None, SETTINGS, NoLp(), STAMP, NOW_MS - 2_999)
    assert within == Waiting("1 of 2 engines and 1 of 2 round trips not heard of yet")
    assert isinstance(decide(problem, None, SETTINGS, NoLp(), STAMP, NOW_MS - 3_000), Decided)
    assert isinstance(decide(problem, PREVIOUS, SETTINGS, NoLp(), STAMP, NOW_MS), Decided)


def test_a_first_snapshot_is_not_made_without_any_round_trip_and_says_what_to_publish() -> None:
    problem = problem_of(*WHOLE[:4])
    assert decide(problem, None, SETTINGS, NoLp(), STAMP, NOW_MS - 2_999) == Waiting(
        "1 of 1 round trips not heard of yet"
    )
    assert decide(problem, None, SETTINGS, NoLp(), STAMP, NOW_MS - 3_000) == Waiting(
        "no round trips: publish NetworkProbe, see README", overdue=True
    )


def test_a_first_snapshot_says_what_it_was_made_without() -> None:
    problem = problem_of(*WHOLE, demand_state("B", 1.0))
    decision = decide(problem, None, SETTINGS, NoLp(), STAMP, NOW_MS - 3_000)
    assert isinstance(decision, Decided)
    assert decision.without == "1 of 2 round trips"


def test_with_no_profile_left_the_last_snapshot_is_held() -> None:
    decision = decide(problem_of(*NO_PROFILE), PREVIOUS, SETTINGS, NoLp(), STAMP, NOW_MS)
    assert isinstance(decision, Decided)
    assert decision.tick.snapshot.commit.status is SnapshotStatus.HELD
    assert decision.tick.record.sentence.startswith("profiles lost: none of 1 engines has a known one")


def test_with_everything_there_it_solves() -> None:
    decision = decide(problem_of(*WHOLE), None, SETTINGS, NoLp(), STAMP, NOW_MS)
    assert isinstance(decision, Decided)
    assert decision.tick.snapshot.commit.status is SnapshotStatus.OPTIMAL


def test_with_all_telemetry_lost_the_last_snapshot_is_held() -> None:
    decision = decide(problem_of(*LOST), PREVIOUS, SETTINGS, NoLp(), STAMP, NOW_MS)
    assert isinstance(decision, Decided)
    assert decision.tick.snapshot.commit.status is SnapshotStatus.HELD
    assert decision.tick.record.sentence == "telemetry lost: none of 1 engines is heard of, the last weights stand"
    assert decision.tick.snapshot.commit.valid_until_ms == NOW_MS + 60_000


def test_a_fleet_that_was_emptied_is_an_answer_not_a_reason_to_wait() -> None:
    assert isinstance(decide(problem_of(), PREVIOUS, SETTINGS, NoLp(), STAMP, NOW_MS), Decided)


def test_a_solve_that_raises_holds_and_says_what_was_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = ZeroDivisionError("by hand")

    def broken(*_: object) -> Tick:
        raise fault

    monkeypatch.setattr(module, "solve_tick", broken)
    held = decide(problem_of(*WHOLE), PREVIOUS, SETTINGS, NoLp(), STAMP, NOW_MS)
    assert isinstance(held, Decided)
    assert held.fault is fault
    assert held.tick.record.sentence == "the solve was refused: ZeroDivisionError: by hand"
    waiting = decide(problem_of(*WHOLE), None, SETTINGS, NoLp(), STAMP, NOW_MS)
    assert waiting == Waiting("the solve was refused: ZeroDivisionError: by hand", fault=fault)


def bad(tick: Tick, wrongs: int = 1) -> Tick:
    """Break a tick's snapshot in that many places."""
    route = replace(tick.snapshot.routes[0], shed_ratio=2.0, retry_ratio=2.0 if wrongs > 1 else 0.1)
    return replace(tick, snapshot=replace(tick.snapshot, routes=(route,) * max(1, wrongs - 2)))


def test_an_unsound_snapshot_is_never_given_out_and_the_hold_names_its_problems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "solve_tick", lambda _p, previous, _s, _lp, at: bad(tick_of(ONE_ROUTE, at, previous)))
    held = decide(problem_of(*WHOLE), PREVIOUS, SETTINGS, NoLp(), STAMP, NOW_MS)
    assert isinstance(held, Decided)
    assert held.tick.snapshot.commit.status is SnapshotStatus.HELD
    assert "A|m|default: shed_ratio is 2.0; 0 to 1" in held.tick.record.sentence


def test_of_many_problems_the_first_five_are_told_and_the_rest_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "solve_tick", lambda _p, previous, _s, _lp, at: bad(tick_of(ONE_ROUTE, at, previous), 5)
    )
    waiting = decide(problem_of(*WHOLE), None, SETTINGS, NoLp(), STAMP, NOW_MS)
    assert isinstance(waiting, Waiting)
    # Three routes where one is committed and the keys repeat: 2; each route's two ratios: 6; the digest: 1.
    assert waiting.sentence.endswith("; and 4 more")


def test_a_hold_that_is_not_sound_either_publishes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "hold_tick", lambda _p, previous, _s, at, _t: bad(tick_of(ONE_ROUTE, at, previous)))
    waiting = decide(problem_of(*LOST), PREVIOUS, SETTINGS, NoLp(), STAMP, NOW_MS)
    assert isinstance(waiting, Waiting)
    assert waiting.sentence.startswith("telemetry lost: none of 1 engines is heard of, the last weights stand; and ")
