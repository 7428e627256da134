"""`try_mapping(records, mapping, carrier)`: what would become of these records, and in plain words what to change.

The records go through the very decoders, mapping and differencing that run live, in their order, and nothing is kept.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from headrace.schemas.check_signals import Signal
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import EngineSignals
from headrace.streams.core.canonical.translator import MAX_AHEAD_OF_CLOCK_MS
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Point
from headrace.streams.core.decode.edge import decode
from headrace.streams.core.decode.families import Pending, assemble, finish
from headrace.streams.core.differencing.book import BookOutcome, Folded, SeriesBook, Superseded
from headrace.streams.core.differencing.level import Baseline, Delta, Duplicate, Missing, OutOfOrder
from headrace.streams.core.mapping.apply import Mapper, Rewrite
from headrace.streams.core.mapping.documents import map_documents
from headrace.streams.core.mapping.model import TelemetryMapping
from headrace.streams.core.mapping.reading import Field, Reading
from headrace.streams.core.mapping.templates import Origin
from headrace.streams.core.trial.advice import Seen, advise
from headrace.streams.core.trial.document_paths import scalar_paths
from headrace.streams.core.trial.field_trial import FieldTrial

MAX_EVENTS: Final = 10
MAX_NAMES: Final = 200
MAX_LOOKED_AT: Final = 200
"""Documents whose paths are gathered, to name the nearest one."""


@dataclass(frozen=True, slots=True)
class Event:
    """One difference, as the fold would take it."""

    engine: str
    model: str
    field: Field
    from_ms: int
    to_ms: int
    observations: int | None
    mean_s: float | None
    value: float | None
    reset: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of the records. `problems` say what to change; which of them make it failed, `advice` says."""

    mapping: str
    mapping_hash: str
    carrier: str
    messages: int
    points: int
    documents: int
    signals: int
    rejects: Mapping[str, int]
    unmatched: Mapping[str, int]
    engines: Mapping[str, tuple[str, ...]]
    fields: tuple[FieldTrial, ...]
    outcomes: Mapping[str, int]
    events: tuple[Event, ...]
    problems: tuple[str, ...]
    failed: bool


@dataclass(slots=True)
class _Tally:
    readings: int = 0
    differences: int = 0
    resets: int = 0
    missing: int = 0
    observations: int = 0
    total: float = 0.0
    names: set[str] = field(default_factory=set[str])
    times: dict[int, list[int]] = field(default_factory=dict[int, list[int]])


def try_mapping(
    records: Iterable[RawRecord],
    mapping: TelemetryMapping,
    carrier: str,
    rewrite: Rewrite | None = None,
    expired_after_ms: int | None = None,
    now_ms: int | None = None,
) -> Trial:
    """Run records through a mapping and say what came out.

    Args:
        records: in their order.
        mapping: what they are taken to mean.
        carrier: how they are written.
        rewrite: the mapping's own Python, loaded.
        expired_after_ms: the solver's setting, against which the source's period is held.
        now_ms: what the bridge's clock says, which refuses what is dated ahead of it; None where that is not asked.

    Raises:
        InvalidInputError: there is no carrier of that name.
    """
    run = _Run(mapping, carrier, rewrite, expired_after_ms, now_ms)
    for record in records:
        run.take(record)
    return run.result()


