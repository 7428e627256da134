"""Why traffic moved between two snapshots, by what else differs between them."""

from dataclasses import replace

import pytest

from fleet_inputs import NEAREST, fixed_snapshot
from headrace.infra.weights_tail.causes import cause_of, counted_rps, engine_causes
from headrace.infra.weights_tail.route_move import RouteMove, move_words, route_move
from headrace.schemas.weights import Excluded, Protected, Reason, Snapshot

MOVED = {**NEAREST, "cluster-b": {"engine-b": 340_000, "engine-c": 660_000}}


def with_protection(snapshot: Snapshot, *protections: Protected) -> Snapshot:
    return Snapshot(replace(snapshot.commit, protections=protections), snapshot.routes)


def with_demand(snapshot: Snapshot, cluster: str, rps: float) -> Snapshot:
    return Snapshot(
        snapshot.commit, tuple(replace(r, demand_rps=rps) if r.cluster == cluster else r for r in snapshot.routes)
    )


def of_b(before: Snapshot, after: Snapshot) -> RouteMove:
    return route_move(before.routes[1], after.routes[1])


def test_another_mix_of_long_and_short_requests_is_no_change_of_an_engine_s_capacity() -> None:
    def sends(short_rps: float, long_rps: float, version: int) -> Snapshot:
        """To an engine of 20 RPS of work 1: short requests, and long ones of work 4 at four times the price."""
        made = fixed_snapshot({"a": {"e": 1_000_000}}, version)
        only = replace(made.routes[0].targets[0], utilisation=(short_rps + 4 * long_rps) / 20.0, engine_price_ms=100.0)
        short = replace(made.routes[0], demand_rps=short_rps, targets=(only,))
        long = replace(short, request_class="batch", demand_rps=long_rps)
        long = replace(long, targets=(replace(only, engine_price_ms=400.0),))
        return Snapshot(made.commit, (long, short))

    before, after = sends(16.0, 1.0, 1), sends(4.0, 4.0, 2)
    assert not any("capacity" in cause.sentence for cause in engine_causes(before, after))
    plain = Snapshot(before.commit, before.routes[1:])
    assert counted_rps(plain) == {"e": pytest.approx(16.0)}


def test_a_move_names_both_sides_and_sums_what_left() -> None:
    before, after = (
        fixed_snapshot({"c": {"x": 750_000, "y": 250_000}}),
        fixed_snapshot({"c": {"x": 500_000, "z": 500_000}}, 2),
    )
    move = route_move(before.routes[0], after.routes[0])
    assert (move.share, move.rps) == (pytest.approx(0.5), pytest.approx(50.0))
    assert move_words(move) == "50 % (50.0 RPS) from x 25 %, y 25 % to z"


def test_shedding_is_a_side_of_a_move() -> None:
    before = fixed_snapshot({"c": {"x": 1_000_000}})
    shed = replace(before.routes[0], shed_ratio=0.2)
    assert move_words(route_move(before.routes[0], shed)) == "20 % (20.0 RPS) from x to shedding"


def test_many_small_parts_are_counted_but_not_all_named() -> None:
    before = fixed_snapshot({"c": {f"x{i:03}": 1_000 for i in range(1_000)}})
    after = fixed_snapshot({"c": {"y": 1_000_000}}, 2)
    assert move_words(route_move(before.routes[0], after.routes[0])) == "100 % (100.0 RPS) from x000 to y"


def test_the_greatest_change_of_an_engine_of_the_move_is_its_cause() -> None:
    before = fixed_snapshot(NEAREST)
    after = with_protection(
        with_demand(fixed_snapshot(MOVED, 2), "cluster-b", 120.0),
        Protected("engine-b", "backlog", 0.8, "35 stand in line"),
        Protected("engine-b", "outlier", 0.5, "3.0 times as slow as its peers"),
    )
    assert cause_of(of_b(before, after), before, after) == "engine-b: 3.0 times as slow as its peers (outlier)"


