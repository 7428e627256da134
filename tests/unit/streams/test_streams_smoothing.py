import math

import pytest

from headrace.streams.core.smoothing import Smoothed, is_step, smooth


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


def test_a_change_beyond_fifteen_percent_and_beyond_chance_is_a_step() -> None:
    # 1000 RPS over two seconds: chance explains 4 sqrt(1200 / 2) = 98, the share 150
    assert is_step(1_000.0, 1_200.0, 2.0, 0.15, 4.0)
    assert not is_step(1_000.0, 1_140.0, 2.0, 0.15, 4.0)


def test_at_a_low_rate_chance_explains_a_large_change() -> None:
    # 4 RPS, then 8: half of what chance may do, 4 sqrt(8 / 2) = 8
    assert not is_step(4.0, 8.0, 2.0, 0.15, 4.0)
    assert is_step(4.0, 40.0, 2.0, 0.15, 4.0)


def test_a_fall_to_nothing_is_a_step_too() -> None:
    # from 90 to 0: 4 sqrt(90 / 2) = 26.8
    assert is_step(90.0, 0.0, 2.0, 0.15, 4.0)
