"""Differences of one series: resets, restarts, gaps, order, and what is missing. Counts are requests, sums seconds."""

import pytest

from headrace.streams.core.decode.contract import Explicit, Exponential, Temporality
from headrace.streams.core.differencing.level import (
    Baseline,
    Delta,
    Duplicate,
    Known,
    Level,
    Missing,
    Outcome,
    OutOfOrder,
    Since,
    difference,
)
from headrace.streams.core.mapping.reading import Field, Reading
from telemetry_inputs import explicit, reading

MINUTE = 60_000


def run(*readings: Reading, known: Known | None = None) -> list[Outcome]:
    level: Level | None = None
    outcomes: list[Outcome] = []
    for each in readings:
        level, outcome = difference(level, each, known or Known())
        outcomes.append(outcome)
    return outcomes


def last(*readings: Reading) -> Outcome:
    return run(*readings)[-1]


def test_the_first_point_is_a_baseline_and_the_next_is_the_difference() -> None:
    first, second = run(reading(0, explicit(5, 3, 2, 0, total=1.5)), reading(15_000, explicit(6, 5, 2, 1, total=2.75)))
    assert first == Baseline(Since.FIRST)
    assert second == Delta(0, 15_000, None, explicit(1, 2, 0, 1, total=1.25))


def test_no_traffic_is_a_difference_of_nothing_and_not_missing() -> None:
    same = explicit(5, 3, 2, 0, total=1.5)
    assert last(reading(0, same), reading(15_000, same)) == Delta(0, 15_000, None, explicit(0, 0, 0, 0, total=0.0))


@pytest.mark.parametrize(
    ("after", "fell"),
    [
        (explicit(1, 1, 0, 0, total=0.25), "count 10 to 2"),
        (explicit(5, 3, 2, 2, total=1.0), "sum 1.5 to 1"),
        (explicit(9, 1, 2, 2, total=2.5), "bucket 0.2, 3 to 1"),
        (explicit(9, 5, 2, 0, total=2.5, bounds=(0.1, 0.2, 0.4)), ""),
    ],
    ids=["count falls", "sum falls", "count rises while a bucket falls", "nothing falls"],
)
def test_a_reset_is_told_by_whatever_falls_and_gives_the_new_value(after: Explicit, fell: str) -> None:
    outcome = last(reading(0, explicit(5, 3, 2, 0, total=1.5)), reading(15_000, after))
    assert isinstance(outcome, Delta)
    assert outcome.reset == fell
    if fell:
        assert outcome.histogram == after


def test_after_a_reset_the_new_value_is_the_baseline() -> None:
    *_, reset, following = run(
        reading(0, explicit(90, 0, 0, 0, total=9.0)),
        reading(15_000, explicit(2, 0, 0, 0, total=0.2)),
        reading(30_000, explicit(5, 0, 0, 0, total=0.5)),
    )
    assert isinstance(reset, Delta)
    assert reset.histogram == explicit(2, 0, 0, 0, total=0.2)
    assert following == Delta(15_000, 30_000, None, explicit(3, 0, 0, 0, total=pytest.approx(0.3)))


def test_a_start_that_moves_is_a_reset_though_nothing_falls_and_its_delta_begins_there() -> None:
    outcome = last(
        reading(0, explicit(5, 0, 0, 0, total=0.5), start_ms=-MINUTE),
        reading(15_000, explicit(8, 0, 0, 0, total=0.8), start_ms=5_000),
    )
    assert outcome == Delta(5_000, 15_000, None, explicit(8, 0, 0, 0, total=0.8), f"start {-MINUTE} to 5000")


def test_a_start_that_becomes_known_is_a_reset_only_where_it_is_after_the_level() -> None:
    before = reading(10_000, explicit(5, 0, 0, 0, total=0.5))
    after = explicit(8, 0, 0, 0, total=0.8)
    known_since = last(before, reading(25_000, after, start_ms=2_000))
    restarted = last(before, reading(25_000, after, start_ms=12_000))
    assert isinstance(known_since, Delta)
    assert isinstance(restarted, Delta)
    assert known_since.histogram == explicit(3, 0, 0, 0, total=pytest.approx(0.3))
    assert (restarted.histogram, restarted.from_ms) == (after, 12_000)