def test_without_one_it_is_the_demand_that_changed_its_own_before_that_of_others() -> None:
    before, moved = fixed_snapshot(NEAREST), fixed_snapshot(MOVED, 2)
    other = with_demand(moved, "cluster-c", 180.0)
    assert cause_of(of_b(before, other), before, other) == "cluster-c asks for 180.0 RPS of llama-3.1-8b, 100.0 before"
    own = with_demand(other, "cluster-b", 120.0)
    assert cause_of(of_b(before, own), before, own).startswith("cluster-b asks for 120.0 RPS")


def test_of_snapshots_that_are_not_neighbours_it_says_how_long_ago_the_number_was() -> None:
    # Two routes' moves are told at once, each against the snapshot in which its route was last told of.
    after = with_demand(fixed_snapshot(MOVED, 12), "cluster-c", 115.5)
    said: set[str] = set()
    for age_ms, rps in ((1_000, 130.0), (5_000, 137.1), (11_000, 158.8)):
        old = with_demand(fixed_snapshot(NEAREST), "cluster-c", rps)
        before = replace(old, commit=replace(old.commit, tick_ms=after.commit.tick_ms - age_ms))
        said.add(cause_of(of_b(before, after), before, after).removeprefix("cluster-c asks for 115.5 RPS of "))
    assert said == {
        "llama-3.1-8b, 130.0 before",
        "llama-3.1-8b, 137.1 RPS 5 s before",
        "llama-3.1-8b, 158.8 RPS 11 s before",
    }


def test_a_protection_that_ended_is_a_cause_as_one_that_began() -> None:
    before = with_protection(fixed_snapshot(MOVED), Protected("engine-b", "backlog", 0.8, "35 stand in line"))
    after = fixed_snapshot(NEAREST, 2)
    assert cause_of(of_b(before, after), before, after) == "engine-b: backlog no longer holds it back"


def test_where_nothing_else_differs_the_solver_speaks_for_the_engine_that_gained() -> None:
    before, after = fixed_snapshot(NEAREST), fixed_snapshot(MOVED, 2)
    spoken = tuple(
        replace(r, targets=tuple(replace(t, sentence=f"SPILL: {t.engine_id} is cheaper") for t in r.targets))
        for r in after.routes
    )
    after = Snapshot(after.commit, spoken)
    assert cause_of(of_b(before, after), before, after) == "engine-c: SPILL: engine-c is cheaper"


def test_counted_capacity_is_the_load_of_all_routes_over_the_utilisation_last_written() -> None:
    made = fixed_snapshot(NEAREST)
    routes = tuple(
        replace(r, version=1 + i, targets=tuple(replace(t, utilisation=0.5 if i == 2 else 0.9) for t in r.targets))
        for i, r in enumerate(made.routes)
    )
    # engine-c: 25 RPS of cluster-b and 100 of cluster-c, at 50 % by the route written last.
    assert counted_rps(Snapshot(made.commit, routes))["engine-c"] == pytest.approx(250.0)


def test_a_pin_that_was_said_or_has_ended_is_the_cause_though_it_scales_nothing() -> None:
    said = Protected("engine-c", "pin", 1.0, "cluster-b pinned to exactly 66 % by ann until noon: trial")
    plain, pinned = fixed_snapshot(NEAREST), with_protection(fixed_snapshot(MOVED, 2), said)
    assert cause_of(of_b(plain, pinned), plain, pinned) == f"engine-c: {said.sentence} (pin)"
    back = fixed_snapshot(NEAREST, 3)
    assert cause_of(of_b(pinned, back), pinned, back) == "engine-c: its pin has ended"


def test_what_still_holds_back_an_engine_that_loses_is_the_cause_where_nothing_is_new() -> None:
    acting = Protected("engine-b", "backlog", 0.86, "215 stand in line")
    before, after = (with_protection(fixed_snapshot(w, v), acting) for w, v in ((NEAREST, 1), (MOVED, 2)))
    assert cause_of(of_b(before, after), before, after) == "engine-b: 215 stand in line (backlog)"
    assert "backlog" not in cause_of(of_b(after, before), after, before)  # it gains: that is not what it is for


