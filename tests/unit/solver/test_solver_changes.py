"""What moved between two snapshots, and a tick in one line."""

from dataclasses import replace

from headrace.solver.core.answer.changes import Moved, moved, weights_differ
from headrace.solver.core.answer.tick_line import tick_line
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
    record = replace(tick_of({"A|m|default": HALF}, stamp(1, 812)).record, demand_rps=250.0, moved_rps=4.12)
    assert (
        tick_line(record, 3, 3_200)
        == "version 812: 3 routes, 250 RPS planned of 280 RPS capacity, moved 4.1 RPS, optimal in 3 ms"
    )
    shedding = replace(record, demand_rps=300.0, shed_rps=20.0)
    assert tick_line(shedding, 1, 900) == (
        "version 812: 1 route, 280 RPS planned of 280 RPS capacity, 20.0 RPS shed, moved 4.1 RPS, optimal in 1 ms"
    )
