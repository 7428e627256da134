"""Levels and gauges of a book as plain rows, and back: what its bytes hold. Bounds that levels share are said once."""

from collections.abc import Sequence
from typing import Any

from headrace.streams.core.decode.contract import Explicit, Exponential
from headrace.streams.core.differencing.gauges import Gauge
from headrace.streams.core.differencing.level import Level
from headrace.streams.core.mapping.reading import Field, Over


def level_row(series: int, level: Level, bounds: dict[tuple[float, ...], int]) -> list[Any]:
    """Give a level as plain lists; `bounds` numbers the bounds that levels share, and gains those that are new."""
    packed: list[Any] | None = None
    match level.histogram:
        case Explicit() as histogram:
            shared = bounds.setdefault(histogram.bounds, len(bounds))
            packed = [shared, *histogram[1:]]
        case Exponential() as histogram:
            packed = [-1, *histogram]
        case _:
            pass
    return [series, level.time_ms, level.start_ms, level.value, packed, level.rate]


def level_of_row(packed: Sequence[Any], bounds: list[tuple[float, ...]]) -> tuple[int, Level]:
    """Take up what `level_row` gave: the series and its level."""
    series, time_ms, start_ms, value, histogram, rate = packed
    found: Explicit | Exponential | None = None
    if histogram is not None and histogram[0] == -1:
        scale, zero_count, offset, counts, *whole = histogram[1:]
        found = Exponential(scale, zero_count, offset, tuple(counts), *whole)
    elif histogram is not None:
        shared, counts, *whole = histogram
        found = Explicit(bounds[shared], tuple(counts), *whole)
    return series, Level(time_ms, start_ms, value, found, rate)


def gauge_of_row(packed: Sequence[Any]) -> Gauge:
    """Take up a gauge's values as plain lists."""
    field_name, model, instance, rank, value, time_ms, over_ranks, over_instances = packed
    return Gauge(Field(field_name), model, instance, rank, value, time_ms, Over(over_ranks), Over(over_instances))