@pytest.mark.parametrize("start_ms", [-MINUTE - 5, -MINUTE + 900, None, -2 * MINUTE], ids=str)
def test_a_start_that_jitters_moves_back_or_is_not_said_is_no_reset(start_ms: int | None) -> None:
    outcome = last(
        reading(0, explicit(5, 0, 0, 0, total=0.5), start_ms=-MINUTE),
        reading(15_000, explicit(8, 0, 0, 0, total=0.8), start_ms=start_ms),
    )
    assert outcome == Delta(0, 15_000, None, explicit(3, 0, 0, 0, total=pytest.approx(0.3)))


def test_a_collector_that_restarts_with_an_unknown_start_gives_no_phantom() -> None:
    # Its first point has start = time, and the following ones that same start; the engine just counted on.
    day = -24 * 60 * MINUTE
    outcomes = run(
        reading(0, explicit(200_000, 0, 0, 0, total=20_000.0), start_ms=day),
        reading(15_000, explicit(200_030, 0, 0, 0, total=20_003.0), start_ms=15_000),
        reading(30_000, explicit(200_060, 0, 0, 0, total=20_006.0), start_ms=15_000),
    )
    assert [o.histogram.observations for o in outcomes[1:] if isinstance(o, Delta) and o.histogram] == [30, 30]


def test_a_collector_that_writes_its_own_start_gives_no_phantom_since_no_engine_is_that_fast() -> None:
    day = -24 * 60 * MINUTE
    outcome = last(
        reading(0, explicit(200_000, 0, 0, 0, total=20_000.0), start_ms=day),
        reading(15_000, explicit(200_030, 0, 0, 0, total=20_003.0), start_ms=14_000),
    )
    assert isinstance(outcome, Delta)
    assert outcome.histogram is not None
    assert (outcome.histogram.observations, outcome.reset) == (30, "")


def test_a_first_point_counts_where_its_series_began_while_the_engine_was_watched() -> None:
    point = reading(15_000, explicit(4, 0, 0, 0, total=0.4), start_ms=5_000)
    assert run(point, known=Known(since_ms=0)) == [Delta(5_000, 15_000, None, explicit(4, 0, 0, 0, total=0.4))]


@pytest.mark.parametrize(
    ("since_ms", "start_ms", "why"),
    [
        (None, 5_000, Since.FIRST),
        (6_000, 5_000, Since.FIRST),
        (0, None, Since.FIRST),
        (0, 15_000, Since.FIRST),
        (-3_600_000, -1_800_000, Since.GAP),
    ],
    ids=["nothing known", "began before", "no start", "start unknown", "too long ago"],
)
def test_a_first_point_is_a_baseline_where_its_beginning_is_not_inside_what_is_known(
    since_ms: int | None, start_ms: int | None, why: Since
) -> None:
    point = reading(15_000, explicit(4, 0, 0, 0, total=0.4), start_ms=start_ms)
    assert run(point, known=Known(since_ms=since_ms)) == [Baseline(why)]


def test_a_first_point_that_would_be_far_faster_than_its_engine_is_a_baseline() -> None:
    point = reading(15_000, explicit(90_000, 0, 0, 0, total=9_000.0), start_ms=5_000)
    assert run(point, known=Known(since_ms=0, rate=3.0)) == [Baseline(Since.IMPLAUSIBLE)]


def test_a_gap_longer_than_ten_minutes_is_a_new_baseline_since_nobody_knows_when_it_happened() -> None:
    before, after = explicit(5, 0, 0, 0, total=0.5), explicit(900, 0, 0, 0, total=90.0)
    assert last(reading(0, before), reading(600_001, after)) == Baseline(Since.GAP)
    assert last(reading(0, after), reading(600_001, before)) == Baseline(Since.GAP)
    assert isinstance(last(reading(0, before), reading(600_000, after)), Delta)


