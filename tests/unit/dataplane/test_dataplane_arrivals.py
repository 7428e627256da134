"""Requests counted by half seconds, and what is said of those that are not known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.dataplane.guards.arrivals import UNIT_MS, UNITS, Arrivals


def arrivals(*instants_ms: int) -> Arrivals:
    made = Arrivals()
    for instant in instants_ms:
        made.note(instant)
    return made


def test_what_came_in_whole_half_seconds_is_counted_and_the_one_under_way_is_not_over() -> None:
    made = arrivals(0, 600, 700, 1_100, 1_600, 1_999)
    assert made.count(1, 3) == 3
    assert made.count(1, 4) is None
    assert made.unit == 3


def test_a_half_second_without_a_request_counts_as_none_came() -> None:
    assert arrivals(0, 600, 5_000).count(1, 10) == 1


def test_the_half_second_of_the_first_request_is_not_known_since_it_had_begun_before() -> None:
    assert arrivals(0, 600, 1_100).count(0, 2) is None
    assert Arrivals().count(0, 0) is None


def test_what_is_older_than_the_ring_is_not_known() -> None:
    made = arrivals(0, 600, 200 * UNIT_MS, (UNITS + 4) * UNIT_MS)
    assert made.count(4, 5) is None
    assert made.count(5, UNITS + 4) == 1


@pytest.mark.parametrize("now_ms", [1_000, 100_600 + UNITS * UNIT_MS, 10_000_000])
def test_a_clock_that_steps_begins_anew(now_ms: int) -> None:
    made = arrivals(99_000, 100_000, 100_600, now_ms, now_ms + 600, now_ms + 1_100)
    assert made.count(200, 201) is None
    assert made.count(now_ms // UNIT_MS + 1, now_ms // UNIT_MS + 2) == 1


def test_a_request_that_another_thread_counts_a_little_late_is_counted_where_it_belongs() -> None:
    assert arrivals(0, 600, 1_050, 999, 1_500).count(1, 3) == 3


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=60).map(sorted))
def test_counts_add_up_to_what_was_noted(instants: list[int]) -> None:
    made = arrivals(0, *(UNIT_MS + instant for instant in instants), 40_000)
    assert made.count(1, 80) == len(instants)
