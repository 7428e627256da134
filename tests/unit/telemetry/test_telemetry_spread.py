"""Source buckets onto the fixed layout: count and sum exact, whole observations, percentiles within their bucket."""

import pytest

from headrace.schemas.check_signals import MAX_COUNT
from headrace.schemas.histogram import MAX_INDEX, MIN_INDEX, bucket_index, pack, quantile
from headrace.schemas.signals import Distribution, Metric
from headrace.streams.core.decode.contract import Explicit, Exponential
from headrace.streams.core.differencing import spread
from headrace.streams.core.differencing.spread import distribution
from telemetry_inputs import explicit


def put(histogram: Explicit | Exponential) -> Distribution:
    return distribution("m", Metric.TTFT, histogram)


def counted(found: Distribution) -> dict[int, int]:
    return {found.first_bucket + i: n for i, n in enumerate(found.bucket_counts) if n}


def test_a_bucket_that_lies_in_one_of_the_layout_goes_there_whole() -> None:
    lower, upper = 2 ** (-9 / 8), 2 ** (-8 / 8)
    found = put(Explicit((lower, upper), (0, 7, 0), 7, 3.3))
    assert counted(found) == {-9: 7}
    assert (found.count, found.sum_s, found.zero_count) == (7, 3.3, 0)


def test_a_bucket_over_an_octave_is_spread_by_width_in_whole_observations() -> None:
    # (0.5, 1] holds the layout's buckets -8 to -1; each is 2^(1/8) wider than the one before.
    found = put(Explicit((0.5, 1.0), (0, 1000, 0), 1000, 750.0))
    widths = [2 ** ((i + 1) / 8) - 2 ** (i / 8) for i in range(-8, 0)]
    assert [counted(found)[i] for i in range(-8, 0)] == [pytest.approx(2000 * w, abs=1) for w in widths]
    assert sum(found.bucket_counts) == 1000


def test_a_few_observations_stay_whole() -> None:
    found = put(Explicit((0.5, 1.0), (0, 3, 0), 3, 2.0))
    assert sum(counted(found).values()) == 3


def test_the_first_bucket_reaches_down_to_zero_but_not_for_ever() -> None:
    found = put(Explicit((0.1,), (1000, 0), 1000, 50.0))
    assert sum(counted(found).values()) == 1000
    assert min(counted(found)) >= bucket_index(0.1) - 8 * 21


def test_what_is_beyond_the_last_bound_goes_where_the_sum_says_its_mean_is() -> None:
    found = put(Explicit((0.1,), (2, 4), 6, 20.1))
    assert counted(found)[bucket_index(5.0)] == 4, "(20.1 - 2 * 0.05) / 4 = 5.0"
    low = put(Explicit((0.1,), (2, 4), 6, 0.0001))
    assert counted(low)[bucket_index(0.1000001)] == 4, "at least just above the bound"


def test_a_sum_of_zero_means_that_all_are_zero() -> None:
    found = put(explicit(4, 0, 0, 0, total=0.0))
    assert (found.zero_count, found.bucket_counts, found.sum_s) == (4, (), 0.0)
    assert put(Explicit((), (4,), 4, 0.0)).zero_count == 0


def test_no_observations_give_an_empty_distribution() -> None:
    assert put(explicit(0, 0, 0, 0, total=0.0)) == Distribution("m", Metric.TTFT, 0, 0.0, None, None, 0, 0, ())


def test_a_source_without_buckets_gives_count_and_sum_alone() -> None:
    found = put(Explicit((), (4,), 4, 2.0, 0.1, 1.0))
    assert (found.count, found.sum_s, found.bucket_counts, found.min_s, found.max_s) == (4, 2.0, (), 0.1, 1.0)


def test_bounds_at_or_below_zero_hold_zeros() -> None:
    found = put(Explicit((-1.0, 0.0, 0.5), (1, 2, 3, 0), 6, 1.0))
    assert (found.zero_count, sum(found.bucket_counts)) == (3, 3)


def test_a_sum_that_is_not_recorded_is_never_made_up() -> None:
    with pytest.raises(ValueError, match="not recorded"):
        put(Explicit((0.1,), (1, 0), 1, None))


def test_an_exponential_source_of_the_same_scale_is_taken_as_it_is() -> None:
    zeros, first, counts = pack([0.0, 0.11, 0.12, 0.4])
    found = put(Exponential(3, zeros, first, counts, 4, 0.63, -0.5, 0.4))
    assert (found.zero_count, found.first_bucket, found.bucket_counts) == (zeros, first, counts)
    assert (found.min_s, found.max_s) == (0.0, 0.4)


def test_a_coarser_exponential_source_is_spread_and_a_finer_one_added_up() -> None:
    coarse = put(Exponential(0, 0, -1, (800,), 800, 600.0))
    assert sorted(counted(coarse)) == list(range(-8, 0))
    assert put(Exponential(4, 0, -2, (3, 4), 7, 5.0)).bucket_counts == (7,)


def test_an_exponential_source_far_outside_the_layout_lands_in_its_last_bucket() -> None:
    for scale, offset, at in (
        (3, 10_000, MAX_INDEX),
        (3, -10_000, MIN_INDEX),
        (0, 1_000, MAX_INDEX),
        (0, -1_000, MIN_INDEX),
    ):
        assert counted(put(Exponential(scale, 0, offset, (5,), 5, 1.0))) == {at: 5}


def test_huge_counts_stay_exact() -> None:
    found = put(Explicit((0.3, 7.0), (MAX_COUNT // 3, MAX_COUNT // 3, 1), 2 * (MAX_COUNT // 3) + 1, 1e12))
    assert sum(found.bucket_counts) == found.count


def test_shares_that_add_up_to_more_than_one_give_no_observation_too_many() -> None:
    assert dict(spread._whole_parts(10, (0.55, 0.55))) == {0: 5, 1: 5}
    assert dict(spread._whole_parts(100, (0.6, 0.6))) == {0: 40, 1: 60}


def test_percentiles_of_a_spread_are_inside_their_source_bucket() -> None:
    found = put(explicit(10, 80, 10, 0, total=15.0))
    p50 = quantile(0.5, found.zero_count, found.first_bucket, found.bucket_counts)
    assert p50 is not None
    assert 0.1 / 1.05 <= p50 <= 0.2 * 1.05


def test_a_percentile_of_the_source_is_linear_in_its_bucket() -> None:
    source = explicit(10, 80, 10, 0, total=15.0)
    assert spread.quantile(0.5, source) == pytest.approx(0.15)
    assert spread.quantile(0.05, source) == pytest.approx(0.05)
    assert spread.quantile(0.99, explicit(0, 0, 1, 9, total=9.0)) == 0.4
    assert spread.quantile(0.5, explicit(0, 0, 0, 0, total=0.0)) is None
    assert spread.quantile(0.5, Explicit((), (3,), 3, 1.0)) is None
