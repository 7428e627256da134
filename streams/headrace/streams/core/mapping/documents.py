"""Documents -> readings: `map_documents(documents, mapping)`. One JSON object is one event, or one period's summary.

A field that is null or absent is missing, not zero: a one-token answer has no time between tokens. A duration below
zero came from two clocks: it counts as zero, and `clamped` says how often.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import xxhash

from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.histogram import SCALE, bucket_index
from headrace.streams.core.decode.contract import Document, Explicit, Exponential, Refusal, Temporality
from headrace.streams.core.decode.values import count, explicit, in_range, instant, number, rfc3339, sequence
from headrace.streams.core.mapping.apply import NO_ORIGIN
from headrace.streams.core.mapping.identity import Resolver, search
from headrace.streams.core.mapping.model import DocumentRules, FieldRule, HistogramPaths, TelemetryMapping
from headrace.streams.core.mapping.reading import COUNTERS, DURATIONS, GAUGES, Field, Identity, Reading
from headrace.streams.core.mapping.templates import Origin
from headrace.streams.core.mapping.units import DIVISORS, in_seconds


@dataclass(frozen=True, slots=True)
class MappedDocuments:
    """What documents became. `missing` counts by field what was null or absent, `clamped` what was below zero."""

    readings: tuple[Reading, ...] = ()
    rejects: tuple[Rejected, ...] = ()
    left_out: int = 0
    missing: Mapping[str, int] = field(default_factory=dict[str, int])
    clamped: Mapping[str, int] = field(default_factory=dict[str, int])


def map_documents(
    documents: Iterable[Document], mapping: TelemetryMapping, origin: Origin = NO_ORIGIN
) -> MappedDocuments:
    """Map documents; a mapping without a section `document` rejects them all, and says so."""
    reader = _Reader(mapping, origin)
    for document in documents:
        try:
            reader.read(document)
        except Refusal as refusal:
            reader.rejects.append(refusal.rejected)
    return MappedDocuments(
        tuple(reader.readings), tuple(reader.rejects), reader.left_out, reader.missing, reader.clamped
    )


class _Reader:
    """Documents of one message as they are read, in place."""

    def __init__(self, mapping: TelemetryMapping, origin: Origin) -> None:
        self._mapping = mapping
        self._origin = origin
        self._resolver = Resolver(mapping)
        self.readings: list[Reading] = []
        self.rejects: list[Rejected] = []
        self.left_out = 0
        self.missing: dict[str, int] = {}
        self.clamped: dict[str, int] = {}

    def read(self, document: Document) -> None:
        rules = self._mapping.document
        if rules is None:
            raise Refusal(
                RejectReason.INCONSISTENT, "a JSON document, and the mapping has no section document; write one"
            )
        passes = self._resolver.passes(document.body)
        if isinstance(passes, Rejected):
            raise Refusal(passes.reason, passes.detail)
        if not passes:
            self.left_out += 1
            return
        identity = self._resolver.identity(_labels(rules, document.body), self._origin)
        if isinstance(identity, Rejected):
            raise Refusal(identity.reason, identity.detail)
        time_ms, start_ms = _times(rules, document)
        for rule in self._mapping.rules:
            try:
                self._field(rule, document, identity, time_ms, start_ms)
            except Refusal as refusal:
                self.rejects.append(refusal.rejected)

    def _field(
        self, rule: FieldRule, document: Document, identity: Identity, time_ms: int, start_ms: int | None
    ) -> None:
        value: float | None = None
        histogram: Explicit | Exponential | None = None
        if rule.histogram is not None:
            histogram = _histogram(rule.histogram, document.body)
            histogram = None if histogram is None else in_seconds(histogram, rule.unit)
        else:
            value = self._value(rule, document.body)
            if value is not None and rule.field in DURATIONS:
                histogram, value = _observation(value), None
        if value is None and histogram is None:
            self.missing[rule.field] = self.missing.get(rule.field, 0) + 1
            return
        slot = xxhash.xxh3_64_intdigest("\x1f".join((rule.field, *identity)).encode())
        temporality = Temporality.INSTANT if rule.field in GAUGES else Temporality.DELTA
        self.readings.append(
            Reading(
                identity,
                rule.field,
                slot,
                slot,
                0,
                temporality,
                time_ms,
                start_ms,
                value,
                histogram,
                self._mapping.vantage,
                rule.over_ranks,
                rule.over_instances,
                rule.tbot_kind,
                rule.field.value if rule.path is None else rule.path.text,
                document.place,
            )
        )

    def _value(self, rule: FieldRule, body: Mapping[str, Any]) -> float | None:
        if rule.each is not None or rule.path is None:
            return float(rule.each or 0)
        found = search(rule.path, body)
        if found is None:
            return None
        if rule.field in COUNTERS:
            return float(count(found, rule.path.text))
        value = number(found, rule.path.text)
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise Refusal(RejectReason.NOT_FINITE, f"{rule.path.text} is {value}; must be a finite number")
        value /= DIVISORS[rule.unit]
        if value < 0.0 and rule.field in DURATIONS:
            self.clamped[rule.field] = self.clamped.get(rule.field, 0) + 1
            return 0.0
        if value < 0.0 or (rule.field is Field.KV_USAGE and value > 1.0):
            bound = "0 to 1" if rule.field is Field.KV_USAGE else "at least 0"
            raise Refusal(RejectReason.OUT_OF_RANGE, f"{rule.path.text} is {value:g}; {rule.field} is {bound}")
        return value


def _labels(rules: DocumentRules, body: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, path in rules.labels:
        value = search(path, body)
        if isinstance(value, bool):
            found[name] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            found[name] = str(value)
    return found


def _times(rules: DocumentRules, document: Document) -> tuple[int, int | None]:
    time_ms = document.time_ms
    if rules.time is not None:
        found = search(rules.time, document.body)
        if found is None:
            raise Refusal(RejectReason.MALFORMED, f"document.time {rules.time.text!r} found nothing")
        time_ms = _instant(found, rules.time.text)
    start_ms = None
    if rules.start is not None:
        found = search(rules.start, document.body)
        start_ms = None if found is None else _instant(found, rules.start.text)
        if start_ms is not None and start_ms > time_ms:
            raise Refusal(RejectReason.INCONSISTENT, f"document.start is {start_ms}, after document.time {time_ms}")
    return time_ms, start_ms


def _instant(value: object, name: str) -> int:
    if isinstance(value, str) and not value.replace(".", "", 1).isdecimal():
        return rfc3339(value, name)
    return in_range(instant(number(value, name), name), name)


def _observation(seconds: float) -> Exponential:
    """Give one observation as a histogram in the fixed layout."""
    if seconds <= 0.0:
        return Exponential(SCALE, 1, 0, (), 1, 0.0, 0.0, 0.0)
    return Exponential(SCALE, 0, bucket_index(seconds), (1,), 1, seconds, seconds, seconds)


def _histogram(paths: HistogramPaths, body: Mapping[str, Any]) -> Explicit | None:
    whole, total = search(paths.count, body), search(paths.total, body)
    if whole is None or total is None:
        return None
    total_count = count(whole, paths.count.text)
    bounds: list[float] = []
    counts: list[int] = [total_count]
    if paths.bounds is not None and paths.counts is not None:
        found_bounds, found_counts = search(paths.bounds, body), search(paths.counts, body)
        if found_bounds is not None and found_counts is not None:
            bounds = [
                number(each, paths.bounds.text) for each in cast("list[object]", sequence(found_bounds, "bounds"))
            ]
            counts = [count(each, paths.counts.text) for each in cast("list[object]", sequence(found_counts, "counts"))]
    return explicit(bounds, counts, total_count, number(total, paths.total.text))
