"""A histogram with its source's bounds -> the one fixed exponential layout, count and sum exact.

The observations of a source bucket are spread over the fixed buckets that it overlaps in proportion to the overlap's
width, in whole observations (largest remainder, ties to the lower bucket). What lies beyond the last bound is put
where its own mean would be, as far as the sum tells: at least just above the bound. An exponential source is added up
where it is finer, and spread likewise where it is coarser.

The mean is exact whatever the bounds; a percentile is off by up to its source's bucket, and by 4.33 % of the layout.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from headrace.schemas.histogram import MAX_INDEX, MIN_INDEX, SCALE, bucket_index
from headrace.schemas.signals import Distribution, Metric
from headrace.streams.core.decode.contract import Explicit, Exponential
from headrace.streams.core.mapping.units import coarser

_Shares = tuple[int, tuple[float, ...]]
"""First fixed bucket, and the share of the observations that each from there on gets; shares add up to 1."""


def distribution(model: str, metric: Metric, histogram: Explicit | Exponential) -> Distribution:
    """Give the observations as a signal carries them.

    A source without buckets gives none: count and sum alone. `histogram.total` must be recorded.

    Raises:
        ValueError: the sum is not recorded: a mean must never be made up.
    """
    if histogram.total is None:
        raise ValueError("the sum is not recorded")
    zeros, counts = _spread(histogram)
    first, last = min(counts, default=0), max(counts, default=-1)
    return Distribution(
        model=model,
        metric=metric,
        count=histogram.observations,
        sum_s=histogram.total if histogram.observations else 0.0,
        min_s=_extreme(histogram.low),
        max_s=_extreme(histogram.high),
        zero_count=zeros,
        first_bucket=first,
        bucket_counts=_dense(counts, first, last),
    )


def _dense(counts: dict[int, int], first: int, last: int) -> tuple[int, ...]:
    found = [0] * (last - first + 1)
    for at, count in counts.items():
        found[at - first] = count
    return tuple(found)


def quantile(q: float, histogram: Explicit) -> float | None:
    """Estimate a quantile from the source's own bounds, linearly inside a bucket, as PromQL does; None without traffic.

    A quantile in the overflow is the last bound: nothing is known beyond it.
    """
    rank, below = q * histogram.observations, 0
    if not histogram.observations or not histogram.bounds:
        return None
    for i, (bound, count) in enumerate(zip(histogram.bounds, histogram.counts, strict=False)):
        if count and below + count >= rank:
            lower = histogram.bounds[i - 1] if i else min(0.0, bound)
            return lower + (bound - lower) * (rank - below) / count
        below += count
    return histogram.bounds[-1]


def _spread(histogram: Explicit | Exponential) -> tuple[int, dict[int, int]]:
    counts: dict[int, int] = {}
    zeros = 0
    if histogram.total == 0.0:
        # Not one observation was above zero: bounds say less than the sum does.
        return (histogram.observations, counts) if _has_buckets(histogram) else (0, counts)
    if isinstance(histogram, Exponential):
        return histogram.zero_count, _from_exponential(histogram, counts)
    if not histogram.bounds:
        return 0, counts
    for i, count in enumerate(histogram.counts[:-1]):
        if not count:
            continue
        lower = histogram.bounds[i - 1] if i else 0.0
        if histogram.bounds[i] <= 0.0:
            zeros += count
        else:
            for at, whole in _placed(count, max(lower, 0.0), histogram.bounds[i]):
                counts[at] = counts.get(at, 0) + whole
    overflow = histogram.counts[-1]
    if overflow:
        at = bucket_index(_overflow_mean(histogram, overflow))
        counts[at] = counts.get(at, 0) + overflow
    return zeros, counts


def _has_buckets(histogram: Explicit | Exponential) -> bool:
    return isinstance(histogram, Exponential) or bool(histogram.bounds)


def _overflow_mean(histogram: Explicit, overflow: int) -> float:
    """Give what the sum leaves for those beyond the last bound, at least just above it."""
    last = histogram.bounds[-1]
    below = 0.0
    for lower, upper, count in zip((0.0, *histogram.bounds), histogram.bounds, histogram.counts, strict=False):
        below += count * (lower + upper) / 2
    left = ((histogram.total or 0.0) - below) / overflow
    just_above = math.nextafter(max(last, 0.0), math.inf)
    return max(left, just_above)


def _from_exponential(histogram: Exponential, counts: dict[int, int]) -> dict[int, int]:
    fitting = coarser(histogram, SCALE)
    for i, count in enumerate(fitting.counts):
        if not count:
            continue
        index = fitting.offset + i
        if fitting.scale == SCALE:
            at = min(max(index, MIN_INDEX), MAX_INDEX)
            counts[at] = counts.get(at, 0) + count
        else:
            width = 1 << (SCALE - fitting.scale)
            _place(counts, count, _octave_shares(index * width, width))
    return counts


def _place(counts: dict[int, int], count: int, shares: _Shares) -> None:
    first, parts = shares
    for i, whole in _whole_parts(count, parts):
        counts[first + i] = counts.get(first + i, 0) + whole


@lru_cache(maxsize=8_192)
def _placed(count: int, lower: float, upper: float) -> tuple[tuple[int, int], ...]:
    """Give (fixed bucket, observations). A source's bounds are few and counts of a period small: they come again."""
    first, parts = _shares(lower, upper)
    return tuple([(first + i, whole) for i, whole in _whole_parts(count, parts)])


def _whole_parts(count: int, parts: tuple[float, ...]) -> Iterator[tuple[int, int]]:
    if len(parts) == 1:
        yield 0, count
        return
    exact = [count * part for part in parts]
    whole = [int(part) for part in exact]
    left = count - sum(whole)
    if left > 0:
        by_remainder = sorted(range(len(parts)), key=lambda i: (whole[i] - exact[i], i))
        for k in range(left):
            whole[by_remainder[k % len(parts)]] += 1
    elif left < 0:
        # Floats of a huge count may add up to more than it.
        whole[max(range(len(parts)), key=whole.__getitem__)] += left
    for i, found in enumerate(whole):
        if found:
            yield i, found


@lru_cache(maxsize=4096)
def _shares(lower: float, upper: float) -> _Shares:
    last = bucket_index(upper)
    first = MIN_INDEX if lower <= 0.0 else bucket_index(math.nextafter(lower, math.inf))
    first = min(first, last)
    edges = [lower, *(_bound(i) for i in range(first, last)), upper]
    widths = [max(b - a, 0.0) for a, b in pairwise(edges)]
    whole = math.fsum(widths)
    # Shares of a bucket from 0 fall off by powers of two: those below a millionth would never get an observation.
    kept = next(i for i, width in enumerate(widths) if width >= 1e-6 * whole or i == len(widths) - 1)
    widths[kept] += math.fsum(widths[:kept])
    return first + kept, tuple([width / whole for width in widths[kept:]])


@lru_cache(maxsize=4096)
def _octave_shares(first: int, width: int) -> _Shares:
    inside = [i for i in range(first, first + width) if MIN_INDEX <= i <= MAX_INDEX]
    if not inside:
        return (MIN_INDEX if first < MIN_INDEX else MAX_INDEX), (1.0,)
    sizes = [_bound(i) - _bound(i - 1) for i in inside]
    whole = math.fsum(sizes)
    return inside[0], tuple([size / whole for size in sizes])


def _bound(index: int) -> float:
    return math.exp2((index + 1) / (1 << SCALE))


def _extreme(value: float | None) -> float | None:
    return None if value is None else max(value, 0.0)
