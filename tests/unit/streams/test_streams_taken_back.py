from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.infra.fleet.trace import azure_conversation
from headrace.streams.core.level import Bounds, Level, Pane, begun, last_step, moved
from headrace.streams.core.taken_back import Followed, followed

BOUNDS = Bounds(30.0, 0.05, 4.0)
WINDOW = 10


def levels_of(*rates: float) -> list[Followed]:
    """Give the level after each second of these rates."""
    seen = [Pane(rate, 1.0, 1000 * i) for i, rate in enumerate(rates, start=1)]
    levels: list[Followed] = []
    for i, pane in enumerate(seen):
        newest = reversed(seen[max(0, i + 1 - WINDOW) : i + 1])
        levels.append(followed(levels[-1] if levels else None, pane, newest, BOUNDS))
    return levels


def level_of(*rates: float) -> Level:
    return levels_of(*rates)[-1].level


def about(rps: float, evidence_s: float, at_s: int) -> Level:
    return Level(pytest.approx(rps), pytest.approx(evidence_s), 1000 * at_s)


def test_of_a_pause_in_the_trace_the_level_before_is_left_once_traffic_goes_on() -> None:
    # 36 RPS of the trace that ships, over the join of its loop, since traffic came up as it was recorded and went down:
    # 25, 26, 9, 20, 19 in seconds 156 to 160, of which the level is 20; then 35, 53, 60, 47, which once was a level of
    # 44 to 49, and of more than 40 for nine seconds.
    gaps = azure_conversation().gaps
    times = np.cumsum(np.roll(gaps, -int(0.7072 * len(gaps)))[:9000] / 36.0)
    rates = np.bincount(times.astype(int))[:190].astype(float)
    levels = [one.level for one in levels_of(*rates)]
    assert levels[159].rps < 21.0
    assert all(34.0 < level.rps < 39.0 for level in levels[161:])
    assert levels[161].evidence_s >= 20.0


def test_after_a_pause_the_level_before_goes_on_with_the_pause_as_a_silence() -> None:
    # Of thirty seconds of 100 the pause fades five: (25 x 100 + 2 x 127) / 27.
    pause = [*[100.0] * 60, *[80.0] * 5]
    assert level_of(*pause) == about(80, 5, 65)
    assert level_of(*pause, 127.0, 127.0) == about(102, 27, 67)


def test_after_a_leap_the_level_before_goes_on_once_the_fall_is_believed() -> None:
    leap = [*[100.0] * 60, *[145.0] * 3]
    assert level_of(*leap) == about(145, 3, 63)
    assert level_of(*leap, *[100.0] * 4) == about((435 + 400) / 7, 7, 67)
    assert level_of(*leap, *[100.0] * 5) == about(100, 32, 68)


def test_a_second_step_that_leads_elsewhere_is_taken_whole() -> None:
    # 150 is above 100 by more than 4 sqrt(150 (1/2 + 1/25)) = 29, five of 75 below it by more than
    # 4 sqrt(100 (1/5 + 1/27)) = 19.5.
    assert level_of(*[100.0] * 60, *[80.0] * 5, 150.0, 150.0) == about(150, 2, 67)
    assert level_of(*[100.0] * 60, *[145.0] * 3, *[75.0] * 5) == about(75, 5, 68)


def test_a_level_is_kept_while_more_is_known_of_it_than_of_the_one_since() -> None:
    # Of thirty seconds seventeen are left after thirteen: (17 x 100 + 2 x 127) / 19. After fifteen, of which the
    # last is the first of a rise that shows with its second, it is even.
    assert level_of(*[100.0] * 60, *[80.0] * 13, 127.0, 127.0) == about((17 * 100 + 2 * 127) / 19, 19, 75)
    assert level_of(*[100.0] * 60, *[80.0] * 14, 127.0, 127.0) == about(127, 2, 76)
    kept = [one.kept is not None for one in levels_of(*[100.0] * 60, *[80.0] * 20)]
    assert (kept.index(True), kept.count(True)) == (64, 10)


def test_of_two_levels_the_one_that_knows_more_is_kept() -> None:
    # 140 is neither 80 nor 100; then 100 is back, of which 30 - 5 - 4 seconds are left.
    assert level_of(*[100.0] * 60, *[80.0] * 5, *[140.0] * 4, *[100.0] * 5) == about(100, 26, 74)


def test_what_was_taken_back_is_not_looked_at_again() -> None:
    # A deep pause is seen after two of its seconds, in the mean of five, and three of the old ones lie between.
    levels = levels_of(*[100.0] * 60, *[50.0] * 5, *[100.0] * 20)
    assert levels[66] == Followed(about(100, 24, 67), from_ms=65_000)
    assert levels[-1] == Followed(about(100, 42, 85), from_ms=65_000)


def test_a_step_after_a_return_is_seen_as_soon_as_any() -> None:
    assert level_of(*[100.0] * 60, *[50.0] * 5, *[100.0] * 2, *[150.0] * 2) == about(150, 2, 69)
    assert level_of(*[100.0] * 60, *[50.0] * 5, *[100.0] * 2, *[60.0] * 5) == about(60, 5, 72)


def test_a_level_of_a_few_seconds_is_not_kept() -> None:
    # Of eleven seconds six are left after five, more than five; of ten only five are.
    assert levels_of(*[100.0] * 11, *[75.0] * 5)[-1] == Followed(about(75, 5, 16), kept=about(100, 11, 11))
    assert levels_of(*[100.0] * 10, *[75.0] * 5)[-1] == Followed(about(75, 5, 15))


def test_at_a_silence_longer_than_its_memory_nothing_is_kept() -> None:
    after = levels_of(*[100.0] * 60, *[50.0] * 5)[-1]
    assert after.kept is not None
    late = Pane(100.0, 1.0, 96_000)
    assert followed(after, late, [late], BOUNDS) == Followed(about(100, 1, 96))


pieces = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 20)), min_size=1, max_size=6)


@given(pieces=pieces)
def test_until_a_step_is_taken_back_the_level_is_that_of_a_fold_which_keeps_nothing(
    pieces: list[tuple[int, int]],
) -> None:
    rates = [float(rate) for rate, seconds in pieces for _ in range(seconds)]
    plain = begun(Pane(rates[0], 1.0, 1000))
    for i, one in enumerate(levels_of(*rates)):
        if one.from_ms is not None:
            break
        seen = [Pane(rate, 1.0, 1000 * j) for j, rate in enumerate(rates[: i + 1], start=1)]
        plain = moved(plain, seen[-1], BOUNDS.memory_s)
        step = last_step(plain, reversed(seen[-WINDOW:]), BOUNDS)
        plain = plain if step is None else step.after
        assert one.level == plain


@given(pieces=pieces)
def test_a_level_that_is_taken_up_again_lies_between_the_old_one_and_what_came_since(
    pieces: list[tuple[int, int]],
) -> None:
    rates = [float(rate) for rate, seconds in pieces for _ in range(seconds)]
    for before, after in pairwise(levels_of(*rates)):
        if after.from_ms is not None and after.from_ms != before.from_ms:
            assert before.kept is not None
            since = rates[after.from_ms // 1000 : after.level.at_ms // 1000]
            low, high = sorted((before.kept.rps, sum(since) / len(since)))
            assert low - 1e-6 <= after.level.rps <= high + 1e-6
            assert after.level.evidence_s <= BOUNDS.memory_s + len(since)
        assert after.kept is None or after.from_ms is None
