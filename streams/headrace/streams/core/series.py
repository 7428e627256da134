"""One latency series (a model's metric): its panes' sums and histograms, and the window's running histogram.

    mean = sum over panes of sum_s / sum over panes of count        exact, whatever the buckets
    quantiles from the window's bucket counts, within 4.33 %, and never outside the measured minimum and maximum

The running histogram is a sum of integers, so adding a pane and taking it out again is exact; sums of seconds are not,
and are added up anew from the panes, oldest first, whenever they are read.
"""

import math
import struct
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from headrace.schemas.histogram import BUCKETS, MIN_INDEX, bucket_middle
from headrace.schemas.series import TbotKind
from headrace.schemas.signals import Distribution, Metric
from headrace.schemas.state import LatencyState
from headrace.streams.core.packing import DTYPES, Counts, Reader, pack_counts, view_counts
from headrace.streams.core.smoothing import Smoothed, smooth
from headrace.streams.settings import StreamsSettings

METRICS = (Metric.UNKNOWN, Metric.TTFT, Metric.TBOT, Metric.E2E, Metric.QUEUE)
"""Order in which metrics are numbered in packed bytes; new ones are appended."""

_MIDDLES = tuple(bucket_middle(index) for index in range(MIN_INDEX, MIN_INDEX + BUCKETS))
_QUANTILES = (0.5, 0.95, 0.99)
# series, flags (1 = min measured, 2 = max measured, 4 = thinned), count, sum_s, min_s, max_s, zeros, first bucket,
# width, bytes
_ENTRY = struct.Struct("<HBQdddQhBH")


class Entry(NamedTuple):
    """What one series has in one pane. `counts` are packed, `width` bytes each, from bucket `first` on.

    `thinned`: it had a histogram, or a part of one, that was dropped for the state's size.
    """

    observations: int
    sum_s: float
    min_s: float | None
    max_s: float | None
    zeros: int
    first: int
    width: int
    counts: bytes
    thinned: bool = False

    @classmethod
    def of(cls, d: Distribution) -> "Entry":
        """Take a distribution as it came."""
        width, counts = pack_counts(d.bucket_counts)
        return cls(d.count, d.sum_s, d.min_s, d.max_s, d.zero_count, d.first_bucket, width, counts)

    def merged(self, other: "Entry") -> "Entry":
        """Give both together; a minimum or maximum that one of them did not measure is not measured."""
        first, width, counts = _merge_buckets(self, other)
        return Entry(
            self.observations + other.observations,
            self.sum_s + other.sum_s,
            None if self.min_s is None or other.min_s is None else min(self.min_s, other.min_s),
            None if self.max_s is None or other.max_s is None else max(self.max_s, other.max_s),
            self.zeros + other.zeros,
            first,
            width,
            counts,
            self.thinned or other.thinned,
        )

    @property
    def size(self) -> int:
        """Number of bytes that `pack` gives."""
        return _ENTRY.size + len(self.counts)

    def thin(self) -> "Entry":
        """Give the entry without its histogram: count, sum, minimum and maximum stay."""
        return self._replace(zeros=0, first=0, width=1, counts=b"", thinned=True)

    def pack(self, series: int) -> bytes:
        """Give the entry's bytes."""
        flags = (self.min_s is not None) | (self.max_s is not None) << 1 | self.thinned << 2
        return (
            _ENTRY.pack(
                series,
                flags,
                self.observations,
                self.sum_s,
                0.0 if self.min_s is None else self.min_s,
                0.0 if self.max_s is None else self.max_s,
                self.zeros,
                self.first,
                self.width,
                len(self.counts),
            )
            + self.counts
        )


def read_entry(reader: Reader) -> tuple[int, Entry]:
    """Read what `Entry.pack` wrote, as (series, entry)."""
    series, flags, count, sum_s, min_s, max_s, zeros, first, width, length = reader.take(_ENTRY)
    counts = reader.take_bytes(length)
    view_counts(width, counts)
    low, high = min_s if flags & 1 else None, max_s if flags & 2 else None
    return series, Entry(count, sum_s, low, high, zeros, first, width, counts, bool(flags & 4))


