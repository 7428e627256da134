"""All series of one engine: levels, gauges, and which alias of a series speaks. What the fold keeps of an engine.

    book.take(reading) ─► Outcome          folds in place, for speed; the bytes depend only on the readings in order
    book.pack() ─► bytes ─► SeriesBook.read(bytes)

* Aliases: of the names that one series goes by, the first that is present speaks; the levels of all are kept, so that a
  name that vanishes with an upgrade hands over without a gap or a sum. A silent name is present for ALIAS_HOLD_MS.
* Bounds: at most `max_series` series. What has not been heard for FORGET_MS makes room first; a series beyond is
  `Folded` where it is a gauge, or cumulative, since a difference needs memory; a delta still counts. Models beyond
  `max_models` count as OTHER.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

import msgpack  # type: ignore[import-untyped]  # msgpack ships no types

from headrace.schemas.errors import HeadraceError
from headrace.streams.core.decode.contract import Temporality
from headrace.streams.core.differencing.gauges import Gauge
from headrace.streams.core.differencing.level import (
    Delta,
    Duplicate,
    Known,
    Level,
    Missing,
    Outcome,
    OutOfOrder,
    difference,
)
from headrace.streams.core.differencing.rows import gauge_of_row, level_of_row, level_row
from headrace.streams.core.mapping.reading import GAUGES, Reading

ALIAS_HOLD_MS: Final = 60_000
FORGET_MS: Final = 900_000
FORGET_EVERY_MS: Final = 10_000
DEFAULT_MAX_SERIES: Final = 1_024
DEFAULT_MAX_MODELS: Final = 64
OTHER: Final = "other"
"""The model that stands for all those beyond an engine's bound: names that users made up, most likely."""
_FORM: Final = 1


@dataclass(frozen=True, slots=True)
class Latest:
    """A gauge's reading became its latest value."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """A name that is preferred speaks for this series; the reading only moved its own level."""

    by_alias: int


@dataclass(frozen=True, slots=True)
class Folded:
    """The engine has as many series as it may: this one is not told apart."""

    max_series: int


BookOutcome = Outcome | Latest | Superseded | Folded


class UnreadableBookError(HeadraceError):
    """Bytes that are no packed book: a table of another build, or not a table at all."""


@dataclass(slots=True)
class Tally:
    """What happened to readings, counted over the book's life."""

    resets: int = 0
    out_of_order: int = 0
    duplicates: int = 0
    missing: int = 0
    folded: int = 0


class _Speaker(NamedTuple):
    alias: int
    time_ms: int


class _Step(NamedTuple):
    """A difference that was taken: of which reading, from which level, knowing what, and what came of it."""

    reading: Reading
    level: Level | None
    known: Known
    following: Level | None
    outcome: Outcome


