"""One series: its last reading and the next one -> what happened in between.

    nothing known           Baseline, or Delta where the series began inside the time that is known
    missing                 Missing: the level stays
    older than the level    OutOfOrder: dropped and counted; equal: Duplicate
    more than MAX_GAP_MS    Baseline: what the counter gained cannot be dated
    start moved, or fell    Delta of the whole new value, reset said; the new value is the level
    else                    Delta of the difference

A start equal to the point's own time is "unknown" (OpenTelemetry data model, "Cumulative streams: handling unknown
start time"): a collector that restarts writes it, and it is no reset. A start that moved where nothing fell is believed
only if the rate it implies is not beyond MAX_SPEEDUP times the rate before: a collector's own start time in the
engine's place would else turn a life's count into one period's.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from headrace.streams.core.decode.contract import Explicit, Exponential, Temporality
from headrace.streams.core.differencing.subtract import Fell, subtract
from headrace.streams.core.mapping.reading import DURATIONS, Field, Reading

MAX_GAP_MS: Final = 600_000
START_JITTER_MS: Final = 1_000
"""A start time that moves by no more is the same: some producers derive it from an uptime."""
MAX_SPEEDUP: Final = 5.0
MIN_RATE: Final = 2.0
"""A rate before, per second, counts as at least this: an engine that idled may well become busy."""


class Since(StrEnum):
    """Why a reading is only a baseline."""

    FIRST = "FIRST"
    GAP = "GAP"
    IMPLAUSIBLE = "IMPLAUSIBLE"


@dataclass(frozen=True, slots=True)
class Level:
    """A series as it stood last: what the next reading is held against; `rate` is per second, of its last step."""

    time_ms: int
    start_ms: int | None
    value: float | None
    histogram: Explicit | Exponential | None
    rate: float | None


@dataclass(frozen=True, slots=True)
class Delta:
    """What happened in (from_ms, to_ms]. `reset` says in words what fell or moved; "" where nothing did."""

    from_ms: int
    to_ms: int
    value: float | None
    histogram: Explicit | Exponential | None
    reset: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The reading is the level from now on; nothing is known of what happened before."""

    since: Since


@dataclass(frozen=True, slots=True)
class OutOfOrder:
    """The reading is older than the level, by so much; it is dropped."""

    behind_ms: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The reading is the level."""


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no value to use: not zero."""

    reason: str


Outcome = Delta | Baseline | OutOfOrder | Duplicate | Missing


class Known(NamedTuple):
    """What is known besides the series itself: since when its engine is watched, and a rate to hold a first one to."""

    since_ms: int | None = None
    rate: float | None = None


NOTHING_KNOWN: Final = Known()


def difference(level: Level | None, reading: Reading, known: Known = NOTHING_KNOWN) -> tuple[Level | None, Outcome]:
    """Give the series' next level and what the reading tells. Pure; the reading is of the level's series."""
    if reading.is_missing:
        return level, Missing("NO_RECORDED_VALUE")
    if reading.histogram is not None and reading.histogram.total is None:
        return level, Missing("NO_SUM")
    if reading.temporality is Temporality.DELTA:
        return _delta(level, reading)
    if level is None:
        return _first(reading, known)
    if reading.time_ms < level.time_ms:
        return level, OutOfOrder(level.time_ms - reading.time_ms)
    if reading.time_ms == level.time_ms:
        return _same_time(level, reading)
    return _next(level, reading)


def _delta(level: Level | None, reading: Reading) -> tuple[Level, Outcome]:
    """A delta adds up in any order: only a series' newest time is kept."""
    since = reading.start_ms
    if since is None:
        since = reading.time_ms if level is None else min(level.time_ms, reading.time_ms)
    newest = reading.time_ms if level is None else max(level.time_ms, reading.time_ms)
    found = Delta(since, reading.time_ms, reading.value, reading.histogram)
    return Level(newest, None, None, None, None), _usable(reading, found)


def _first(reading: Reading, known: Known) -> tuple[Level, Outcome]:
    start_ms = reading.start_ms
    level = _level(reading, None)
    if start_ms is None or known.since_ms is None or not known.since_ms <= start_ms < reading.time_ms:
        return level, Baseline(Since.FIRST)
    if reading.time_ms - start_ms > MAX_GAP_MS:
        return level, Baseline(Since.GAP)
    rate = _rate(_size(reading), start_ms, reading.time_ms)
    if known.rate is not None and rate > MAX_SPEEDUP * max(known.rate, MIN_RATE):
        return level, Baseline(Since.IMPLAUSIBLE)
    return _level(reading, rate), _usable(reading, _whole(reading, start_ms, ""))


