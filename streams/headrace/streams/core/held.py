"""One reading in a key's hands: as it travels (`SeriesReading`), as it is differenced (`Reading`), as it is packed.

A source that writes a histogram sample by sample gives its parts one by one; they are put together where all samples of
a key meet, whatever partitions they came over (`assembled`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.schemas.series import (
    SeriesField,
    SeriesHistogram,
    SeriesKind,
    SeriesOver,
    SeriesPart,
    SeriesReading,
)
from headrace.schemas.series import TbotKind as SignalTbotKind
from headrace.schemas.signals import Vantage
from headrace.streams.core.decode.contract import Explicit, Exponential, Refusal, Temporality
from headrace.streams.core.decode.values import from_cumulative
from headrace.streams.core.lineage import Place
from headrace.streams.core.mapping.reading import Field, Identity, Over, Reading, TbotKind

_FIELDS: dict[SeriesField, Field] = {
    each: Field(each.lower()) for each in SeriesField if each is not SeriesField.UNKNOWN
}
SERIES_FIELDS = {field: each for each, field in _FIELDS.items()}
_KINDS: dict[SeriesKind, Temporality] = {
    each: Temporality(each) for each in SeriesKind if each is not SeriesKind.UNKNOWN
}
SERIES_KINDS = {kind: each for each, kind in _KINDS.items()}
_OVERS: dict[SeriesOver, Over] = {each: Over(each.lower()) for each in SeriesOver if each is not SeriesOver.UNKNOWN}
SERIES_OVERS = {over: each for each, over in _OVERS.items()}
_TBOT_KINDS: dict[SignalTbotKind | None, TbotKind] = {
    SignalTbotKind.REQUEST_MEAN: TbotKind.REQUEST_MEAN,
    SignalTbotKind.PER_OUTPUT: TbotKind.PER_OUTPUT,
}
SERIES_TBOT_KINDS: dict[TbotKind, SignalTbotKind | None] = {kind: each for each, kind in _TBOT_KINDS.items()}
"""UNKNOWN is not told."""


class Held(NamedTuple):
    """A reading, the part of its histogram that it is, and where it stood."""

    reading: Reading
    part: SeriesPart
    place: Place

    @property
    def size(self) -> int:
        """How many numbers it holds, about."""
        histogram = self.reading.histogram
        return 16 if histogram is None else 16 + len(histogram.counts)


def order(held: Held) -> tuple[Any, ...]:
    """Give the one order in which a key's readings are taken, whatever order they came in."""
    reading, part, place = held
    return reading.time_ms, reading.series, part, place


def held_of(found: SeriesReading, identity: Identity, place: Place) -> Held | None:
    """Give a reading as it is differenced; None where a newer writer speaks of a field or kind not known here."""
    field, kind = _FIELDS.get(found.field), _KINDS.get(found.kind)
    if field is None or kind is None or found.part is SeriesPart.UNKNOWN:
        return None
    histogram = found.histogram
    reading = Reading(
        identity,
        field,
        found.series,
        found.slot,
        found.alias,
        kind,
        found.at_ms,
        found.start_ms,
        found.value,
        None if histogram is None else _of_wire(histogram),
        Vantage.ENGINE,
        _OVERS.get(found.over_ranks, Over.SUM),
        _OVERS.get(found.over_instances, Over.SUM),
        _TBOT_KINDS.get(found.tbot_kind, TbotKind.UNKNOWN),
        "",
        0,
    )
    return Held(reading, found.part, place)


def assembled(parts: Sequence[Held]) -> Reading | None:
    """Put the parts of one histogram of one instant together; None where too little of it came.

    A second sample of the same instant (time cut to whole seconds) counts where it is larger.
    """
    buckets: dict[float, int] = {}
    count: int | None = None
    total: float | None = None
    for reading, part, _ in parts:
        histogram = reading.histogram
        if not isinstance(histogram, Explicit):
            continue
        if part is SeriesPart.BUCKET:
            bound = histogram.bounds[0]
            buckets[bound] = max(histogram.observations, buckets.get(bound, 0))
        elif part is SeriesPart.COUNT:
            count = max(histogram.observations, count or 0)
        elif histogram.total is not None:
            total = histogram.total if total is None else max(total, histogram.total)
    try:
        return parts[0].reading._replace(histogram=from_cumulative(buckets, count, total))
    except Refusal:
        return None


def row(held: Held) -> list[Any]:
    """Give a held reading as plain lists."""
    reading, part, place = held
    histogram: list[Any] | None = None
    if reading.histogram is not None:
        histogram = [isinstance(reading.histogram, Exponential), *reading.histogram]
    return [*reading[:9], histogram, *reading[11:13], part, *place, reading.tbot_kind]


def of_row(packed: Sequence[Any]) -> Held:
    """Take up what `row` gave; older builds' rows say nothing of the kind of TBOT.

    Raises:
        ValueError, TypeError, LookupError: it is no row.
    """
    identity, field, series, slot, alias, kind, time_ms, start_ms, value, histogram, ranks, instances, *rest = packed
    part, topic, partition, offset, index, *kind_too = rest
    found: Explicit | Exponential | None = None
    if histogram is not None and histogram[0]:
        scale, zero_count, first, counts, *whole = histogram[1:]
        found = Exponential(scale, zero_count, first, tuple(counts), *whole)
    elif histogram is not None:
        bounds, counts, *whole = histogram[1:]
        found = Explicit(tuple(bounds), tuple(counts), *whole)
    reading = Reading(
        Identity(*identity),
        Field(field),
        series,
        slot,
        alias,
        Temporality(kind),
        time_ms,
        start_ms,
        value,
        found,
        Vantage.ENGINE,
        Over(ranks),
        Over(instances),
        TbotKind(kind_too[0]) if kind_too else TbotKind.UNKNOWN,
        "",
        0,
    )
    return Held(reading, SeriesPart(part), Place(topic, partition, offset, index))


def _of_wire(found: SeriesHistogram) -> Explicit | Exponential:
    total, low, high = found.sum_s, found.min_s, found.max_s
    if found.scale is None:
        counts = found.counts or (found.count,)
        return Explicit(found.bounds, counts, found.count, total, low, high)
    return Exponential(found.scale, found.zero_count, found.first_bucket, found.counts, found.count, total, low, high)