class Series:
    """A model's metric: the window's running histogram and the smoothed mean up to the last closed pane."""

    __slots__ = ("base", "buckets", "end", "metric", "model", "start", "zeros")

    def __init__(self, model: str, metric: Metric, base: Smoothed | None = None) -> None:
        self.model = model
        self.metric = metric
        self.base = base
        self.zeros = 0
        self.buckets: Counts | None = None
        # Buckets outside [start, end) were never counted into.
        self.start, self.end = BUCKETS, 0

    def copy(self) -> "Series":
        """Give a series that counts on without changing this one."""
        series = Series(self.model, self.metric, self.base)
        series.zeros = self.zeros
        series.buckets = None if self.buckets is None else self.buckets.copy()
        series.start, series.end = self.start, self.end
        return series

    def add(self, entry: Entry) -> None:
        """Count an entry's buckets into the window."""
        self._count(entry, 1)

    def remove(self, entry: Entry) -> None:
        """Take out the buckets of an entry that leaves the window."""
        self._count(entry, -1)

    def quantiles(self) -> tuple[float, ...] | None:
        """Estimate the median, the 95th and the 99th percentile in seconds; None where no bucket was measured."""
        if self.buckets is None:
            return (0.0,) * len(_QUANTILES) if self.zeros else None
        cumulative: list[int] = self.buckets[self.start : self.end].cumsum().tolist()
        zeros, start = self.zeros, self.start
        total = zeros + cumulative[-1]
        if total == 0:
            return None
        ranks = [max(1, math.ceil(q * total)) - zeros for q in _QUANTILES]
        return tuple([0.0 if rank <= 0 else _MIDDLES[start + bisect_left(cumulative, rank)] for rank in ranks])

    def _count(self, entry: Entry, sign: int) -> None:
        self.zeros += sign * entry.zeros
        size = len(entry.counts) // entry.width
        if not size:
            return
        if self.buckets is None:
            self.buckets = np.zeros(BUCKETS, dtype=np.int64)
        start = entry.first - MIN_INDEX
        end = start + size
        if start < 0 or end > BUCKETS:
            raise IndexError(f"buckets {entry.first} to {entry.first + size - 1}")
        self.start = min(self.start, start)
        self.end = max(self.end, end)
        part = self.buckets[start:end]
        change = np.add if sign > 0 else np.subtract
        change(part, np.frombuffer(entry.counts, DTYPES[entry.width]), part, casting="unsafe")


def smoothed_by(before: Smoothed | None, entry: Entry, at_ms: int, settings: StreamsSettings) -> Smoothed:
    """Move a smoothed mean towards an entry's."""
    return smooth(before, entry.sum_s / entry.observations, at_ms, settings.tau_bad_ms, settings.tau_good_ms)


def latency_of(
    series: Series, entries: list[Entry], smoothed: Smoothed | None, tbot_kind: TbotKind | None = None
) -> LatencyState:
    """Give what a state says of a series whose entries these are, oldest pane first."""
    count, sum_s = 0, 0.0
    low, high = math.inf, 0.0
    for observations, seconds, least, most, _, _, _, _, _ in entries:
        count += observations
        sum_s += seconds
        # A bucket's middle is kept inside what was measured, where every pane measured its minimum or maximum.
        if least is None:
            low = min(low, 0.0)
        elif least < low:
            low = least
        if most is None:
            high = math.inf
        elif most > high:
            high = most
    found = series.quantiles()
    p50, p95, p99 = (None, None, None) if found is None else [max(min(q, high), low) for q in found]
    return LatencyState(
        model=series.model,
        metric=series.metric,
        count=count,
        mean_s=sum_s / count if count else None,
        smoothed_s=None if smoothed is None else smoothed.value,
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
        tbot_kind=tbot_kind,
    )


def _merge_buckets(one: Entry, other: Entry) -> tuple[int, int, bytes]:
    if not one.counts:
        return other.first, other.width, other.counts
    if not other.counts:
        return one.first, one.width, one.counts
    views = [view_counts(entry.width, entry.counts) for entry in (one, other)]
    first = min(one.first, other.first)
    last = max(entry.first + len(view) for entry, view in zip((one, other), views, strict=True))
    total = np.zeros(last - first, dtype=np.int64)
    for entry, view in zip((one, other), views, strict=True):
        start = entry.first - first
        total[start : start + len(view)] += view.astype(np.int64)
    width, counts = pack_counts(total.tolist())
    return first, width, counts
