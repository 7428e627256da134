import math

import pytest

from headrace.streams.core.smoothing import Smoothed, smooth


def test_the_first_value_is_taken_as_it_is() -> None:
    assert smooth(None, 0.3, 1_000, 2_000, 10_000) == Smoothed(0.3, 1_000)


def test_after_one_time_constant_the_smoothed_value_has_gone_63_percent_of_the_way() -> None:
    moved = smooth(Smoothed(1.0, 0), 2.0, 2_000, 2_000, 10_000)
    assert moved.value == pytest.approx(2.0 - math.exp(-1))
    assert moved.at_ms == 2_000


def test_bad_news_moves_it_faster_than_good_news() -> None:
    worse = smooth(Smoothed(1.0, 0), 1.5, 1_000, 2_000, 10_000)
    better = smooth(Smoothed(1.0, 0), 0.5, 1_000, 2_000, 10_000)
    assert worse.value - 1.0 == pytest.approx(0.5 * (1 - math.exp(-0.5)))
    assert 1.0 - better.value == pytest.approx(0.5 * (1 - math.exp(-0.1)))


def test_two_half_steps_of_a_constant_value_are_one_whole_step() -> None:
    half = smooth(smooth(Smoothed(1.0, 0), 3.0, 500, 2_000, 2_000), 3.0, 1_000, 2_000, 2_000)
    whole = smooth(Smoothed(1.0, 0), 3.0, 1_000, 2_000, 2_000)
    assert half.value == pytest.approx(whole.value)


def test_a_measured_zero_is_a_value_and_pulls_the_smoothed_one_down() -> None:
    assert smooth(Smoothed(1.0, 0), 0.0, 1_000, 1_000, 1_000).value == pytest.approx(math.exp(-1))


def test_a_value_that_is_not_newer_changes_nothing() -> None:
    before = Smoothed(1.0, 1_000)
    assert smooth(before, 9.0, 1_000, 2_000, 2_000) is before
