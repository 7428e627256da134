import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.histogram import (
    MAX_INDEX,
    MIN_INDEX,
    RELATIVE_ERROR,
    bucket_index,
    bucket_middle,
    pack,
    quantile,
)

SECONDS = st.floats(min_value=2e-6, max_value=5e5, allow_nan=False)


def test_a_bucket_holds_its_upper_bound_and_not_its_lower() -> None:
    assert bucket_index(1.0) == -1  # (2^(-1/8), 1]
    assert bucket_index(math.nextafter(1.0, 2.0)) == 0  # (1, 2^(1/8)]
    assert bucket_index(2.0) == 7
    assert bucket_index(0.5) == -9


@pytest.mark.parametrize("index", range(MIN_INDEX, MAX_INDEX))
def test_every_bound_belongs_to_the_bucket_below_it(index: int) -> None:
    bound = math.exp2((index + 1) / 8)
    assert bucket_index(bound) == index
    assert bucket_index(math.nextafter(bound, math.inf)) == index + 1


def test_values_outside_the_range_land_in_the_end_buckets_so_that_nothing_is_lost() -> None:
    assert bucket_index(1e-12) == MIN_INDEX
    assert bucket_index(1e12) == MAX_INDEX


@given(SECONDS)
def test_a_buckets_middle_is_within_the_stated_error_of_all_its_values(seconds: float) -> None:
    assert abs(bucket_middle(bucket_index(seconds)) - seconds) <= RELATIVE_ERROR * seconds * (1 + 1e-9)


def test_the_stated_error_is_four_point_three_percent() -> None:
    assert pytest.approx(0.0433, abs=5e-5) == RELATIVE_ERROR


def test_pack_counts_zeros_apart_and_buckets_from_the_first_that_is_used() -> None:
    assert pack([0.0, -1.0, 1.0, 2.0, 2.0]) == (2, -1, (1, 0, 0, 0, 0, 0, 0, 0, 2))
    assert pack([0.0]) == (1, 0, ())


@given(st.lists(SECONDS, min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_within_the_stated_error_of_the_sorted_values(values: list[float], q: float) -> None:
    exact = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    estimate = quantile(q, *pack(values))
    assert estimate is not None
    assert abs(estimate - exact) <= RELATIVE_ERROR * exact * (1 + 1e-9)


def test_nothing_counted_has_no_quantile_and_measured_zeros_have_zero() -> None:
    assert quantile(0.5, 0, 0, ()) is None
    assert quantile(0.5, 3, 0, ()) == 0.0
