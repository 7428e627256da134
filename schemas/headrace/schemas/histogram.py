"""One fixed exponential histogram layout: bucket i holds (b^i, b^(i+1)], b = 2^(1/8); a merge is a vector addition.

The layout is OpenTelemetry's exponential histogram at scale 3: a quantile read at 2 l u / (l + u), the harmonic middle
of a bucket's bounds, is at most (b - 1)/(b + 1) = 4.33 % off. The mean (sum / count) never comes from buckets. Values
at or below zero are counted apart as measured zeros; values outside the range land in the first or last bucket, so
nothing is lost from the count.

Source: OpenTelemetry metrics data model, "Exponential Histogram", and Masson et al., DDSketch, VLDB 2019.
"""

import math
from collections.abc import Iterable, Sequence

SCALE = 3
MIN_INDEX = -160
"""Bucket of the smallest value told apart, about 1 microsecond (2^-20 s)."""
MAX_INDEX = 159
"""Bucket of the largest value told apart, about 12 days (2^20 s)."""
BUCKETS = MAX_INDEX - MIN_INDEX + 1
RELATIVE_ERROR = (2 ** (1 / 8) - 1) / (2 ** (1 / 8) + 1)

_PER_OCTAVE = 1 << SCALE
_MIDDLE = 2 * 2 ** (1 / 8) / (1 + 2 ** (1 / 8))
_UPPER = tuple(math.exp2((i + 1) / _PER_OCTAVE) for i in range(MIN_INDEX, MAX_INDEX + 1))


def bucket_index(seconds: float) -> int:
    """Give the index of the bucket that holds a positive value; the range's ends are clamped."""
    index = math.ceil(math.log2(seconds) * _PER_OCTAVE) - 1
    index = min(max(index, MIN_INDEX), MAX_INDEX)
    # log2 rounds: a value just above a bound must not fall below it, or two producers would disagree.
    if index < MAX_INDEX and seconds > _UPPER[index - MIN_INDEX]:
        return index + 1
    if index > MIN_INDEX and seconds <= _UPPER[index - 1 - MIN_INDEX]:
        return index - 1
    return index


def bucket_middle(index: int) -> float:
    """Give the harmonic middle of the bucket's bounds, the estimate with the least worst relative error."""
    return _MIDDLE * math.exp2(index / _PER_OCTAVE)


def pack(values: Iterable[float]) -> tuple[int, int, tuple[int, ...]]:
    """Count values into the sparse form of a record: (zero_count, first_bucket, bucket_counts)."""
    counts: dict[int, int] = {}
    zeros = 0
    for value in values:
        if value <= 0.0:
            zeros += 1
        else:
            index = bucket_index(value)
            counts[index] = counts.get(index, 0) + 1
    if not counts:
        return zeros, 0, ()
    first, last = min(counts), max(counts)
    return zeros, first, tuple(counts.get(i, 0) for i in range(first, last + 1))


def quantile(q: float, zero_count: int, first_bucket: int, bucket_counts: Sequence[int]) -> float | None:
    """Estimate the q-quantile (0..1) in seconds, within RELATIVE_ERROR; None when nothing was counted."""
    total = zero_count + sum(bucket_counts)
    if total == 0:
        return None
    rank = max(1, math.ceil(q * total))
    seen = zero_count
    if rank <= seen:
        return 0.0
    last = first_bucket
    for i, count in enumerate(bucket_counts):
        if count:
            last = first_bucket + i
        seen += count
        if rank <= seen:
            break
    return bucket_middle(last)
