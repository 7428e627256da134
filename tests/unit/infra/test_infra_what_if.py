"""What an edit makes of a tick: typed strictly, solved as the solver solves, with nothing learnt on the way."""

from dataclasses import replace

import pytest

from headrace.infra.past_tick.again import Again
from headrace.infra.what_if.answer import WhatIf, what_if
from headrace.infra.what_if.edits import Asked, edited, parse_edits, remembered
from headrace.infra.what_if.lines import what_if_lines
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import PPM, EngineMemory, Reason
from headrace.solver.core.problem import Exclusion, Problem
from headrace.solver.core.tick import TickStamp, hold_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from past_ticks import TICK_MS, A, B, acted_on, shares, solved, three_regions

SETTINGS = SolverSettings()


def ask(
    problem: Problem,
    capacity: tuple[str, ...] = (),
    replicas: tuple[str, ...] = (),
    drain: tuple[str, ...] = (),
    demand: tuple[str, ...] = (),
    back: tuple[str, ...] = (),
) -> WhatIf:
    edits = parse_edits(Asked(capacity, replicas, drain, back, demand), problem)
    return what_if(solved(problem), edits, SETTINGS, Glop(), proved=True)


def surging(rps: float = 300.0) -> Problem:
    plain = three_regions()
    return replace(
        plain, rows=tuple(replace(r, demand_rps=rps) if r.route.cluster == "cluster-b" else r for r in plain.rows)
    )


def frozen(problem: Problem) -> Again:
    """Give a tick that held the weights of before the surge, since an operator wants it."""
    kept = replace(problem, frozen="frozen by ann until noon: hands off")
    before = solved(three_regions()).tick.snapshot
    return Again(kept, hold_tick(kept, before, SETTINGS, TickStamp(1, 8, TICK_MS + 4_000), kept.frozen), ())


def after(found: WhatIf, route: str) -> dict[str, int]:
    return {s.engine_id: s.after_ppm for s in found.shares if s.route == route and s.after_ppm}


def test_both_sides_are_of_the_demand_of_the_tick_though_records_that_stand_are_of_an_older_one() -> None:
    times = {"cluster-a": 1.01, "cluster-b": 1.015, "cluster-c": 0.985}
    plain = three_regions()
    rows = tuple(replace(r, demand_rps=r.demand_rps * times[r.route.cluster]) for r in plain.rows)
    now = replace(plain, rows=rows)
    again = solved(now, solved(plain).tick.snapshot, version=8)
    assert {r.version for r in again.tick.snapshot.routes} == {7}
    edits = parse_edits(Asked((), ("engine-b=2",), (), (), ()), now)
    found = what_if(again, edits, SETTINGS, Glop(), proved=True)
    asked = {str(r.route): pytest.approx(r.demand_rps) for r in rows}
    for side in ("before_rps", "after_rps"):
        assert {name: sum(getattr(s, side) for s in found.shares if s.route == name) for name in asked} == asked
    assert sum(e.before_load_rps for e in found.engines) == pytest.approx(found.before.demand_rps)


def test_a_drained_engine_gets_nothing_and_what_does_not_fit_is_shed() -> None:
    found = ask(three_regions(), drain=("engine-b",))
    assert all(s.after_ppm == 0 for s in found.shares if s.engine_id == "engine-b")
    # 250 RPS beside 180 of capacity.
    assert found.after.shed_rps == pytest.approx(70.0, abs=0.5)
    assert found.after.capacity_rps == pytest.approx(180.0)
    assert found.before.shed_rps == pytest.approx(0.0, abs=1e-6)
    assert found.edits == ("engine-b is drained",)


def test_no_capacity_is_the_same_as_drained() -> None:
    drained, empty = ask(three_regions(), drain=("engine-b",)), ask(three_regions(), capacity=("engine-b=0",))
    assert after(empty, B) == after(drained, B)
    assert empty.after == drained.after


def test_capacity_that_is_said_counts_whatever_the_engine_is_now() -> None:
    plain = three_regions()
    out = replace(plain.engines[1], exclusion=Exclusion(Reason.STALE, "silent"), factor=0.3)
    found = ask(replace(plain, engines=(plain.engines[0], out, plain.engines[2])), capacity=("engine-b=100",))
    assert found.before.capacity_rps == pytest.approx(180.0)
    assert found.after.capacity_rps == pytest.approx(280.0)
    assert 600_000 < after(found, B)["engine-b"] < 800_000  # it stays with what took its place as far as is warm