def test_a_reset_in_a_long_gap_counts_where_its_start_says_when() -> None:
    outcome = last(
        reading(0, explicit(900, 0, 0, 0, total=90.0), start_ms=-MINUTE),
        reading(900_000, explicit(5, 0, 0, 0, total=0.5), start_ms=880_000),
    )
    assert isinstance(outcome, Delta)
    assert (outcome.from_ms, outcome.to_ms) == (880_000, 900_000)


def test_an_older_point_is_dropped_and_changes_nothing() -> None:
    points = (
        reading(0, explicit(5, 0, 0, 0, total=0.5)),
        reading(30_000, explicit(9, 0, 0, 0, total=0.9)),
        reading(15_000, explicit(7, 0, 0, 0, total=0.7)),
        reading(45_000, explicit(10, 0, 0, 0, total=1.0)),
    )
    outcomes = run(*points)
    assert outcomes[2] == OutOfOrder(15_000)
    assert [o.histogram.observations for o in outcomes if isinstance(o, Delta) and o.histogram] == [4, 1]


def test_the_same_point_twice_counts_once() -> None:
    same = reading(15_000, explicit(9, 0, 0, 0, total=0.9))
    assert run(reading(0, explicit(5, 0, 0, 0, total=0.5)), same, same)[2] == Duplicate()


def test_of_two_points_in_one_cut_second_the_larger_goes_on_and_the_lower_is_older() -> None:
    low, high = explicit(9, 0, 0, 0, total=0.9), explicit(11, 0, 0, 0, total=1.1)
    upwards = last(reading(0, low), reading(0, high))
    assert isinstance(upwards, Delta)
    assert upwards.histogram == explicit(2, 0, 0, 0, total=pytest.approx(0.2))
    assert last(reading(0, high), reading(0, low)) == OutOfOrder(0)


def test_missing_changes_nothing_and_is_not_zero() -> None:
    outcomes = run(
        reading(0, explicit(5, 0, 0, 0, total=0.5)),
        reading(15_000),
        reading(30_000, Explicit((0.1, 0.2, 0.4), (7, 0, 0, 0), 7, None)),
        reading(45_000, explicit(9, 0, 0, 0, total=0.9)),
    )
    assert outcomes[1:3] == [Missing("NO_RECORDED_VALUE"), Missing("NO_SUM")]
    assert outcomes[3] == Delta(0, 45_000, None, explicit(4, 0, 0, 0, total=0.4))


def test_a_latency_of_exactly_zero_for_all_is_not_measured_or_a_broken_metric_would_look_best() -> None:
    outcomes = run(
        reading(0, explicit(5, 0, 0, 0, total=0.0)),
        reading(15_000, explicit(9, 0, 0, 0, total=0.0)),
        reading(30_000, explicit(10, 0, 0, 0, total=0.05)),
    )
    assert outcomes[1] == Missing("ALL_ZERO")
    assert outcomes[2] == Delta(15_000, 30_000, None, explicit(1, 0, 0, 0, total=0.05))


def test_queueing_may_well_be_zero_for_all() -> None:
    zero = explicit(5, 0, 0, 0, total=0.0)
    before, after = (reading(t, h, field=Field.QUEUE) for t, h in ((0, zero), (1, explicit(9, 0, 0, 0, total=0.0))))
    assert last(before, after) == Delta(0, 1, None, explicit(4, 0, 0, 0, total=0.0))


def test_deltas_count_at_once_in_any_order() -> None:
    def delta(at_ms: int, start_ms: int | None) -> Reading:
        return reading(at_ms, explicit(1, 0, 0, 0, total=0.1), start_ms, temporality=Temporality.DELTA)

    found = run(delta(30_000, 15_000), delta(15_000, 0), delta(45_000, None))
    spans = [(o.from_ms, o.to_ms) for o in found if isinstance(o, Delta)]
    assert spans == [(15_000, 30_000), (0, 15_000), (30_000, 45_000)]