@dataclass(slots=True)
class SeriesBook:
    """The series of one engine. Folded in place by `take`.

    A fork shares `steps` with the book that it came from: a difference that the fork took is not taken a second time,
    where the book later stands as the fork did. It is forgotten when the book itself takes the reading.
    """

    max_series: int = DEFAULT_MAX_SERIES
    max_models: int = DEFAULT_MAX_MODELS
    levels: dict[int, Level] = field(default_factory=dict[int, Level])
    gauges: dict[int, Gauge] = field(default_factory=dict[int, Gauge])
    tally: Tally = field(default_factory=Tally)
    newest_ms: int = -1
    _since: dict[str, int] = field(default_factory=dict[str, int])
    _rates: dict[str, float] = field(default_factory=dict[str, float])
    _speakers: dict[int, _Speaker] = field(default_factory=dict[int, _Speaker])
    _models: set[str] = field(default_factory=set[str])
    _forgot_ms: int | None = None
    _steps: dict[tuple[int, int], _Step] = field(default_factory=dict[tuple[int, int], _Step])
    _is_fork: bool = False

    def take(self, reading: Reading) -> BookOutcome:
        """Fold one reading and say what it tells."""
        outcome = self._gauge(reading) if reading.field in GAUGES else self._series(reading)
        self._count(outcome)
        if not reading.is_missing:
            self.newest_ms = max(self.newest_ms, reading.time_ms)
            if len(self._since) < self.max_series:
                self._since.setdefault(reading.identity.instance, reading.time_ms)
        return outcome

    def model_of(self, reading: Reading) -> str:
        """Give the model under which a reading counts: its own, or OTHER where the engine already has `max_models`."""
        model = reading.identity.model
        if model not in self._models:
            if len(self._models) >= self.max_models:
                return OTHER
            self._models.add(model)
        return model

    def _gauge(self, reading: Reading) -> BookOutcome:
        if reading.value is None:
            return Missing("NO_RECORDED_VALUE")
        known = self.gauges.get(reading.slot)
        if known is None and len(self.gauges) >= self.max_series and not self._forget():
            return Folded(self.max_series)
        spoken = self._speaks(reading)
        if spoken is not None:
            return spoken
        if known is not None and reading.time_ms < known.time_ms:
            return OutOfOrder(known.time_ms - reading.time_ms)
        identity = reading.identity
        self.gauges[reading.slot] = Gauge(
            reading.field,
            identity.model,
            identity.instance,
            identity.rank,
            reading.value,
            reading.time_ms,
            reading.over_ranks,
            reading.over_instances,
        )
        return Latest()

    def _series(self, reading: Reading) -> BookOutcome:
        level = self.levels.get(reading.series)
        if level is None and len(self.levels) >= self.max_series and not self._forget():
            if reading.temporality is not Temporality.DELTA:
                return Folded(self.max_series)
            self.tally.folded += 1
            return difference(None, reading)[1]
        name = _name(reading)
        known = Known(self._since.get(reading.identity.instance), self._rates.get(name))
        following, outcome = self._difference(level, reading, known)
        if following is not None:
            self.levels[reading.series] = following
        if isinstance(outcome, Missing):
            return outcome
        spoken = self._speaks(reading)
        if spoken is not None:
            return spoken
        has_room = name in self._rates or len(self._rates) < self.max_series
        if has_room and isinstance(outcome, Delta) and following is not None and following.rate is not None:
            self._rates[name] = following.rate
        return outcome

    def _difference(self, level: Level | None, reading: Reading, known: Known) -> tuple[Level | None, Outcome]:
        steps, at = self._steps, (reading.series, reading.time_ms)
        step = steps.get(at) if self._is_fork else steps.pop(at, None)
        if step is not None and step.reading is reading and step.level is level and step.known == known:
            return step.following, step.outcome
        following, outcome = difference(level, reading, known)
        if self._is_fork:
            steps[at] = _Step(reading, level, known, following, outcome)
        return following, outcome

    def _speaks(self, reading: Reading) -> Superseded | None:
        """Give who speaks in the reading's stead, or None and note that it speaks itself."""
        alias, time_ms = reading.alias, reading.time_ms
        speaker = self._speakers.get(reading.slot)
        if speaker is None:
            self._speakers[reading.slot] = _Speaker(alias, time_ms)
        elif alias == speaker.alias:
            if time_ms > speaker.time_ms:
                self._speakers[reading.slot] = _Speaker(alias, time_ms)
        elif alias > speaker.alias and time_ms <= speaker.time_ms + ALIAS_HOLD_MS:
            return Superseded(speaker.alias)
        elif time_ms + ALIAS_HOLD_MS < speaker.time_ms:
            # A preferred name out of the past does not take the word back.
            return Superseded(speaker.alias)
        else:
            self._speakers[reading.slot] = _Speaker(alias, time_ms)
        return None

    def _forget(self) -> bool:
        """Make room: drop what has not been heard for FORGET_MS. Say whether there is room now.

        A flood of series must not sweep the book for each of them: once in FORGET_EVERY_MS of event time is enough.
        """
        if self._forgot_ms is not None and self.newest_ms < self._forgot_ms + FORGET_EVERY_MS:
            return False
        self._forgot_ms = self.newest_ms
        horizon = self.newest_ms - FORGET_MS
        self.levels = {series: level for series, level in self.levels.items() if level.time_ms >= horizon}
        self.gauges = {slot: gauge for slot, gauge in self.gauges.items() if gauge.time_ms >= horizon}
        self._speakers = {slot: each for slot, each in self._speakers.items() if each.time_ms >= horizon}
        return len(self.levels) < self.max_series and len(self.gauges) < self.max_series

    def _count(self, outcome: BookOutcome) -> None:
        tally = self.tally
        match outcome:
            case Delta(reset=reset) if reset:
                tally.resets += 1
            case OutOfOrder():
                tally.out_of_order += 1
            case Duplicate():
                tally.duplicates += 1
            case Missing():
                tally.missing += 1
            case Folded():
                tally.folded += 1
            case _:
                pass

    def fork(self, *, remembers: bool = True) -> "SeriesBook":
        """Give a copy that is folded on without changing this one; `remembers`: readings it takes come here later."""
        tally = self.tally
        return SeriesBook(
            self.max_series,
            self.max_models,
            dict(self.levels),
            dict(self.gauges),
            Tally(tally.resets, tally.out_of_order, tally.duplicates, tally.missing, tally.folded),
            self.newest_ms,
            dict(self._since),
            dict(self._rates),
            dict(self._speakers),
            set(self._models),
            self._forgot_ms,
            self._steps if remembers else {},
            _is_fork=True,
        )

    def adopt(self) -> "SeriesBook":
        """Give a fork as the book itself: all that it took is final."""
        self._steps.clear()
        self._is_fork = False
        return self

    def pack(self) -> bytes:
        """Give the book as bytes: the same readings in the same order give the same bytes."""
        bounds: dict[tuple[float, ...], int] = {}
        levels = [level_row(series, self.levels[series], bounds) for series in sorted(self.levels)]
        tally = self.tally
        return cast(
            "bytes",
            msgpack.packb(
                [
                    _FORM,
                    [self.max_series, self.max_models],
                    [self.newest_ms, self._forgot_ms],
                    [list(each) for each in bounds],
                    levels,
                    [[slot, *self.gauges[slot]] for slot in sorted(self.gauges)],
                    [[slot, *self._speakers[slot]] for slot in sorted(self._speakers)],
                    sorted(self._since.items()),
                    sorted(self._rates.items()),
                    sorted(self._models),
                    [tally.resets, tally.out_of_order, tally.duplicates, tally.missing, tally.folded],
                ]
            ),
        )

    @classmethod
    def read(cls, packed: bytes) -> "SeriesBook":
        """Give the book that `pack` packed; no bytes are an empty book.

        Raises:
            UnreadableBookError: they are something else.
        """
        if not packed:
            return cls()
        try:
            parts = cast("list[Any]", msgpack.unpackb(packed, strict_map_key=False))
            (
                form,
                (max_series, max_models),
                (newest_ms, forgot_ms),
                bounds,
                levels,
                gauges,
                speakers,
                since,
                rates,
                models,
                tally,
            ) = parts
            if form != _FORM:
                raise UnreadableBookError(f"a book of form {form}; this build reads {_FORM}")
            shared: list[tuple[float, ...]] = [tuple(each) for each in bounds]
            return cls(
                max_series=max_series,
                max_models=max_models,
                levels=dict(level_of_row(each, shared) for each in levels),
                gauges={each[0]: gauge_of_row(each[1:]) for each in gauges},
                tally=Tally(*tally),
                newest_ms=newest_ms,
                _since=dict(since),
                _rates=dict(rates),
                _speakers={slot: _Speaker(alias, time_ms) for slot, alias, time_ms in speakers},
                _models=set(models),
                _forgot_ms=forgot_ms,
            )
        except (ValueError, TypeError, KeyError, IndexError, msgpack.UnpackException) as error:
            raise UnreadableBookError(f"no packed book: {type(error).__name__}: {error}") from error


def _name(reading: Reading) -> str:
    """Give what a series' engine is watched by: one instance's field and model."""
    return f"{reading.identity.instance}|{reading.identity.model}|{reading.field}"
