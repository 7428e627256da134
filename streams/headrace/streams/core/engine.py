"""Engine signals -> EngineState: latency distributions by pane, the last status, how much of the window was covered.

    state = fold(state, signals, offset, timestamp)       skipped where offset <= state.applied_offset

* A distribution goes whole into the pane where its period ends; a period covers every pane it overlaps.
* smoothed_s starts from a base that ends with the last closed pane; the open panes are smoothed on top of it each time,
  so signals of several sources, or out of order within the grace, give the same value in any order.
* The status is the one with the newest period end; of several with the same, the last that came.
* Count 0 is no traffic: it covers the window, and leaves latencies as they are.
* Latencies seen from a GATEWAY or CLIENT include the network, which the program adds itself, and a gateway speaks on
  for an engine that is silent: such signals are kept apart. Only their offset is taken note of.
"""

import math
import struct
from itertools import starmap

from headrace.schemas.signals import EngineSignals, EngineStatus, Health, Metric, Vantage
from headrace.schemas.state import EngineState, Invalid, LatencyState
from headrace.streams.core import packing
from headrace.streams.core.panes import Cover, PaneGrid, covered, covered_ms
from headrace.streams.core.series import METRICS, Entry, Series, read_entry
from headrace.streams.core.smoothing import Smoothed, smooth
from headrace.streams.core.window import Outcome, Progress, Window
from headrace.streams.settings import StreamsSettings

MAX_SERIES = 1024
"""Most (model, metric) pairs that one engine's state holds; what is beyond is dropped, and the state says so."""
STATUS_HELD = "STATUS_HELD"
"""Rule: the newest signal had no status; the status of an older period is shown."""
SERIES_DROPPED = "SERIES_DROPPED"
"""Rule: the engine named more than MAX_SERIES series; the newest ones are not in the state."""

_NO_STATUS = EngineStatus(Health.UNKNOWN, None, None, None, None, None, None)
_KEPT_APART = (Vantage.GATEWAY, Vantage.CLIENT)
_STATUS = struct.Struct("<qBHH")  # end of the status's period, series dropped, number of series, number of panes
_SERIES = struct.Struct("<BBBdq")  # length of the model, metric, has a base, base, its event time
_PANE = struct.Struct("<qH")  # index, number of entries


class EnginePane:
    """One engine's entries by series number, and the instants covered. `packed` is kept until something changes."""

    __slots__ = ("cover", "covered_ms", "entries", "packed")

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.cover: Cover = ()
        self.covered_ms = 0
        self.packed: bytes | None = None

    def pack(self, index: int, start_ms: int) -> bytes:
        """Give the pane's bytes, encoding only what changed since the last time."""
        if self.packed is None:
            entries = b"".join(entry.pack(series) for series, entry in self.entries.items())
            self.packed = _PANE.pack(index, len(self.entries)) + packing.pack_cover(self.cover, start_ms) + entries
        return self.packed


