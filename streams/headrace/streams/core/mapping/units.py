"""Units of a source -> seconds, shares, plain numbers. Dividing by a power of ten rounds once, so 100 ms is 0.1 s."""

import math
from enum import StrEnum
from functools import lru_cache
from typing import Final

from headrace.schemas.histogram import SCALE
from headrace.streams.core.decode.contract import Explicit, Exponential


class Unit(StrEnum):
    """What a source's numbers are in."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"
    NANOSECONDS = "ns"
    RATIO = "ratio"
    PERCENT = "percent"
    ONE = "1"


DIVISORS: Final = {
    Unit.SECONDS: 1.0,
    Unit.MILLISECONDS: 1e3,
    Unit.MICROSECONDS: 1e6,
    Unit.NANOSECONDS: 1e9,
    Unit.RATIO: 1.0,
    Unit.PERCENT: 100.0,
    Unit.ONE: 1.0,
}
TIME_UNITS: Final = (Unit.SECONDS, Unit.MILLISECONDS, Unit.MICROSECONDS, Unit.NANOSECONDS)

_SPELLINGS: Final = {
    "s": Unit.SECONDS,
    "second": Unit.SECONDS,
    "seconds": Unit.SECONDS,
    "ms": Unit.MILLISECONDS,
    "milliseconds": Unit.MILLISECONDS,
    "us": Unit.MICROSECONDS,
    "microseconds": Unit.MICROSECONDS,
    "ns": Unit.NANOSECONDS,
    "nanoseconds": Unit.NANOSECONDS,
}


def declared(unit: str) -> Unit | None:
    """Give the time unit that a carrier itself states, or None where it states none (OTLP: UCUM; often empty)."""
    return _SPELLINGS.get(unit)


def in_seconds(histogram: Explicit | Exponential, unit: Unit) -> Explicit | Exponential:
    """Give a histogram in seconds, no finer than the fixed layout.

    An exponential one in another unit gets explicit bounds: a thousandth is no whole number of its buckets.
    """
    divisor = DIVISORS[unit]
    if isinstance(histogram, Exponential):
        histogram = coarser(histogram, SCALE)
        if divisor == 1.0:
            return histogram
        return _as_explicit(histogram, divisor)
    if divisor == 1.0:
        return histogram
    return Explicit(
        _scaled(histogram.bounds, divisor),
        histogram.counts,
        histogram.observations,
        None if histogram.total is None else histogram.total / divisor,
        None if histogram.low is None else histogram.low / divisor,
        None if histogram.high is None else histogram.high / divisor,
    )


def coarser(histogram: Exponential, scale: int) -> Exponential:
    """Give the same observations at a lower scale: exact, since each bucket lies whole in one of the lower scale."""
    shift = histogram.scale - scale
    if shift <= 0 or not histogram.counts:
        return histogram if shift <= 0 else histogram._replace(scale=scale)
    first = histogram.offset >> shift
    counts = [0] * (((histogram.offset + len(histogram.counts) - 1) >> shift) - first + 1)
    for i, count in enumerate(histogram.counts):
        counts[((histogram.offset + i) >> shift) - first] += count
    return histogram._replace(scale=scale, offset=first, counts=tuple(counts))


@lru_cache(maxsize=1024)
def _scaled(bounds: tuple[float, ...], divisor: float) -> tuple[float, ...]:
    return tuple([bound / divisor for bound in bounds])


def _as_explicit(histogram: Exponential, divisor: float) -> Explicit:
    per_octave = 2.0**histogram.scale
    edges = (_edge((histogram.offset + i) / per_octave, divisor) for i in range(len(histogram.counts) + 1))
    bounds: list[float] = [0.0]
    counts: list[int] = [histogram.zero_count]
    for i, edge in enumerate(edges):
        count = histogram.counts[i - 1] if i else 0
        if edge > bounds[-1]:
            bounds.append(edge)
            counts.append(count)
        else:
            counts[-1] += count
    total = None if histogram.total is None else histogram.total / divisor
    low = None if histogram.low is None else histogram.low / divisor
    high = None if histogram.high is None else histogram.high / divisor
    return Explicit(tuple(bounds), (*counts, 0), histogram.observations, total, low, high)


def _edge(exponent: float, divisor: float) -> float:
    """Give 2^exponent in seconds; an edge beyond all floats is the largest, one below them is 0."""
    if exponent > 1000.0:
        return math.ldexp(1.0, 1000) / divisor
    return math.exp2(exponent) / divisor if exponent > -1000.0 else 0.0
