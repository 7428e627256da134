"""Prometheus exposition text and OpenMetrics: a whole scrape in one message, its histograms put together.

`# TYPE` says what a family is; without it a family with `_bucket{le}` is a histogram and the rest is untyped.
`x_created` is since when `x_total`, or the histogram `x`, counts. NaN is no recorded value. One bad line is rejected,
the scrape goes on. Exemplars and help are not read. Source: Prometheus, "Text-based format"; OpenMetrics 1.0.
"""

import re
from dataclasses import dataclass, field

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import (
    Decoded,
    DecodeOptions,
    Explicit,
    Gathering,
    Kind,
    Labels,
    Point,
    Refusal,
    Temporality,
)
from headrace.streams.core.decode.values import count, explicit, from_cumulative, instant, labels, number, scalar

# Possessive, so that a hostile line is given up in one pass.
_SAMPLE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*+)[ \t]*+"
    r'(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*+")*+)\})?+[ \t]*+'
    r"([^ \t#{]++)(?:[ \t]++(-?[0-9.]++))?+[ \t]*+(?:#.*)?"
)
_LABEL = re.compile(r'[ \t]*+([a-zA-Z_][a-zA-Z0-9_.]*+)[ \t]*+=[ \t]*+"((?:[^"\\]|\\.)*+)"[ \t]*+(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
_KINDS = {
    "gauge": (Kind.GAUGE, Temporality.INSTANT),
    "counter": (Kind.COUNTER, Temporality.CUMULATIVE),
}
_SUFFIXES = ("_bucket", "_sum", "_count")


@dataclass(slots=True)
class _Family:
    """One histogram or summary of one label set, as its lines come."""

    labels: Labels
    time_ms: int
    is_summary: bool
    start_ms: int | None = None
    buckets: dict[float, int] = field(default_factory=dict[float, int])
    count: int | None = None
    total: float | None = None


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the points of a scrape; samples without a time of their own have the record's."""
    try:
        exposition = (record.value or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(RejectReason.MALFORMED, f"no UTF-8 text: {error}") from None
    scrape = _Scrape(Gathering(options), options, record.timestamp_ms)
    for line in exposition.split("\n"):
        line = line.strip(" \t\r")  # noqa: PLW2901 - the line without its margin is the line
        if line.startswith("#"):
            scrape.comment(line)
        elif line:
            scrape.sample(line)
    return scrape.decoded()


class _Scrape:
    """The families of one message as their lines are read, in place."""

    def __init__(self, found: Gathering, options: DecodeOptions, otherwise_ms: int) -> None:
        self._found = found
        self._wanted = options.wanted
        self._otherwise_ms = otherwise_ms
        self._types: dict[str, str] = {}
        self._families: dict[tuple[str, Labels, int], _Family] = {}
        self._created: dict[tuple[str, Labels], int] = {}
        self._label_sets: dict[str, Labels] = {}

    def comment(self, line: str) -> None:
        parts = line.split(None, 3)
        # A federated scrape declares every sample untyped: that says no more than nothing.
        if len(parts) == 4 and parts[1] == "TYPE" and parts[3].strip() not in ("untyped", "unknown"):
            self._types[parts[2]] = parts[3].strip()

    def sample(self, line: str) -> None:
        self._found.bound()
        match = _SAMPLE.fullmatch(line)
        if match is None:
            self._found.reject(RejectReason.MALFORMED, f"no sample: {line[:120]!r}")
            return
        name, label_text, spelled, stamp = match.groups()
        try:
            known = self._labels(label_text or "")
            time_ms = self._otherwise_ms if stamp is None else instant(number(stamp, "timestamp"), "timestamp")
            self._place(name, known, number(spelled, "value"), time_ms)
        except Refusal as refusal:
            self._found.reject(refusal.rejected.reason, f"{name[:80]}: {refusal.rejected.detail}")

    def decoded(self) -> Decoded:
        for (name, known, _), family in self._families.items():
            if self._skip(name):
                continue
            try:
                histogram = _histogram(family)
            except Refusal as refusal:
                self._found.reject(refusal.rejected.reason, f"{name[:80]}: {refusal.rejected.detail}")
                continue
            start_ms = self._created.get((name, known))
            self._add(name, known, (Kind.HISTOGRAM, Temporality.CUMULATIVE), family.time_ms, start_ms, histogram)
        self._apply_created()
        return self._found.decoded()

    def _apply_created(self) -> None:
        points = self._found.points
        started = {name for name, _, _ in self._families}
        for i, point in enumerate(points):
            if point.kind is not Kind.COUNTER:
                continue
            started.add(point.name.removesuffix("_total"))
            start_ms = self._created.get((point.name.removesuffix("_total"), point.labels))
            if start_ms is not None and start_ms <= point.time_ms:
                points[i] = point._replace(start_ms=start_ms)
        if self._created:
            points[:] = [p for p in points if not _is_start(p.name, started)]

    def _place(self, name: str, known: Labels, value: float, time_ms: int) -> None:
        if name.endswith("_created") and value > 0:
            # Client libraries declare it a gauge of its own; `decoded` leaves out those that turn out to be a start.
            self._created[name.removesuffix("_created"), known] = instant(value, name)
        base, suffix = self._split(name, known)
        declared = self._types.get(base, "")
        if declared in ("histogram", "summary") or suffix == "_bucket":
            self._part(base, suffix, known, value, time_ms)
            return
        kind, temporality = _KINDS.get(declared, (Kind.UNTYPED, Temporality.INSTANT))
        if not self._skip(name):
            value_or_none = scalar(value, name)
            index = len(self._found.points)
            point = Point(name, known, kind, temporality, time_ms, None, value_or_none, None, "", index)
            self._found.points.append(point)

    def _split(self, name: str, known: Labels) -> tuple[str, str]:
        """Give a sample's family and its suffix: a name ends in `_count` of its own where nothing declares it."""
        if self._types.get(name) not in (None, "counter", "gauge") or name.removesuffix("_total") in self._types:
            return (name if name in self._types else name.removesuffix("_total")), ""
        for suffix in _SUFFIXES:
            if not name.endswith(suffix):
                continue
            base = name[: -len(suffix)]
            declared = self._types.get(base)
            untyped = declared is None and suffix == "_bucket" and any(label == "le" for label, _ in known)
            if untyped:
                self._types[base] = "histogram"
            if untyped or declared in ("histogram", "summary"):
                return base, suffix
        return name, ""

    def _part(self, base: str, suffix: str, known: Labels, value: float, time_ms: int) -> None:
        special = "le" if suffix == "_bucket" else "quantile"
        spelled = next((each for label, each in known if label == special), None)
        whole = tuple(pair for pair in known if pair[0] != special) if spelled is not None else known
        is_summary = self._types.get(base) == "summary"
        family = self._families.setdefault((base, whole, time_ms), _Family(whole, time_ms, is_summary))
        if suffix == "_bucket" and spelled is not None:
            family.buckets[number(spelled, "le")] = count(value, "a bucket")
        elif suffix == "_count":
            family.count = count(value, "the count")
        elif suffix == "_sum":
            family.total = value

    def _add(
        self,
        name: str,
        known: Labels,
        kind: tuple[Kind, Temporality],
        time_ms: int,
        start_ms: int | None,
        histogram: Explicit | None,
    ) -> None:
        since = start_ms if start_ms is not None and start_ms <= time_ms else None
        index = len(self._found.points)
        self._found.points.append(Point(name, known, *kind, time_ms, since, None, histogram, "", index))

    def _skip(self, name: str) -> bool:
        if self._wanted is None or name in self._wanted:
            return False
        self._found.skipped[name] = self._found.skipped.get(name, 0) + 1
        return True

    def _labels(self, label_text: str) -> Labels:
        known = self._label_sets.get(label_text)
        if known is None:
            known = self._label_sets[label_text] = _parse_labels(label_text)
        return known


def _is_start(name: str, started: set[str]) -> bool:
    return name.endswith("_created") and name.removesuffix("_created") in started


def _histogram(family: _Family) -> Explicit | None:
    if family.is_summary:
        if family.count is None:
            return None
        return explicit((), (family.count,), family.count, family.total)
    if not family.buckets and family.count is None:
        return None
    return from_cumulative(family.buckets, family.count, family.total)


def _parse_labels(label_text: str) -> Labels:
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(label_text.rstrip()):
        match = _LABEL.match(label_text, at)
        if match is None:
            raise Refusal(RejectReason.MALFORMED, f"no label: {label_text[at : at + 80]!r}")
        value = match[2]
        if "\\" in value:
            value = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), value)
        pairs.append((match[1], value))
        at = match.end()
    return labels(pairs)
