"""Prometheus samples -> histograms: `x_bucket{le}`, `x_sum` and `x_count` of one series and instant are one point.

In exposition text a whole scrape is one message. Where a carrier writes one message per sample, a histogram is 20 and
more messages, perhaps over several partitions: what is not whole waits in `Pending`, a value that the caller keeps.

    samples ─► pending[series, instant] ──┬─ all bounds of the series' last histogram, sum, count, +Inf ─► point
                                          ├─ a newer instant of the series is whole ─► point of what is there
                                          └─ the series is beyond the bound, or has no +Inf ─► reject

The bounds of a series are learnt from its own first histogram, which is therefore given when the next one begins, or
at `finish`. A second sample of the same instant (time cut to whole seconds) counts where it is larger.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.streams.core.decode.contract import Explicit, Kind, Labels, Point, Refusal, Temporality
from headrace.streams.core.decode.values import INFINITY, count, from_cumulative, number

MAX_PENDING = 20_000
"""Histograms under assembly; beyond, the oldest is rejected."""
SUFFIXES = ("_bucket", "_sum", "_count")


class _Key(NamedTuple):
    name: str
    labels: Labels


@dataclass(slots=True)
class _Parts:
    """One histogram under assembly, filled in place."""

    time_ms: int
    place: int
    buckets: dict[float, int] = field(default_factory=dict[float, int])
    count: int | None = None
    total: float | None = None
    has_sum: bool = False


class _Last(NamedTuple):
    """The histogram that a series gave last."""

    bounds: frozenset[float]
    time_ms: int


@dataclass(slots=True)
class Pending:
    """What waits for its other samples, and the bounds that a series' last histogram had. Bounded by MAX_PENDING."""

    parts: dict[_Key, dict[int, _Parts]] = field(default_factory=dict[_Key, dict[int, _Parts]])
    last: dict[_Key, "_Last"] = field(default_factory=dict[_Key, "_Last"])
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Assembled:
    """Points that are whole, and those that never were a histogram's sample; and what had to be given up."""

    points: tuple[Point, ...]
    rejects: tuple[Rejected, ...] = ()


def family_of(name: str, families: Iterable[str] | Mapping[str, object]) -> str | None:
    """Give the histogram that a sample belongs to, or None where it is a series of its own."""
    for suffix in SUFFIXES:
        if name.endswith(suffix) and name[: -len(suffix)] in families:
            return name[: -len(suffix)]
    return None


def families_in(points: Iterable[Point]) -> frozenset[str]:
    """Give the histograms that these samples show by a `_bucket` with a label `le`."""
    return frozenset(
        point.name.removesuffix("_bucket")
        for point in points
        if point.histogram is None and point.name.endswith("_bucket") and any(name == "le" for name, _ in point.labels)
    )


def assemble(pending: Pending, points: Iterable[Point], families: frozenset[str]) -> Assembled:
    """Take samples in, give histograms out; a point that is no sample of `families` passes unchanged.

    `pending` is folded in place and belongs to the caller: one per consumer, thrown away with its partitions.
    """
    out: list[Point] = []
    rejects: list[Rejected] = []
    for point in points:
        family = None if point.histogram is not None else family_of(point.name, families)
        if family is None:
            out.append(point)
            continue
        try:
            _take(pending, family, point, out, rejects)
        except Refusal as refusal:
            rejects.append(Rejected(refusal.rejected.reason, f"{point.name[:80]}: {refusal.rejected.detail}"))
    return Assembled(tuple(out), tuple(rejects))


def finish(pending: Pending) -> Assembled:
    """Give whatever waits: at the end of a file, or when a consumer gives its partitions up."""
    out: list[Point] = []
    rejects: list[Rejected] = []
    for key in list(pending.parts):
        for time_ms in sorted(pending.parts[key]):
            _give(pending, key, time_ms, out, rejects)
    return Assembled(tuple(out), tuple(rejects))