def test_demand_is_multiplied_set_or_added_to_for_a_cluster_or_one_route() -> None:
    problem = three_regions()
    for text, rps in (
        ("cluster-b*1.5", 180.0),
        ("cluster-b=60", 60.0),
        ("cluster-b+20", 140.0),
        (f"{B}*0.5", 60.0),
        ("cluster-b*0", 0.0),
    ):
        (edit,) = parse_edits(Asked(demand=(text,)), problem)
        assert [row.demand_rps for row in edited(problem, (edit,)).rows] == [90.0, rps, 40.0], text


def test_more_replicas_come_to_what_the_solver_comes_to_once_they_are_there() -> None:
    problem = three_regions()
    found = ask(problem, replicas=("engine-b=2",))
    engine = problem.engines[1]
    grown = replace(problem, engines=(problem.engines[0], replace(engine, ready_replicas=6), problem.engines[2]))
    # Six replicas of 25 RPS; the solver, from the weights that stood, until they stay.
    snapshot = solved(problem).tick.snapshot
    for version in range(8, 20):
        snapshot = solved(grown, snapshot, version).tick.snapshot
    for route in (A, B):
        there = shares(snapshot, route)
        for name, ppm in after(found, route).items():
            assert ppm == pytest.approx(there.get(name, 0), abs=0.05 * PPM)
    (b,) = (e for e in found.engines if e.engine_id == "engine-b")
    assert (b.before_capacity_rps, b.after_capacity_rps) == (100.0, 150.0)
    assert found.after.mean_ms < found.before.mean_ms
    assert found.settled


def test_replicas_may_be_taken_away_to_the_last() -> None:
    found = ask(three_regions(), replicas=("engine-b=-4",))
    assert "engine-b" not in after(found, B)
    assert found.edits == ("engine-b has 4 replicas fewer",)


def test_what_the_solver_remembers_of_an_engine_stays_but_for_a_capacity_that_is_said() -> None:
    problem = three_regions()
    memories = (
        EngineMemory("engine-a", trim_ppm=1_200_000, trim_step=4, penalty_ppm=500_000),
        EngineMemory("engine-b", trim_ppm=1_300_000, trim_step=5, penalty_ppm=250_000),
    )
    previous = acted_on(solved(problem), remembered=memories).tick.snapshot
    edits = parse_edits(Asked(capacity=("engine-b=50",)), problem)
    assert remembered(previous, edits).commit.remembered == (
        memories[0],
        EngineMemory("engine-b", trim_ppm=1_300_000, trim_step=5),
    )


def test_everything_that_is_no_change_is_told_at_once_with_the_nearest_name() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_edits(
            Asked(
                capacity=("engine-a", "engine-a=-1", "engine-a=nan"),
                replicas=("engine-a=0", "engine-a=1.5"),
                drain=("engine-x",),
                demand=("cluster-b", "cluster-q*2", "cluster-b*-1"),
            ),
            three_regions(),
        )
    assert caught.value.problems == (
        "--capacity is 'engine-a'; expected ENGINE=RPS, such as engine-a=0",
        "--capacity is 'engine-a=-1'; expected ENGINE=RPS, such as engine-a=0",
        "--capacity is 'engine-a=nan'; expected ENGINE=RPS, such as engine-a=0",
        "--add-replicas is 'engine-a=0'; expected ENGINE=NUMBER, such as engine-a=2 or engine-a=-1",
        "--add-replicas is 'engine-a=1.5'; expected ENGINE=NUMBER, such as engine-a=2 or engine-a=-1",
        "--drain is 'engine-x'; 'engine-x' is not there, the nearest is engine-c",
        "--demand is 'cluster-b'; expected CLUSTER*FACTOR, CLUSTER=RPS or CLUSTER+RPS, such as tokyo*1.3",
        "--demand is 'cluster-q*2'; 'cluster-q' is not there, the nearest is cluster-c",
        "--demand is 'cluster-b*-1'; expected CLUSTER*FACTOR, CLUSTER=RPS or CLUSTER+RPS, such as tokyo*1.3",
    )