class _Run:
    """One pass over the records, in place."""

    def __init__(
        self,
        mapping: TelemetryMapping,
        carrier: str,
        rewrite: Rewrite | None,
        expired_after_ms: int | None,
        now_ms: int | None,
    ) -> None:
        self._now_ms = now_ms
        self._paths: Counter[str] = Counter()
        self._ahead_ms: list[int] = []
        self._rewrite = rewrite
        self._expired_after_ms = expired_after_ms
        self._mapping = mapping
        self._options = DecodeOptions(carrier)
        self._mapper = Mapper(mapping)
        self._pending = Pending()
        self._books: dict[str, SeriesBook] = {}
        self._tallies: dict[Field, _Tally] = {rule.field: _Tally() for rule in mapping.rules}
        self._counts: Counter[str] = Counter()
        self._rejects: Counter[str] = Counter()
        self._unmatched: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._engines: dict[str, set[str]] = {}
        self._events: list[Event] = []

    def take(self, record: RawRecord) -> None:
        self._counts["messages"] += 1
        decoded = decode(record, self._options)
        self._note(decoded)
        assembled = assemble(self._pending, decoded.points, self._mapping.families)
        self._rejects.update(each.detail for each in assembled.rejects)
        origin = Origin.of(record)
        self._points(assembled.points, origin)
        if self._counts["documents"] <= MAX_LOOKED_AT:
            self._paths.update(scalar_paths(decoded.documents).keys())
        documents = map_documents(decoded.documents, self._mapping, origin)
        self._rejects.update(each.detail for each in documents.rejects)
        for name, count in documents.missing.items():
            self._tallies[Field(name)].missing += count
        self._outcomes["clamped"] += sum(documents.clamped.values())
        for reading in documents.readings:
            self._reading(reading)

    def result(self) -> Trial:
        rest = finish(self._pending)
        self._rejects.update(each.detail for each in rest.rejects)
        self._points(rest.points, Origin())
        fields = tuple(self._field(rule.field, required=rule.required) for rule in self._mapping.rules)
        nothing = not self._counts["signals"] and not any(each.readings for each in fields)
        advice = advise(self._seen(fields))
        return Trial(
            mapping=self._mapping.name,
            mapping_hash=self._mapping.hash,
            carrier=self._options.carrier,
            messages=self._counts["messages"],
            points=self._counts["points"],
            documents=self._counts["documents"],
            signals=self._counts["signals"],
            rejects=dict(self._rejects.most_common(MAX_NAMES)),
            unmatched=dict(self._unmatched.most_common(MAX_NAMES)),
            engines={engine: tuple(sorted(models)) for engine, models in sorted(self._engines.items())},
            fields=fields,
            outcomes=dict(sorted((name, count) for name, count in self._outcomes.items() if count)),
            events=tuple(self._events),
            problems=tuple(each.sentence for each in advice),
            failed=nothing or any(each.fails for each in advice),
        )

    def _seen(self, fields: tuple[FieldTrial, ...]) -> Seen:
        return Seen(
            mapping=self._mapping,
            carrier=self._options.carrier,
            expired_after_ms=self._expired_after_ms,
            counts=self._counts,
            fields=fields,
            outcomes=self._outcomes,
            rejects=self._rejects,
            unmatched=self._unmatched,
            paths=self._paths,
            ahead_ms=self._ahead_ms,
        )

    def _note(self, decoded: Decoded) -> None:
        self._counts["points"] += len(decoded.points)
        self._counts["documents"] += len(decoded.documents)
        self._counts["signals"] += len(decoded.signals)
        self._rejects.update(each.detail for each in decoded.rejects)
        for signal in decoded.signals:
            self._signal(signal)

    def _signal(self, signal: Signal) -> None:
        if isinstance(signal, EngineSignals):
            self._engines.setdefault(signal.engine_id, set()).update(d.model for d in signal.distributions)

    def _points(self, points: tuple[Point, ...], origin: Origin) -> None:
        rewritten = points if self._rewrite is None else self._rewrite(points, origin)
        mapped = self._mapper.map_points(rewritten, origin)
        self._rejects.update(each.detail for each in mapped.rejects)
        self._unmatched.update(mapped.unmatched)
        self._outcomes["folded"] += sum(mapped.folded.values())
        for reading in mapped.readings:
            self._reading(reading)

    def _reading(self, reading: Reading) -> None:
        identity, tally = reading.identity, self._tallies[reading.field]
        tally.readings += 1
        if self._now_ms is not None and reading.time_ms - self._now_ms > MAX_AHEAD_OF_CLOCK_MS:
            self._ahead_ms.append(reading.time_ms - self._now_ms)
        tally.names.add(reading.name)
        times = tally.times.setdefault(reading.series, [])
        if not times or times[-1] != reading.time_ms:
            times.append(reading.time_ms)
        self._engines.setdefault(identity.engine, set()).add(identity.model)
        book = self._books.setdefault(identity.engine, SeriesBook())
        outcome = book.take(reading)
        self._outcomes[_word(outcome)] += 1
        if isinstance(outcome, Missing):
            tally.missing += 1
        if isinstance(outcome, Delta):
            self._delta(reading, outcome, tally)

    def _delta(self, reading: Reading, delta: Delta, tally: _Tally) -> None:
        tally.differences += 1
        tally.resets += bool(delta.reset)
        histogram = delta.histogram
        if histogram is not None:
            tally.observations += histogram.observations
            tally.total += histogram.total or 0.0
        if len(self._events) < MAX_EVENTS:
            observations = None if histogram is None else histogram.observations
            mean = (histogram.total or 0.0) / observations if histogram is not None and observations else None
            identity = reading.identity
            self._events.append(
                Event(
                    identity.engine,
                    identity.model,
                    reading.field,
                    delta.from_ms,
                    delta.to_ms,
                    observations,
                    mean,
                    delta.value,
                    delta.reset,
                )
            )

    def _field(self, name: Field, *, required: bool) -> FieldTrial:
        tally = self._tallies[name]
        mean = tally.total / tally.observations if tally.observations else None
        return FieldTrial(
            field=name,
            required=required,
            readings=tally.readings,
            differences=tally.differences,
            resets=tally.resets,
            missing=tally.missing,
            observations=tally.observations,
            mean=mean,
            period_s=_period(tally.times),
            names=tuple(sorted(tally.names)),
        )


def _word(outcome: BookOutcome) -> str:
    match outcome:
        case Delta(reset=reset):
            return "reset" if reset else "difference"
        case Baseline(since=since):
            return "baseline" if since == "FIRST" else f"baseline_{since.lower()}"
        case OutOfOrder():
            return "out_of_order"
        case Duplicate():
            return "duplicate"
        case Missing():
            return "missing"
        case Superseded():
            return "superseded"
        case Folded():
            return "folded"
        case _:
            return "gauge"


def _period(times: Mapping[int, list[int]]) -> float | None:
    """Give the median time between two readings of one series, seconds."""
    steps = sorted(abs(b - a) for series in times.values() for a, b in pairwise(series))
    return steps[math.ceil(len(steps) / 2) - 1] / 1000.0 if steps else None