def _take(pending: Pending, family: str, point: Point, out: list[Point], rejects: list[Rejected]) -> None:
    bound, labels = _bound(point)
    key = _Key(family, labels)
    series = pending.parts.setdefault(key, {})
    parts = series.get(point.time_ms)
    if parts is None:
        parts = series[point.time_ms] = _Parts(point.time_ms, point.place)
        pending.waiting += 1
        if pending.waiting > MAX_PENDING:
            _drop_oldest(pending, rejects)
    _add(parts, point, bound)
    last = pending.last.get(key)
    if last is not None and parts.has_sum and parts.count is not None and parts.buckets.keys() == last.bounds:
        for older in sorted(series):
            if older <= point.time_ms:
                _give(pending, key, older, out, rejects)
    elif len(series) > 2:
        # Two newer instants have begun: what the oldest still lacks does not come any more.
        _give(pending, key, min(series), out, rejects)


def _bound(point: Point) -> tuple[float | None, Labels]:
    if not point.name.endswith("_bucket"):
        return None, point.labels
    spelled = next((value for name, value in point.labels if name == "le"), None)
    if spelled is None:
        raise Refusal(RejectReason.INCONSISTENT, "a bucket without the label le")
    bound = number(spelled, "le")
    if bound != bound or bound == -INFINITY:  # noqa: PLR0124 - only NaN differs from itself
        raise Refusal(RejectReason.INCONSISTENT, f"le is {spelled!r:.40}; expected a bound")
    return bound, tuple(pair for pair in point.labels if pair[0] != "le")


def _add(parts: _Parts, point: Point, bound: float | None) -> None:
    if point.value is None:
        # A marker of staleness ends the series: there is nothing to add up. A sum alone may be missing.
        parts.has_sum |= point.name.endswith("_sum")
        return
    if bound is not None:
        parts.buckets[bound] = max(count(point.value, "a bucket"), parts.buckets.get(bound, 0))
    elif point.name.endswith("_count"):
        parts.count = max(count(point.value, "the count"), parts.count or 0)
    else:
        parts.total = point.value if parts.total is None else max(point.value, parts.total)
        parts.has_sum = True


def _give(pending: Pending, key: _Key, time_ms: int, out: list[Point], rejects: list[Rejected]) -> None:
    series = pending.parts[key]
    parts = series.pop(time_ms)
    pending.waiting -= 1
    if not series:
        del pending.parts[key]
    last = pending.last.get(key)
    try:
        histogram = _histogram(parts, last)
    except Refusal as refusal:
        detail = f"{key.name[:80]} at {time_ms}: {refusal.rejected.detail}"
        rejects.append(Rejected(refusal.rejected.reason, detail))
        return
    if parts.buckets:
        if len(pending.last) >= MAX_PENDING:
            pending.last.clear()
        bounds = frozenset(parts.buckets)
        # A sample that got lost does not teach that its bound is gone.
        pending.last[key] = _Last(last.bounds if last is not None and bounds < last.bounds else bounds, time_ms)
    out.append(
        Point(
            name=key.name,
            labels=key.labels,
            kind=Kind.HISTOGRAM,
            temporality=Temporality.CUMULATIVE,
            time_ms=time_ms,
            start_ms=None,
            value=None,
            histogram=histogram,
            unit="",
            place=parts.place,
        )
    )


def _histogram(parts: _Parts, last: _Last | None) -> Explicit | None:
    if not parts.buckets and parts.count is None:
        return None
    if parts.buckets and INFINITY not in parts.buckets and parts.count is None:
        raise Refusal(RejectReason.INCONSISTENT, "its bucket +Inf and its count never came")
    if last is not None and parts.time_ms <= last.time_ms and parts.buckets.keys() != last.bounds:
        raise Refusal(RejectReason.INCONSISTENT, "samples came after their histogram had been given")
    return from_cumulative(parts.buckets, parts.count, parts.total)


def _drop_oldest(pending: Pending, rejects: list[Rejected]) -> None:
    key = next(iter(pending.parts))
    series = pending.parts[key]
    time_ms = min(series)
    series.pop(time_ms)
    pending.waiting -= 1
    if not series:
        del pending.parts[key]
    detail = f"{key.name[:80]} at {time_ms}: more than {MAX_PENDING} histograms are under assembly"
    rejects.append(Rejected(RejectReason.TOO_LARGE, detail))
