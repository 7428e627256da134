"""The solver's settings are held against each other, all problems at once."""

import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.solver.settings import SolverSettings


def test_the_defaults_and_equal_bounds_are_right() -> None:
    defaults = SolverSettings()
    equal = SolverSettings(ageing_after_ms=15_000, expired_after_ms=15_000, period_ms=500, ttl_ms=1_000)
    assert defaults.ageing_after_ms < defaults.expired_after_ms
    assert (equal.ageing_after_ms, equal.ttl_ms) == (equal.expired_after_ms, 2 * equal.period_ms)


def test_intervals_that_are_upside_down_are_told_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        SolverSettings(ageing_after_ms=20_000, retry_load_low=0.99, period_ms=60_000)
    assert caught.value.problems == (
        "solver.ageing_after_ms is 20000; at most expired_after_ms, 15000",
        "solver.retry_load_low is 0.99; at most retry_load_high, 0.95",
        "solver.2 x period_ms is 120000; at most ttl_ms, 60000",
    )
