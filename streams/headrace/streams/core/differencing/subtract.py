"""later - earlier of one cumulative histogram: a histogram, or what fell, which means that counting began anew.

Layouts that differ are compared on what they share: the bounds that both have, the coarser of two exponential scales,
or count and sum alone. Sums may fall by float rounding (1e-9 of their size), which counts as no change.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from headrace.streams.core.decode.contract import Explicit, Exponential
from headrace.streams.core.mapping.units import coarser

Histogram = Explicit | Exponential
SUM_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Fell:
    """What is lower than before, in words: `count`, `sum`, `bucket 0.25`."""

    what: str


def subtract(later: Histogram, earlier: Histogram) -> Histogram | Fell:
    """Give what was observed in between. A sum that one of the two lacks is not recorded in the difference."""
    if later.observations < earlier.observations:
        return Fell(f"count {earlier.observations} to {later.observations}")
    total = _sum_between(later.total, earlier.total)
    if isinstance(total, Fell):
        return total
    if isinstance(later, Explicit) and isinstance(earlier, Explicit):
        return _explicit(later, earlier, total)
    if isinstance(later, Exponential) and isinstance(earlier, Exponential):
        return _exponential(later, earlier, total)
    between = later.observations - earlier.observations
    return Explicit((), (between,), between, total)


def _sum_between(later: float | None, earlier: float | None) -> float | Fell | None:
    if later is None or earlier is None:
        return None
    between = later - earlier
    if between >= 0.0:
        return between
    if -between <= SUM_TOLERANCE * abs(earlier):
        return 0.0
    return Fell(f"sum {earlier:g} to {later:g}")


def _explicit(later: Explicit, earlier: Explicit, total: float | None) -> Explicit | Fell:
    if later.bounds != earlier.bounds:
        shared = tuple(sorted(set(later.bounds) & set(earlier.bounds)))
        later, earlier = _on(later, shared), _on(earlier, shared)
    counts = tuple([a - b for a, b in zip(later.counts, earlier.counts, strict=True)])
    if counts and min(counts) < 0:
        i = next(i for i, count in enumerate(counts) if count < 0)
        bound = later.bounds[i] if i < len(later.bounds) else float("inf")
        return Fell(f"bucket {bound:g}, {earlier.counts[i]} to {later.counts[i]}")
    return Explicit(later.bounds, counts, later.observations - earlier.observations, total)


def _on(histogram: Explicit, bounds: tuple[float, ...]) -> Explicit:
    """Give the same observations on fewer bounds."""
    counts = [0] * (len(bounds) + 1)
    for i, count in enumerate(histogram.counts):
        upper = histogram.bounds[i] if i < len(histogram.bounds) else float("inf")
        counts[bisect_left(bounds, upper)] += count
    return histogram._replace(bounds=bounds, counts=tuple(counts))


def _exponential(later: Exponential, earlier: Exponential, total: float | None) -> Exponential | Fell:
    scale = min(later.scale, earlier.scale)
    later, earlier = coarser(later, scale), coarser(earlier, scale)
    zeros = later.zero_count - earlier.zero_count
    if zeros < 0:
        return Fell(f"zero count {earlier.zero_count} to {later.zero_count}")
    counts = {later.offset + i: count for i, count in enumerate(later.counts)}
    for i, count in enumerate(earlier.counts):
        at = earlier.offset + i
        left = counts.get(at, 0) - count
        if left < 0:
            return Fell(f"exponential bucket {at}, {count} to {counts.get(at, 0)}")
        if at in counts:
            counts[at] = left
    dense = tuple(counts.values())
    return Exponential(scale, zeros, later.offset, dense, later.observations - earlier.observations, total)
