"""What readings of series must be before they are folded; the parts of `check_signal` that concern them."""

import math
from collections.abc import Iterator
from itertools import pairwise

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.ids import identifier_problem
from headrace.schemas.series import Lineage, SeriesHistogram, SeriesPart, SeriesReading

MAX_READINGS = 20_000
MAX_TEXT_CHARS = 1_024
MAX_BUCKETS = 1_024
MAX_VALUE = 1e15
MIN_SCALE, MAX_SCALE = -20, 20
MAX_AHEAD_MS = 60_000
"""A signal dated this far ahead of its Kafka timestamp has a wrong clock: it would hold its key's watermark hostage.

The timestamp is the broker's on our topics (LogAppendTime); where it is the producer's, both may be wrong alike.
"""

Problem = tuple[RejectReason, str]


def series_problems(
    series: tuple[SeriesReading, ...] | None, lineage: Lineage | None, timestamp_ms: int, *, counts_too: bool
) -> Iterator[Problem]:
    """Give every problem of a signal's readings and lineage.

    Args:
        series: the readings, if any.
        lineage: of the signal, if any.
        timestamp_ms: the signal's Kafka timestamp.
        counts_too: whether the signal also counts by itself, which would count the same requests twice.
    """
    if lineage is not None:
        yield from _lineage(lineage)
    if series is None:
        return
    if counts_too:
        yield RejectReason.INCONSISTENT, "a signal with series counts by itself too; one of the two"
    if len(series) > MAX_READINGS:
        yield RejectReason.OUT_OF_RANGE, f"series has {len(series)} readings; at most {MAX_READINGS}"
        return
    for i, reading in enumerate(series):
        for reason, detail in _reading(reading, timestamp_ms):
            yield reason, f"series[{i}].{detail}"


def _lineage(lineage: Lineage) -> Iterator[Problem]:
    if not lineage.topic or len(lineage.topic) > MAX_TEXT_CHARS:
        yield RejectReason.BAD_IDENTIFIER, f"lineage.topic is {lineage.topic!r:.80}; 1 to {MAX_TEXT_CHARS} characters"
    for name in ("partition", "offset", "index"):
        if getattr(lineage, name) < 0:
            yield RejectReason.NEGATIVE, f"lineage.{name} is {getattr(lineage, name)}; at least 0"


def _reading(reading: SeriesReading, timestamp_ms: int) -> Iterator[Problem]:
    if reading.at_ms < 0 or (reading.start_ms is not None and reading.start_ms < 0):
        yield RejectReason.NEGATIVE, f"at_ms is {reading.at_ms}, start_ms {reading.start_ms}; at least 0"
    if reading.at_ms > timestamp_ms + MAX_AHEAD_MS:
        detail = f"at_ms is {reading.at_ms}, {reading.at_ms - timestamp_ms} ms after the Kafka timestamp"
        yield RejectReason.TIME_IN_FUTURE, f"{detail}; at most {MAX_AHEAD_MS}"
    model = identifier_problem("model", reading.model)
    if model is not None:
        yield RejectReason.BAD_IDENTIFIER, model
    if len(reading.instance) > MAX_TEXT_CHARS or len(reading.rank) > MAX_TEXT_CHARS:
        yield RejectReason.BAD_IDENTIFIER, f"instance or rank is longer than {MAX_TEXT_CHARS} characters"
    if (reading.offset is None) is not (reading.index is None):
        yield RejectReason.INCONSISTENT, "offset and index: one is null, the other is not"
    if reading.value is not None:
        yield from _number("value", reading.value)
    histogram = reading.histogram
    if histogram is None:
        return
    yield from _sizes(histogram)
    if reading.part is SeriesPart.WHOLE:
        yield from _whole(histogram)
    elif reading.part is SeriesPart.BUCKET and (len(histogram.bounds) != 1 or math.isnan(histogram.bounds[0])):
        yield RejectReason.INCONSISTENT, f"histogram.bounds is {histogram.bounds!r:.80}; a BUCKET has one bound"


def _number(name: str, value: float) -> Iterator[Problem]:
    if not math.isfinite(value):
        yield RejectReason.NOT_FINITE, f"{name} is {value}; must be a finite number"
    elif not 0.0 <= value <= MAX_VALUE:
        yield RejectReason.OUT_OF_RANGE, f"{name} is {value:g}; 0 to {MAX_VALUE:g}"


def _sizes(histogram: SeriesHistogram) -> Iterator[Problem]:
    for name, number in (("sum_s", histogram.sum_s), ("min_s", histogram.min_s), ("max_s", histogram.max_s)):
        if number is not None:
            yield from _number(f"histogram.{name}", abs(number))
    if len(histogram.counts) > MAX_BUCKETS:
        yield RejectReason.OUT_OF_RANGE, f"histogram.counts has {len(histogram.counts)} entries; at most {MAX_BUCKETS}"
    elif min(histogram.count, histogram.zero_count, *histogram.counts) < 0:
        yield RejectReason.NEGATIVE, "histogram has a negative count; at least 0"
    if histogram.count > MAX_VALUE:
        yield RejectReason.OUT_OF_RANGE, f"histogram.count is {histogram.count}; at most {MAX_VALUE:g}"


def _whole(histogram: SeriesHistogram) -> Iterator[Problem]:
    counts, bounds = histogram.counts, histogram.bounds
    if histogram.scale is None and counts and len(counts) != len(bounds) + 1:
        yield RejectReason.INCONSISTENT, f"histogram has {len(counts)} counts and {len(bounds)} bounds; one more"
    if any(not a < b for a, b in pairwise(bounds)) or any(not abs(bound) <= MAX_VALUE for bound in bounds):
        yield RejectReason.INCONSISTENT, "histogram.bounds do not rise, or are not finite"
    counted = sum(counts) + histogram.zero_count
    if (counts or histogram.zero_count) and counted != histogram.count:
        yield RejectReason.INCONSISTENT, f"histogram.counts add up to {counted}; count is {histogram.count}"
    if histogram.scale is not None and not MIN_SCALE <= histogram.scale <= MAX_SCALE:
        yield RejectReason.OUT_OF_RANGE, f"histogram.scale is {histogram.scale}; {MIN_SCALE} to {MAX_SCALE}"
