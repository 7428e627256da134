"""`Translator.translate(record)`: one source record -> readings by target, in its order, each with its place.

What is given depends on the record alone, so a bridge that goes back gives the same again: offset and index say which
reading it is. What is remembered of label sets is only speed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from headrace.schemas.check_series import MAX_AHEAD_MS, MAX_TEXT_CHARS, MAX_VALUE, MIN_SCALE
from headrace.schemas.check_signals import Signal, check_signal
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.series import Lineage, SeriesPart
from headrace.schemas.signals import Vantage
from headrace.streams.core.canonical.parts import as_parts, part_names
from headrace.streams.core.canonical.wire import ReadingWriter, Told
from headrace.streams.core.decode.contract import DecodeOptions, Explicit, Exponential
from headrace.streams.core.decode.edge import decode
from headrace.streams.core.mapping.apply import Mapper, Rewrite
from headrace.streams.core.mapping.documents import map_documents
from headrace.streams.core.mapping.model import TelemetryMapping
from headrace.streams.core.mapping.reading import DEMANDED, Identity, Reading
from headrace.streams.core.mapping.templates import Origin

DEFAULT_CLASS: Final = "default"
MAX_AHEAD_OF_CLOCK_MS: Final = MAX_AHEAD_MS // 2
"""The streams hold a reading against the time of the signal's own record: half is left for what lies between."""


class EngineTarget(NamedTuple):
    """The engine that a reading is of, and where it was seen from."""

    engine_id: str
    vantage: Vantage


class RouteTarget(NamedTuple):
    """The route whose demand a reading counts."""

    cluster: str
    model: str
    request_class: str


Target = EngineTarget | RouteTarget


@dataclass(frozen=True, slots=True)
class Translated:
    """What one record held. `signals` are canonical already; `unmatched` counts points by name, `folded` by engine."""

    readings: tuple[tuple[Target, Told], ...] = ()
    signals: tuple[Signal, ...] = ()
    rejects: tuple[Rejected, ...] = ()
    points: int = 0
    unmatched: Mapping[str, int] = field(default_factory=dict[str, int])
    folded: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def is_unusable(self) -> bool:
        """Whether the record held nothing but rejects."""
        return bool(self.rejects) and not self.readings and not self.signals


class Translator:
    """One source's carrier and mapping, made ready.

    Args:
        mapping: what the source's telemetry means.
        options: how its records are written; only the names that the mapping asks for are decoded.
        rewrite: the mapping's own Python, loaded; it gets a message's points as they were decoded.
    """

    def __init__(self, mapping: TelemetryMapping, options: DecodeOptions, rewrite: Rewrite | None = None) -> None:
        self.mapping = mapping
        self._options = options if rewrite is not None else replace(options, wanted=mapping.wanted)
        self._mapper = Mapper(mapping)
        self._parts = part_names(mapping.families)
        self.writer = ReadingWriter()
        self._rewrite = rewrite

    def translate(self, record: RawRecord, now_ms: int) -> Translated:
        """Give what a record holds; readings and signals that are dated beyond `now_ms` are rejects.

        Nothing raises past here: a record that something raises on, the mapping's own Python perhaps, is a reject.
        """
        try:
            return self._translated(record, now_ms)
        except Exception as error:  # noqa: BLE001 - whatever it is, the partition goes on
            detail = f"cannot be translated: {type(error).__name__}: {error}"[:300]
            return Translated(rejects=(Rejected(RejectReason.MALFORMED, detail),))

    def _translated(self, record: RawRecord, now_ms: int) -> Translated:
        decoded = decode(record, self._options)
        origin, rejects = Origin.of(record), list(decoded.rejects)
        rewritten = decoded.points if self._rewrite is None else tuple(self._rewrite(decoded.points, origin))
        points, parts = as_parts(rewritten, self._parts, rejects)
        mapped = self._mapper.map_points(points, origin)
        rejects += mapped.rejects
        found = mapped.readings
        if decoded.documents:
            documents = map_documents(decoded.documents, self.mapping, origin)
            rejects += documents.rejects
            found = (*found, *documents.readings)
        readings: list[tuple[Target, Told]] = []
        write, offset = self.writer.write, record.offset
        whose: Identity | None = None
        target: Target | Rejected | None = None
        latest_ms = now_ms + MAX_AHEAD_OF_CLOCK_MS
        for index, reading in enumerate(found):
            problem = _problem(reading, now_ms, latest_ms)
            if problem is not None:
                rejects.append(problem)
                continue
            # Most readings are of the engine that the one before was of; demand is told by each.
            is_counted = reading.field in DEMANDED
            if target is None or is_counted or reading.identity is not whose:
                target = _target(reading)
                whose = None if is_counted else reading.identity
            if isinstance(target, Rejected):
                rejects.append(target)
                continue
            part = parts.get(reading.place, SeriesPart.WHOLE) if parts else SeriesPart.WHOLE
            readings.append((target, write(reading, part, offset, index)))
        return Translated(
            tuple(readings),
            tuple(self._signals(decoded.signals, record, rejects)) if decoded.signals else (),
            tuple(rejects),
            len(decoded.points) + len(decoded.documents) + len(decoded.signals) + sum(decoded.skipped.values()),
            {**mapped.unmatched, **decoded.skipped} if decoded.skipped else mapped.unmatched,
            mapped.folded,
        )

    def _signals(self, signals: tuple[Signal, ...], record: RawRecord, rejects: list[Rejected]) -> list[Signal]:
        found: list[Signal] = []
        for index, signal in enumerate(signals):
            lineage = Lineage(record.topic, record.partition, record.offset, index, self.mapping.hash)
            signal = replace(signal, lineage=lineage)  # noqa: PLW2901 - the same signal, with where it was read
            problem = check_signal(signal, record.timestamp_ms)
            if problem is None:
                found.append(signal)
            else:
                rejects.append(problem)
        return found