def test_counters_are_numbers_and_reset_likewise() -> None:
    outcomes = run(reading(0, 10.0), reading(1_000, 15.0), reading(2_000, 3.0))
    assert outcomes[1:] == [Delta(0, 1_000, 5.0, None), Delta(1_000, 2_000, 3.0, None, "value 15 to 3")]


def test_a_series_that_changes_between_number_and_histogram_began_anew() -> None:
    histogram = reading(1_000, explicit(1, 0, 0, 0, total=0.1))
    to_histogram = last(reading(0, 10.0), histogram)
    to_number = last(histogram._replace(time_ms=0), reading(1_000, 10.0))
    assert isinstance(to_histogram, Delta)
    assert isinstance(to_number, Delta)
    assert to_histogram.reset.startswith("layout")
    assert to_number.reset.startswith("layout")


def test_bounds_that_differ_are_compared_on_those_that_both_have() -> None:
    # One bucket's sample was lost on its way: nothing was reset.
    before = explicit(5, 3, 2, 0, total=1.5)
    after = Explicit((0.1, 0.4), (6, 6, 1), 13, 3.0)
    assert last(reading(0, before), reading(15_000, after)) == Delta(
        0, 15_000, None, Explicit((0.1, 0.4), (1, 1, 1), 3, 1.5)
    )


def test_a_summary_and_a_histogram_of_one_series_share_count_and_sum() -> None:
    outcome = last(
        reading(0, Explicit((), (5,), 5, 0.5)),
        reading(15_000, Exponential(3, 0, -9, (7,), 7, 0.9)),
    )
    assert isinstance(outcome, Delta)
    assert outcome.histogram == Explicit((), (2,), 2, pytest.approx(0.4))


def test_exponential_histograms_are_compared_at_the_coarser_scale() -> None:
    outcome = last(
        reading(0, Exponential(3, 1, -8, (1, 1), 3, 0.5)),
        reading(15_000, Exponential(2, 1, -4, (4, 3), 8, 1.5)),
    )
    assert isinstance(outcome, Delta)
    assert outcome.histogram == Exponential(2, 0, -4, (2, 3), 5, 1.0)


@pytest.mark.parametrize(
    ("after", "fell"),
    [
        (Exponential(3, 0, -8, (5, 5), 10, 1.5), "zero count 1 to 0"),
        (Exponential(3, 1, -8, (0, 5), 6, 1.5), "exponential bucket -8, 1 to 0"),
        (Exponential(3, 1, -5, (5,), 6, 1.5), "exponential bucket -8, 1 to 0"),
    ],
)
def test_an_exponential_histogram_resets_where_any_of_it_falls(after: Exponential, fell: str) -> None:
    outcome = last(reading(0, Exponential(3, 1, -8, (1, 1), 3, 0.5)), reading(15_000, after))
    assert isinstance(outcome, Delta)
    assert (outcome.reset, outcome.histogram) == (fell, after)


def test_a_sum_may_lose_its_last_digit_without_a_reset() -> None:
    outcome = last(
        reading(0, explicit(5, 0, 0, 0, total=1_000.0)), reading(15_000, explicit(5, 0, 0, 0, total=999.9999999999))
    )
    assert outcome == Delta(0, 15_000, None, explicit(0, 0, 0, 0, total=0.0))


def test_a_difference_of_a_latency_needs_both_sums() -> None:
    level = Level(0, None, None, Explicit((), (5,), 5, None), None)
    following, outcome = difference(level, reading(15_000, Explicit((), (7,), 7, 0.7)))
    assert outcome == Missing("NO_SUM")
    assert following is not None
    assert following.time_ms == 15_000


def test_zero_is_a_fine_value_of_a_counter() -> None:
    assert last(reading(0, 0.0), reading(1_000, 0.0, field=Field.ARRIVALS)) == Delta(0, 1_000, 0.0, None)
