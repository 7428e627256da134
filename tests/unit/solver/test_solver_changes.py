"""What moved between two snapshots, and a tick in one line."""

from dataclasses import replace

from headrace.schemas.weights import Excluded, Protected, Reason, SnapshotStatus
from headrace.solver.core.answer.changes import Moved, moved, weights_differ
from headrace.solver.core.tick_line import tick_line
from solver_ticks import route_of, snapshot_of, stamp, tick_of

HALF = {"e1": 500_000, "e2": 500_000}


def test_everything_is_new_where_there_was_nothing_before() -> None:
    after, _ = snapshot_of({"B|m|default": HALF, "A|m|default": HALF}, stamp(1, 1))
    assert moved(None, after) == Moved(("A|m|default", "B|m|default"), ())


def test_only_routes_with_other_weights_have_moved_and_gone_ones_are_named() -> None:
    before, _ = snapshot_of({"A|m|default": HALF, "B|m|default": HALF, "C|m|default": HALF}, stamp(1, 1))
    after, _ = snapshot_of({"A|m|default": HALF, "B|m|default": {"e1": 1_000_000}}, stamp(2, 2))
    assert moved(before, after) == Moved(("B|m|default",), ("C|m|default",))
    assert not moved(before, before)


def test_a_prediction_that_differs_moves_nothing_and_a_target_without_weight_is_none() -> None:
    before = route_of("A|m|default", HALF, 1, 1)
    assert not weights_differ(before, replace(before, marginal_ms=7.0, version=2, demand_rps=11.0))
    assert not weights_differ(before, route_of("A|m|default", {**HALF, "e3": 0}, 1, 2))


def test_shedding_counts_from_a_millionth_on() -> None:
    before = route_of("A|m|default", HALF, 1, 1)
    assert not weights_differ(before, replace(before, shed_ratio=1e-8))
    assert weights_differ(before, replace(before, shed_ratio=0.01))


def test_a_tick_is_one_line_in_words() -> None:
    tick = tick_of({"A|m|default": HALF}, stamp(1, 812))
    record = replace(tick.record, demand_rps=250.0, moved_rps=4.12)
    assert tick_line(replace(tick, record=record), None, 3_200) == (
        "version 812: 1 route, 250 RPS planned of 280 RPS capacity, moved 4.1 RPS; optimal by DUAL in 3 ms"
    )


def test_it_says_what_is_shed_whose_it_is_and_which_protections_acted() -> None:
    tick = tick_of({"A|m|batch": {}, "A|m|default": HALF}, stamp(1, 812))
    acted = tuple(Protected(f"e{i}", name, 0.5, "why") for i, name in enumerate(("trim", "outlier", "trim")))
    snapshot = replace(tick.snapshot, commit=replace(tick.snapshot.commit, protections=acted))
    record = replace(tick.record, demand_rps=20.0, shed_rps=10.0, moved_rps=0.0, rung="SIFTED")
    assert tick_line(replace(tick, snapshot=snapshot, record=record), None, 900) == (
        "version 812: 2 routes, 10 RPS planned of 280 RPS capacity, 10.0 RPS shed (batch 10.0), moved 0.0 RPS; "
        "outlier 1, trim 2; optimal by SIFTED in 1 ms"
    )


def test_it_names_the_greatest_move_with_the_reason_of_the_engine_that_lost_or_else_of_the_one_that_gained() -> None:
    before, _ = snapshot_of({"A|m|default": HALF, "B|m|default": HALF}, stamp(1, 1))
    after = tick_of({"A|m|default": {"e1": 400_000, "e2": 600_000}, "B|m|default": HALF}, stamp(1, 2), before)
    after = replace(after, record=replace(after.record, demand_rps=20.0, moved_rps=1.0))
    assert "moved 1.0 RPS, most of A|m|default: 10 % from e1 to e2 (e2: by hand); " in tick_line(after, before, 900)
    out = Excluded("e1", Reason.STALE, "silent for 16.0 s")
    routes = tuple(replace(route, excluded=(out,)) for route in after.snapshot.routes)
    gone = replace(after, snapshot=replace(after.snapshot, routes=routes))
    assert "from e1 to e2 (e1: silent for 16.0 s); " in tick_line(gone, before, 900)
    little = replace(after, record=replace(after.record, moved_rps=0.09))
    assert "moved 0.1 RPS; " in tick_line(little, before, 900)


def test_a_tick_that_only_held_says_why() -> None:
    tick = tick_of({"A|m|default": HALF}, stamp(1, 7), None, SnapshotStatus.HELD, "frozen by ann until noon: hands off")
    assert tick_line(tick, None, 900) == "version 7: 1 route held as they were: frozen by ann until noon: hands off"