def test_a_trim_that_makes_an_engine_faster_or_ends_is_no_cause_of_its_losing_what_it_counts_or_who_is_out_is() -> None:
    # Four replicas of engine-b become one while it is measured faster than its profile.
    def at(utilisation: float, version: int, shed: float) -> Snapshot:
        made = fixed_snapshot({**NEAREST, "cluster-b": {"engine-b": 1_000_000}}, version)
        b = made.routes[1]
        b = replace(b, shed_ratio=shed, targets=(replace(b.targets[0], utilisation=utilisation),))
        return Snapshot(made.commit, (made.routes[0], b, made.routes[2]))

    faster = Protected("engine-b", "trim", 0.8, "measured 20 % faster than its profile")
    before, after = at(0.9, 1, 0.0), with_protection(at(1.0, 2, 0.7), faster)
    assert cause_of(of_b(before, after), before, after) == "engine-b counts 30 RPS of capacity, 111 before"
    # That it is over makes the engine slower, so it might be why; but demand is counted, and that is not.
    old, surged = with_protection(at(0.9, 1, 0.0), faster), with_demand(at(0.9, 2, 0.3), "cluster-b", 140.0)
    assert cause_of(of_b(old, surged), old, surged) == "cluster-b asks for 140.0 RPS of llama-3.1-8b, 100.0 before"


def test_of_trims_only_one_that_points_the_way_of_the_move_is_told() -> None:
    slow, fast = (Protected("engine-b", "trim", f, "measured so at its load") for f in (1.3, 0.7))
    before = fixed_snapshot(NEAREST)
    slower, faster = (with_protection(fixed_snapshot(MOVED, 2), p) for p in (slow, fast))
    assert cause_of(of_b(before, slower), before, slower) == "engine-b: measured so at its load (trim)"
    assert "trim" not in cause_of(of_b(before, faster), before, faster)
    # Nor does one that stands, and makes it faster, hold it back.
    old = with_protection(before, fast)
    assert "trim" not in cause_of(of_b(old, faster), old, faster)
    # A trim that slowed it is over: why it gains, not why it would lose.
    slowed, plain = with_protection(fixed_snapshot(MOVED), slow), fixed_snapshot(NEAREST, 2)
    assert cause_of(of_b(slowed, plain), slowed, plain) == "engine-b: as fast as its profile says again (trim)"
    slow_before = with_protection(before, slow)
    gone = fixed_snapshot(MOVED, 2)
    assert "trim" not in cause_of(of_b(slow_before, gone), slow_before, gone)


def test_an_engine_that_is_out_is_why_another_is_shed_and_less_demand_is_not() -> None:
    before = fixed_snapshot({**NEAREST, "cluster-b": {"engine-b": 1_000_000}})
    shed = fixed_snapshot({**NEAREST, "cluster-a": {"engine-b": 1_000_000}, "cluster-b": {"engine-b": 1_000_000}}, 2)
    out = (Excluded("engine-a", Reason.STALE, "silent for 15 s"),)
    a, b, c = shed.routes
    after = Snapshot(shed.commit, (replace(a, excluded=out), replace(b, shed_ratio=0.46, excluded=out), c))
    after = with_demand(with_demand(after, "cluster-b", 60.0), "cluster-c", 20.0)
    assert cause_of(of_b(before, after), before, after) == "engine-a is out: STALE, silent for 15 s"
    # The other way round more demand is no reason to shed less.
    assert cause_of(of_b(after, before), after, before) == "engine-a is back"


def test_what_set_a_route_moving_is_still_why_where_nothing_new_came() -> None:
    first = fixed_snapshot(NEAREST)
    second = with_demand(
        fixed_snapshot({**NEAREST, "cluster-b": {"engine-b": 500_000, "engine-c": 500_000}}, 2), "cluster-b", 150.0
    )
    third = with_demand(fixed_snapshot(MOVED, 3), "cluster-b", 150.0)
    assert "asks for" not in cause_of(of_b(second, third), second, third)
    assert cause_of(of_b(second, third), second, third, first).startswith("cluster-b asks for 150.0 RPS")