def test_people_get_both_tables_and_the_means() -> None:
    text = "\n".join(what_if_lines(ask(three_regions(), replicas=("engine-b=2",), demand=("cluster-b*1.2",))))
    for words in (
        "what if engine-b has 2 replicas more; cluster-b asks for 1.2 times as much; against version 7",
        "before  mean",
        "after   mean",
        "/150.0",
        "settled after",
    ):
        assert words in text


def test_whose_requests_are_shed_comes_first_and_adds_up_with_the_engines_to_what_is_asked() -> None:
    found = ask(three_regions(), drain=("engine-b",))
    (shed,) = found.sheds
    assert (shed.route, shed.before_demand_rps, shed.after_demand_rps) == (B, 120.0, 120.0)
    assert shed.after_rps == pytest.approx(found.after.shed_rps)
    lines = what_if_lines(found)
    assert lines[1] == f"shed, more: 0.0 -> 70.0 RPS: {B} 0.0 -> 70.0 of 120.0"
    table = [line.split() for line in lines if line.startswith(B)]
    assert table[-1][1:] == ["(shed)", "0.0", "%", "58.3", "%", "70.0", "+70.0"]
    assert sum(float(row[4]) for row in table) == pytest.approx(100.0, abs=0.2)
    assert sum(float(row[-1]) for row in table) == pytest.approx(0.0, abs=0.2)


def test_less_demand_in_a_surge_sheds_less_and_sends_nobody_elsewhere() -> None:
    found = ask(surging(), demand=("cluster-b*0.5",))
    assert found.rerouted_rps == pytest.approx(0.0, abs=0.5)
    lines = what_if_lines(found)
    assert lines[1] == f"shed, less: 150.0 -> 0.0 RPS: {B} 150.0 -> 0.0 of 150.0"
    assert lines[-1].startswith("0.0 of 280.0 RPS served go to another engine than before; settled after ")
    assert "moved" not in lines[-1]


def test_an_engine_that_is_out_already_is_told_as_that_and_may_be_asked_back() -> None:
    plain = three_regions()
    out = replace(plain.engines[1], exclusion=Exclusion(Reason.STALE, "silent for 20 s"))
    stale = replace(plain, engines=(plain.engines[0], out, plain.engines[2]))
    drained = ask(stale, drain=("engine-b",))
    (note,) = drained.notes
    assert note.startswith("engine-b is excluded already (STALE, silent for 20 s): to drain it changes nothing")
    assert what_if_lines(drained)[1] == note
    assert "nothing moves" in what_if_lines(drained)
    back = ask(stale, back=("engine-b",))
    assert (back.notes, back.after.capacity_rps, back.after.shed_rps) == ((), 280.0, pytest.approx(0.0, abs=1e-6))
    assert ask(plain, back=("engine-b",)).notes == ("engine-b is not out",)


def test_while_all_is_frozen_it_says_what_would_move_if_that_ended() -> None:
    again = frozen(surging())
    edits = parse_edits(Asked(unfreeze=True), again.problem)
    found = what_if(again, edits, SETTINGS, Glop(), proved=True)
    stood = shares(again.tick.snapshot, B)
    assert {s.engine_id: s.before_ppm for s in found.shares if s.route == B} == pytest.approx(stood, abs=2)
    assert found.before.demand_rps == pytest.approx(430.0)
    assert after(found, B) == pytest.approx(after(ask(surging(), demand=("cluster-b*1",)), B), abs=0.01 * PPM)
    assert found.rerouted_rps > 10.0
    with pytest.raises(InvalidInputError, match="--unfreeze says what would come if that ended now"):
        what_if(again, parse_edits(Asked(drain=("engine-b",)), again.problem), SETTINGS, Glop(), proved=True)
    with pytest.raises(InvalidInputError, match="nothing is frozen at version 7"):
        what_if(solved(three_regions()), edits, SETTINGS, Glop(), proved=True)


def test_without_the_freeze_a_fleet_that_nothing_is_known_of_would_still_be_held() -> None:
    plain = three_regions()
    silent = tuple(replace(e, exclusion=Exclusion(Reason.STALE, "silent for 20 s")) for e in plain.engines)
    again = frozen(replace(plain, engines=silent))
    edits = parse_edits(Asked(unfreeze=True), again.problem)
    with pytest.raises(InvalidInputError, match="would still be HELD without the freeze"):
        what_if(again, edits, SETTINGS, Glop(), proved=True)