def _same_time(level: Level, reading: Reading) -> tuple[Level, Outcome]:
    """Time cut to whole seconds lets two readings meet: the larger one goes on, a lower one is the older."""
    if reading.value == level.value and reading.histogram == level.histogram:
        return level, Duplicate()
    between = _between(level, reading)
    if isinstance(between, Fell):
        return level, OutOfOrder(0)
    return _level(reading, level.rate), _usable(reading, between)


def _next(level: Level, reading: Reading) -> tuple[Level, Outcome]:
    between = _between(level, reading)
    moved = _start_moved(level, reading)
    start_ms = reading.start_ms
    if isinstance(between, Fell) or (moved and _is_believable(level, reading)):
        words = between.what if isinstance(between, Fell) else f"start {level.start_ms} to {start_ms}"
        since = level.time_ms
        if start_ms is not None and level.time_ms < start_ms < reading.time_ms:
            since = start_ms
        if reading.time_ms - since > MAX_GAP_MS:
            return _level(reading, None), Baseline(Since.GAP)
        rate = _rate(_size(reading), since, reading.time_ms)
        return _level(reading, rate), _usable(reading, _whole(reading, since, words))
    if reading.time_ms - level.time_ms > MAX_GAP_MS:
        return _level(reading, level.rate), Baseline(Since.GAP)
    gained = between.histogram.observations if between.histogram is not None else between.value or 0.0
    rate = _rate(gained, level.time_ms, reading.time_ms)
    return _level(reading, rate), _usable(reading, between)


def _between(level: Level, reading: Reading) -> Delta | Fell:
    if reading.histogram is not None:
        if level.histogram is None:
            return Fell("layout: a number became a histogram")
        found = subtract(reading.histogram, level.histogram)
        if isinstance(found, Fell):
            return found
        return Delta(level.time_ms, reading.time_ms, None, found)
    if level.value is None or reading.value is None:
        return Fell("layout: a histogram became a number")
    if reading.value < level.value:
        return Fell(f"value {level.value:g} to {reading.value:g}")
    return Delta(level.time_ms, reading.time_ms, reading.value - level.value, None)


def _start_moved(level: Level, reading: Reading) -> bool:
    start_ms = reading.start_ms
    if start_ms is None or start_ms >= reading.time_ms:
        return False
    if level.start_ms is None:
        return start_ms > level.time_ms
    return start_ms > level.start_ms + START_JITTER_MS


def _is_believable(level: Level, reading: Reading) -> bool:
    """Say whether a moved start may mean that counting began anew, though nothing fell."""
    start_ms = reading.start_ms
    if start_ms is None:
        return False
    before = level.rate
    if before is None and level.start_ms is not None and level.start_ms < level.time_ms:
        size = level.histogram.observations if level.histogram is not None else level.value or 0.0
        before = _rate(size, level.start_ms, level.time_ms)
    if before is None:
        return True
    return _rate(_size(reading), start_ms, reading.time_ms) <= MAX_SPEEDUP * max(before, MIN_RATE)


def _usable(reading: Reading, found: Delta) -> Outcome:
    """A latency of exactly zero for every request was not measured: the engine would look the best of all.

    Queueing may well be zero for all.
    """
    histogram = found.histogram
    if reading.field in DURATIONS and histogram is not None:
        if histogram.observations and histogram.total == 0.0 and reading.field is not Field.QUEUE:
            return Missing("ALL_ZERO")
        if histogram.total is None:
            return Missing("NO_SUM")
    return found


def _whole(reading: Reading, since_ms: int, reset: str) -> Delta:
    return Delta(since_ms, reading.time_ms, reading.value, reading.histogram, reset)


def _level(reading: Reading, rate: float | None) -> Level:
    return Level(reading.time_ms, reading.start_ms, reading.value, reading.histogram, rate)


def _size(reading: Reading) -> float:
    return reading.histogram.observations if reading.histogram is not None else reading.value or 0.0


def _rate(gained: float, from_ms: int, to_ms: int) -> float:
    return gained * 1000.0 / max(1, to_ms - from_ms)