def _target(reading: Reading) -> Target | Rejected:
    identity = reading.identity
    if len(identity.instance) > MAX_TEXT_CHARS or len(identity.rank) > MAX_TEXT_CHARS:
        detail = f"{reading.name[:80]}: instance or rank is longer than {MAX_TEXT_CHARS} characters"
        return Rejected(RejectReason.BAD_IDENTIFIER, detail)
    if reading.field not in DEMANDED:
        return EngineTarget(identity.engine, reading.vantage)
    if not identity.cluster:
        detail = f"{reading.name[:80]}: cluster cannot be told, and demand is of a cluster; write identity.cluster"
        return Rejected(RejectReason.BAD_IDENTIFIER, detail)
    return RouteTarget(identity.cluster, identity.model, identity.request_class or DEFAULT_CLASS)


def _problem(reading: Reading, now_ms: int, latest_ms: int) -> Rejected | None:
    """Give why a reading would be refused by the fold, together with all that travels with it."""
    time_ms, start_ms, value, histogram = reading[6:10]
    if time_ms > latest_ms:
        detail = f"{reading.name[:80]} is dated {time_ms}, {time_ms - now_ms} ms from now"
        return Rejected(RejectReason.TIME_IN_FUTURE, f"{detail}; its clock is wrong")
    if time_ms < 0 or (start_ms is not None and start_ms < 0):
        return Rejected(RejectReason.NEGATIVE, f"{reading.name[:80]} is dated {time_ms}; at least 0")
    is_in_bounds = value is None or value <= MAX_VALUE
    if histogram is not None:
        total, low, high = histogram[-3:]
        is_in_bounds = (
            (total is None or abs(total) <= MAX_VALUE)
            and (low is None or abs(low) <= MAX_VALUE)
            and (high is None or abs(high) <= MAX_VALUE)
            and _is_laid_out(histogram)
        )
    if not is_in_bounds:
        return Rejected(RejectReason.OUT_OF_RANGE, f"{reading.name[:80]} has a number beyond {MAX_VALUE:g}")
    return None


def _is_laid_out(histogram: Explicit | Exponential) -> bool:
    if isinstance(histogram, Exponential):
        return histogram.scale >= MIN_SCALE
    bounds = histogram.bounds
    return len(bounds) <= 1 or (abs(bounds[0]) <= MAX_VALUE and abs(bounds[-1]) <= MAX_VALUE)