class EngineAccumulator:
    """The fold of one engine, in place. `EngineState` is what it says at any moment, and all it needs to go on."""

    def __init__(self, engine_id: str, settings: StreamsSettings) -> None:
        self.engine_id = engine_id
        self.settings = settings
        self.window: Window[EnginePane] = Window(PaneGrid.of(settings), Progress())
        self.series: list[Series] = []
        self.status = _NO_STATUS
        self.status_end_ms = -1
        self.dropped = False
        self.period_ms: int | None = None
        self._number: dict[tuple[str, Metric], int] = {}
        self._names: list[bytes] = []

    @classmethod
    def resume(cls, state: EngineState, settings: StreamsSettings) -> "EngineAccumulator":
        """Take up a state's fold where it ended; bytes of another version or pane length begin a new window."""
        known = cls(state.engine_id, settings)
        try:
            known._read(state)
        except (packing.PackingError, IndexError, ValueError):  # the last two: numbers that point at nothing
            known = cls(state.engine_id, settings)
        seen = state.invalid is not Invalid.NO_SIGNAL_YET
        known.window.progress = Progress.resume(
            state.last_signal_ms if seen else None, state.signal_timestamp_ms, state.late, state.applied_offset
        )
        if seen and known.window.open_from is None:
            known.window.close()
        known.status = EngineStatus(
            state.health,
            state.replicas_desired,
            state.replicas_ready,
            state.replicas_reporting,
            state.running,
            state.waiting,
            state.kv_usage,
        )
        known.period_ms = state.period_ms
        return known

    def apply(self, signals: EngineSignals, offset: int, timestamp_ms: int) -> Outcome:
        """Fold one signal."""
        window = self.window
        if signals.vantage in _KEPT_APART:
            if offset <= window.progress.applied_offset:
                return Outcome.DUPLICATE
            window.progress.applied_offset = offset
            return Outcome.KEPT_APART
        outcome = window.see(signals.period_end_ms, offset, timestamp_ms)
        if outcome is not Outcome.APPLIED:
            return outcome
        if signals.period_end_ms == window.watermark_ms:
            self.period_ms = signals.period_end_ms - signals.period_start_ms
        self._cover(signals.period_start_ms, signals.period_end_ms)
        self._count(signals)
        if signals.status is not None and signals.period_end_ms >= self.status_end_ms:
            self.status, self.status_end_ms = signals.status, signals.period_end_ms
        for index, pane in window.close():
            for number, entry in pane.entries.items():
                series = self.series[number]
                series.base = self._smooth(series.base, entry, window.grid.end_ms(index))
        for pane in window.evict():
            for number, entry in pane.entries.items():
                self.series[number].remove(entry)
        return outcome

    def state(self) -> EngineState:
        """Give the state as of the last signal: a pure reading, which changes nothing."""
        window, progress, status = self.window, self.window.progress, self.status
        panes = window.ordered()
        covered_total = sum(pane.covered_ms for _, pane in panes)
        length_ms = window.grid.window_ms(window.watermark_ms)
        coverage = covered_total / length_ms if progress.watermark_ms is not None else 0.0
        return EngineState(
            engine_id=self.engine_id,
            as_of_ms=window.grid.as_of_ms(window.watermark_ms),
            last_signal_ms=window.watermark_ms,
            signal_timestamp_ms=progress.signal_timestamp_ms,
            health=status.health,
            replicas_desired=status.replicas_desired,
            replicas_ready=status.replicas_ready,
            replicas_reporting=status.replicas_reporting,
            running=status.running,
            waiting=status.waiting,
            kv_usage=status.kv_usage,
            latencies=self._latencies(panes),
            coverage=coverage,
            filled=self._filled(),
            invalid=self._invalid(coverage),
            late=progress.late,
            applied_offset=progress.applied_offset,
            panes=self._pack(panes),
            period_ms=self.period_ms,
            covered_ms=covered_total,
        )

    def _cover(self, start_ms: int, end_ms: int) -> None:
        window = self.window
        first = max(start_ms // window.grid.pane_ms, window.grid.first_in_window(window.watermark_ms))
        for index in range(first, window.grid.index(end_ms) + 1):
            from_ms, to_ms = index * window.grid.pane_ms, window.grid.end_ms(index)
            pane = self._pane(index)
            cover = covered(pane.cover, max(start_ms, from_ms), min(end_ms, to_ms))
            if cover != pane.cover:
                pane.cover, pane.covered_ms, pane.packed = cover, covered_ms(cover), None

    def _pane(self, index: int) -> EnginePane:
        pane = self.window.panes.get(index)
        if pane is None:
            pane = self.window.panes[index] = EnginePane()
        return pane

    def _count(self, signals: EngineSignals) -> None:
        pane = self._pane(self.window.grid.index(signals.period_end_ms))
        for distribution in signals.distributions:
            number = self._numbered(distribution.model, distribution.metric)
            if number is None or distribution.count == 0:
                continue
            entry = Entry.of(distribution)
            self.series[number].add(entry)
            before = pane.entries.get(number)
            pane.entries[number] = entry if before is None else before.merged(entry)
            pane.packed = None

    def _numbered(self, model: str, metric: Metric) -> int | None:
        number = self._number.get((model, metric))
        if number is None:
            if len(self.series) >= MAX_SERIES:
                self.dropped = True
                return None
            number = self._number_next(Series(model, metric))
        return number

    def _number_next(self, series: Series) -> int:
        number = self._number[series.model, series.metric] = len(self.series)
        self.series.append(series)
        self._names.append(series.model.encode())
        return number

    def _smooth(self, before: Smoothed | None, entry: Entry, at_ms: int) -> Smoothed:
        return smooth(
            before, entry.sum_s / entry.observations, at_ms, self.settings.tau_bad_ms, self.settings.tau_good_ms
        )

    def _latencies(self, panes: list[tuple[int, EnginePane]]) -> tuple[LatencyState, ...]:
        entries: list[list[Entry]] = [[] for _ in self.series]
        for _, pane in panes:
            for number, entry in pane.entries.items():
                entries[number].append(entry)
        smoothed = [series.base for series in self.series]
        for index, pane in self.window.open():
            at_ms = min(self.window.grid.end_ms(index), self.window.watermark_ms)
            for number, entry in pane.entries.items():
                smoothed[number] = self._smooth(smoothed[number], entry, at_ms)
        found = starmap(_latency, zip(self.series, entries, smoothed, strict=True))
        return tuple(sorted(found, key=lambda latency: (latency.model, latency.metric)))

    def _filled(self) -> tuple[str, ...]:
        held = 0 <= self.status_end_ms < self.window.watermark_ms
        return (SERIES_DROPPED,) * self.dropped + (STATUS_HELD,) * held

    def _invalid(self, coverage: float) -> Invalid:
        if self.window.progress.watermark_ms is None:
            return Invalid.NO_SIGNAL_YET
        return Invalid.LOW_COVERAGE if coverage < self.settings.min_coverage else Invalid.NO

    def _pack(self, panes: list[tuple[int, EnginePane]]) -> bytes:
        window = self.window
        open_from = 0 if window.open_from is None else window.open_from
        parts = [
            packing.head(window.grid.pane_ms, open_from),
            _STATUS.pack(self.status_end_ms, self.dropped, len(self.series), len(panes)),
        ]
        for series, name in zip(self.series, self._names, strict=True):
            base = series.base
            value, at_ms = (0.0, 0) if base is None else base
            parts.append(_SERIES.pack(len(name), METRICS.index(series.metric), base is not None, value, at_ms))
            parts.append(name)
        parts.extend(pane.pack(index, index * window.grid.pane_ms) for index, pane in panes)
        return b"".join(parts)

    def _read(self, state: EngineState) -> None:
        window, reader = self.window, packing.Reader(state.panes)
        open_from = packing.read_head(reader, window.grid.pane_ms)
        if state.invalid is not Invalid.NO_SIGNAL_YET:
            window.open_from = open_from
        self.status_end_ms, dropped, series_count, pane_count = reader.take(_STATUS)
        self.dropped = bool(dropped)
        for _ in range(series_count):
            length, metric_number, has_base, value, at_ms = reader.take(_SERIES)
            model, metric = reader.take_bytes(length).decode("utf-8", "replace"), METRICS[int(metric_number)]
            self._number_next(Series(model, metric, Smoothed(value, at_ms) if has_base else None))
        for _ in range(pane_count):
            start = reader.at
            index, entry_count = reader.take(_PANE)
            pane = self._pane(index)
            pane.cover = packing.read_cover(reader, index * window.grid.pane_ms)
            pane.covered_ms = covered_ms(pane.cover)
            for _ in range(entry_count):
                number, entry = read_entry(reader)
                pane.entries[number] = entry
                self.series[number].add(entry)
            pane.packed = reader.packed[start : reader.at]
        reader.end()


def _latency(series: Series, entries: list[Entry], smoothed: Smoothed | None) -> LatencyState:
    count, sum_s = 0, 0.0
    low, high = math.inf, 0.0
    for entry in entries:
        count += entry.observations
        sum_s += entry.sum_s
        # A bucket's middle is kept inside what was measured, where every pane measured its minimum or maximum.
        low = min(low, 0.0 if entry.min_s is None else entry.min_s)
        high = max(high, math.inf if entry.max_s is None else entry.max_s)
    p50, p95, p99 = (
        (None, None, None) if (found := series.quantiles()) is None else (max(min(q, high), low) for q in found)
    )
    return LatencyState(
        model=series.model,
        metric=series.metric,
        count=count,
        mean_s=sum_s / count if count else None,
        smoothed_s=None if smoothed is None else smoothed.value,
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
    )


def fold_engine(
    state: EngineState | None, signals: EngineSignals, offset: int, timestamp_ms: int, settings: StreamsSettings
) -> EngineState:
    """Fold one signal into a state, from bytes to bytes: what the accumulator does, one message at a time.

    A signal at or below the state's applied offset changes nothing.
    """
    if state is None:
        accumulator = EngineAccumulator(signals.engine_id, settings)
    else:
        accumulator = EngineAccumulator.resume(state, settings)
    accumulator.apply(signals, offset, timestamp_ms)
    return accumulator.state()
