"""Points -> readings: `map_points(points, mapping)`. A pure function; what it remembers of label sets is only speed.

name unknown to the mapping       unmatched, counted by name: component names that differ are loud, not silent
identity cannot be filled         reject: never guessed
not what the field is             reject: a gauge where a histogram belongs, a unit that contradicts, kv_usage 39
several aliases of one series     all cumulative ones go on (the fold's book chooses, and needs the levels of all);
                                  of deltas and gauges the first present alone
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import xxhash

from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.streams.core.decode.contract import Kind, Labels, Point, Temporality
from headrace.streams.core.mapping.identity import Resolver
from headrace.streams.core.mapping.model import Alias, FieldRule, TelemetryMapping
from headrace.streams.core.mapping.reading import COUNTERS, DURATIONS, GAUGES, Field, Identity, Reading
from headrace.streams.core.mapping.templates import Origin
from headrace.streams.core.mapping.units import DIVISORS, TIME_UNITS, Unit, declared, in_seconds
from headrace.streams.core.recent import Recent

MAX_KNOWN: Final = 40_000
MAX_KNOWN_CHARS: Final = 16_000_000
"""Label sets whose meaning is remembered, and their characters; what was not asked for lately goes first."""
MAX_REJECTS: Final = 1_000
NO_ORIGIN: Final = Origin()
Rewrite = Callable[[Sequence[Point], Origin], Iterable[Point]]
"""A mapping's own Python: a pure function of one message's points. The only code of a user that runs here."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """What points became. `unmatched` counts points by name, `folded` readings of engines beyond `max_series`."""

    readings: tuple[Reading, ...] = ()
    unmatched: Mapping[str, int] = field(default_factory=dict[str, int])
    rejects: tuple[Rejected, ...] = ()
    folded: Mapping[str, int] = field(default_factory=dict[str, int])


class _Target(NamedTuple):
    """One rule that a series serves: found once per label set."""

    identity: Identity
    rule: FieldRule
    alias: int
    series: int
    slot: int
    unit: Unit
    divisor: float
    kinds: tuple[Kind, ...]
    """What a point of this field is, none of them a histogram; empty where it is one."""


_Known = tuple[_Target, ...] | Rejected
"""What a series is: its targets, none where `where` or `match` leave it out, or why it is refused."""


class Mapper:
    """A mapping made ready: name tables, and what is remembered of label sets."""

    def __init__(self, mapping: TelemetryMapping) -> None:
        self.mapping = mapping
        self._resolver = Resolver(mapping)
        self._rules: dict[str, list[tuple[FieldRule, int, Alias]]] = {}
        for rule in mapping.rules:
            for i, alias in enumerate(rule.aliases):
                self._rules.setdefault(alias.name, []).append((rule, i, alias))
        self.known: Recent[Labels, dict[str, _Known]] = Recent(MAX_KNOWN, MAX_KNOWN_CHARS)

    def map_points(self, points: Iterable[Point], origin: Origin = NO_ORIGIN) -> Mapped:
        """Map the points of one message, or of several with the same origin."""
        out = _Out(self.mapping.max_series)
        remembers = not self._resolver.asks_record
        # One label set is one object for as long as a decoder can tell: most points have that of the point before.
        last: Labels | None = None
        names: dict[str, _Known] = {}
        for point in points:
            name, labels = point.name, point.labels
            rules = self._rules.get(name)
            if rules is None:
                out.unmatched[name] = out.unmatched.get(name, 0) + 1
                continue
            if labels is not last:
                last, names = labels, self._names_of(labels) if remembers else {}
            known = names.get(name)
            if known is None:
                known = names[name] = self._resolve(rules, name, labels, origin)
            if isinstance(known, Rejected):
                out.reject(known)
                continue
            for target in known:
                reading = self._reading(point, target)
                if isinstance(reading, Rejected):
                    out.reject(reading)
                else:
                    out.add(reading)
        return out.mapped()

    def _names_of(self, labels: Labels) -> dict[str, _Known]:
        """Give what is remembered of a label set, by the names that the mapping knows."""
        known = self.known.get(labels)
        if known is None:
            known = dict[str, _Known]()
            self.known.put(labels, known, sum([len(name) + len(value) for name, value in labels]))
        return known

    def _resolve(self, rules: list[tuple[FieldRule, int, Alias]], name: str, labels: Labels, origin: Origin) -> _Known:
        found = dict(labels)
        matching = [(rule, i) for rule, i, alias in rules if _matches(alias, found)]
        if not matching:
            return ()
        chosen = self._resolver.passes({"name": name, "labels": found})
        if chosen is not True:
            return () if chosen is False else chosen
        identity = self._resolver.identity(found, origin)
        if isinstance(identity, Rejected):
            return Rejected(identity.reason, f"{name[:80]}: {identity.detail}"[:300])
        kept = [pair for pair in labels if pair[0] not in self.mapping.drop_labels]
        where = _text(identity, kept)
        targets: list[_Target] = []
        for rule, alias in matching:
            # The one value that a name is matched by tells names apart, not what they are names of.
            by = {label for label, values in rule.aliases[alias].match if len(values) == 1}
            named = _text(identity, [pair for pair in kept if pair[0] not in by]) if by else where
            slot, unit = _stable(f"{rule.field}\x1e{named}"), rule.aliases[alias].unit
            series = _stable(f"{rule.field}\x1e{name}\x1e{where}")
            targets.append(_Target(identity, rule, alias, series, slot, unit, DIVISORS[unit], _kinds(rule.field)))
        return tuple(targets)

    def _reading(self, point: Point, target: _Target) -> Reading | Rejected:
        identity, rule, alias_number, series, slot, unit, divisor, kinds = target
        name, _, kind, temporality, time_ms, start_ms, value, histogram, said, place = point
        field_name = rule.field
        alias = rule.aliases[alias_number]
        if histogram is not None:
            if kinds or (said and said != unit):
                problem = _mismatch(point, field_name, alias)
                if problem is not None:
                    return Rejected(problem.reason, f"{name[:80]}: {problem.detail}"[:300])
            histogram = in_seconds(histogram, unit)
        elif value is not None:
            if kind not in kinds:
                problem = _mismatch(point, field_name, alias)
                if problem is not None:
                    return Rejected(problem.reason, f"{name[:80]}: {problem.detail}"[:300])
            value /= divisor
            if value < 0 or (field_name is Field.KV_USAGE and value > 1):
                return _out_of_range(point, field_name, value)
        if field_name in GAUGES:
            temporality = Temporality.INSTANT
        elif temporality is Temporality.INSTANT:
            temporality = Temporality.CUMULATIVE
        return Reading(
            identity,
            field_name,
            series,
            slot,
            alias_number,
            temporality,
            time_ms,
            start_ms,
            value,
            histogram,
            self.mapping.vantage,
            rule.over_ranks,
            rule.over_instances,
            alias.tbot_kind,
            name,
            place,
        )


def map_points(points: Iterable[Point], mapping: TelemetryMapping, origin: Origin = NO_ORIGIN) -> Mapped:
    """Map points once; whoever maps many messages keeps a Mapper, which gives the same and is faster."""
    return Mapper(mapping).map_points(points, origin)


class _Out:
    """Readings as they come, in place."""

    def __init__(self, max_series: int) -> None:
        self.unmatched: dict[str, int] = {}
        self._readings: list[Reading] = []
        self._rejects: list[Rejected] = []
        self._more_rejects = 0
        self._max_series = max_series
        self._series: dict[str, set[int]] = {}
        self._folded: dict[str, int] = {}
        self._best: dict[tuple[int, int], int] = {}
        self._has_worse = False

    def reject(self, rejected: Rejected) -> None:
        if len(self._rejects) < MAX_REJECTS:
            self._rejects.append(rejected)
        else:
            self._more_rejects += 1

    def add(self, reading: Reading) -> None:
        engine = reading.identity.engine
        series = self._series.get(engine)
        if series is None:
            series = self._series[engine] = set()
        if reading.series not in series:
            if len(series) >= self._max_series:
                self._folded[engine] = self._folded.get(engine, 0) + 1
                return
            series.add(reading.series)
        if reading.temporality is not Temporality.CUMULATIVE and not reading.is_missing:
            at = (reading.slot, reading.time_ms)
            best = self._best.setdefault(at, reading.alias)
            if best != reading.alias:
                self._has_worse = True
                self._best[at] = min(best, reading.alias)
        self._readings.append(reading)

    def mapped(self) -> Mapped:
        readings = self._readings
        if self._has_worse:
            readings = [r for r in readings if r.alias <= self._best.get((r.slot, r.time_ms), r.alias)]
        rejects = self._rejects
        if self._more_rejects:
            rejects = [*rejects, Rejected(rejects[-1].reason, f"and {self._more_rejects} more points")]
        return Mapped(tuple(readings), self.unmatched, tuple(rejects), self._folded)


def _kinds(wanted: Field) -> tuple[Kind, ...]:
    if wanted in DURATIONS:
        return ()
    return (Kind.GAUGE if wanted in GAUGES else Kind.COUNTER, Kind.UNTYPED)


def _matches(alias: Alias, labels: Mapping[str, Any]) -> bool:
    return all(labels.get(label, "") in values for label, values in alias.match)


def _text(identity: Identity, labels: Iterable[tuple[str, str]]) -> str:
    return "\x1f".join((*identity, *(part for pair in labels for part in pair)))


def _stable(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace"))


def _mismatch(point: Point, wanted: Field, alias: Alias) -> Rejected | None:
    if wanted in DURATIONS:
        if point.histogram is None:
            return Rejected(RejectReason.INCONSISTENT, f"is a {point.kind}; {wanted} needs a histogram or summary")
        unit = declared(point.unit) if point.unit else None
        if unit is not None and unit is not alias.unit and alias.unit in TIME_UNITS:
            detail = f"its source says {unit.value}, the mapping {alias.unit.value}: write unit: {unit.value}"
            return Rejected(RejectReason.INCONSISTENT, detail)
        return None
    if point.histogram is not None:
        return Rejected(RejectReason.INCONSISTENT, f"is a histogram; {wanted} needs a number")
    if wanted in GAUGES and point.kind is Kind.COUNTER:
        return Rejected(RejectReason.INCONSISTENT, f"is a counter; {wanted} needs a gauge")
    if wanted in COUNTERS and point.kind is Kind.GAUGE:
        return Rejected(RejectReason.INCONSISTENT, f"is a gauge; {wanted} needs a counter")
    return None


def _out_of_range(point: Point, wanted: Field, value: float) -> Rejected:
    if value < 0:
        return Rejected(RejectReason.NEGATIVE, f"{point.name[:80]} is {value:g}; {wanted} is at least 0")
    hint = "; if the source counts 0 to 100, write unit: percent" if value <= 100 else ""
    return Rejected(RejectReason.OUT_OF_RANGE, f"{point.name[:80]} is {value:g}; {wanted} is 0 to 1{hint}")
