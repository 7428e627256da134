"""The cost of a load that swings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.profile.load_cost import LoadCost, load_cost
from headrace.solver.core.profile.spread import SWING_S, spread_over
from solver_problems import profile, profiles_strategy

U = np.linspace(0.0, 1.0, 401)


def by_hand(cost: LoadCost, spread: float) -> np.ndarray:
    """Give the mean at three loads, one after the other."""
    end, slope = cost.value(np.ones(1))[0], cost.slope(np.ones(1))[0] + 500.0 * SWING_S
    total = np.zeros_like(U)
    for z, share in ((-np.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (np.sqrt(3.0), 1 / 6)):
        at = U * (1.0 + spread * z)
        total += share * np.where(at <= 1.0, cost.value(np.minimum(at, 1.0)), end + slope * (at - 1.0))
    return total


@given(profiles_strategy("p"), st.floats(0.001, 0.5))
def test_it_is_the_mean_over_the_swings_for_any_profile(p: LatencyProfile, spread: float) -> None:
    cost = load_cost(p)
    swung = spread_over(cost, spread)
    assert swung.value(U) == pytest.approx(by_hand(cost, spread), rel=1e-9, abs=1e-6)


def test_a_straight_curve_costs_the_same_below_where_a_swing_meets_the_wall() -> None:
    flat = load_cost(profile(ttft_s=(0.1, 0.1, 0.1)))
    swung = spread_over(flat, 0.1)
    meets = 1.0 / (1.0 + 0.1 * np.sqrt(3.0))
    below = U[meets >= U]
    assert swung.value(below) == pytest.approx(flat.value(below))
    # 100 ms below the wall; a swing of a tenth queues, and a queue of two seconds is a second long on average.
    assert swung.slope(np.array([0.999])) == pytest.approx([100.0 + 1000.0 * (1.0 + 0.1 * np.sqrt(3.0)) / 6.0])


def test_a_bend_costs_more_about_it_than_at_it_and_nothing_is_added_to_an_idle_engine() -> None:
    cost = load_cost(profile())
    swung = spread_over(cost, 0.1)
    assert (swung.value(U) >= cost.value(U) - 1e-9).all()
    assert swung.value(np.array([0.5]))[0] > cost.value(np.array([0.5]))[0]
    assert swung.slope(np.zeros(1)) == pytest.approx(cost.slope(np.zeros(1)))


def test_no_spread_changes_nothing() -> None:
    cost = load_cost(profile())
    assert spread_over(cost, 0.0).value(U) == pytest.approx(cost.value(U))
