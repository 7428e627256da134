"""Engine signals -> EngineState: latency distributions by pane, the last status, how much of the window was covered.

    state = fold(state, signals, offset, timestamp)       skipped where offset <= state.applied_offset

* A distribution goes whole into the pane where its period ends; a period covers every pane it overlaps.
* smoothed_s starts from a base that ends with the last closed pane; the open panes are smoothed on top of it each time,
  so signals of several sources, or out of order within the grace, give the same value in any order.
* The status is the one with the newest period end; of several with the same, the last that came.
* Count 0 is no traffic: it covers the window, and leaves latencies as they are.
* A state is bounded: MAX_SERIES series, of which one without an entry in the window gives its place to a new one, and
  MAX_ENTRY_BYTES of entries, of which the oldest panes' histograms are dropped first, then the oldest entries.
* Latencies seen from a GATEWAY or CLIENT include the network, which the program adds itself, and a gateway speaks on
  for an engine that is silent: such signals are kept apart. Only their offset is taken note of.
"""

import struct
from itertools import starmap

from headrace.schemas.signals import EngineSignals, EngineStatus, Health, Metric, Vantage
from headrace.schemas.state import EngineState, Invalid, LatencyState
from headrace.streams.core import packing
from headrace.streams.core.completions import finished_rps
from headrace.streams.core.panes import Cover, PaneGrid, covered, covered_ms
from headrace.streams.core.series import METRICS, Entry, Series, latency_of, read_entry
from headrace.streams.core.smoothing import Smoothed, smooth
from headrace.streams.core.window import Outcome, Progress, Window
from headrace.streams.settings import StreamsSettings

MAX_SERIES = 1024
"""Most (model, metric) pairs that one engine's state holds; what is beyond is dropped, and the state says so."""
MAX_ENTRY_BYTES = 2 * 1024 * 1024
"""Most bytes of entries in one engine's panes: with all the rest, a state is far below its topic's limit."""
STATUS_HELD = "STATUS_HELD"
"""Rule: the newest signal had no status; the status of an older period is shown."""
SERIES_DROPPED = "SERIES_DROPPED"
"""Rule: the newest signal with latencies named more series, or larger ones, than a state holds; some are not in it."""
HISTOGRAMS_DROPPED = "HISTOGRAMS_DROPPED"
"""Rule: histograms of the window were larger than MAX_ENTRY_BYTES; quantiles are those of what is left."""

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
        self.entry_bytes = 0
        self._number: dict[tuple[str, Metric], int] = {}
        self._names: list[bytes] = []

    @classmethod
    def resume(cls, state: EngineState, settings: StreamsSettings) -> "EngineAccumulator":
        """Take up a state's fold where it ended; bytes of another version or pane length begin a new window."""
        known = cls(state.engine_id, settings)
        try:
            known._read(state)
        except packing.UNREADABLE:
            known = cls(state.engine_id, settings)
        seen = state.invalid is not Invalid.NO_SIGNAL_YET
        known.window.progress = Progress.resume(
            state.last_signal_ms if seen else None, state.signal_timestamp_ms, state.late, state.applied_offset
        )
        if seen and known.window.open_from is None:
            known.window.close()
        known._evict()
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
        self._bound()
        if signals.status is not None and signals.period_end_ms >= self.status_end_ms:
            self.status, self.status_end_ms = signals.status, signals.period_end_ms
        for index, pane in window.close():
            for number, entry in pane.entries.items():
                series = self.series[number]
                series.base = self._smooth(series.base, entry, window.grid.end_ms(index))
        self._evict()
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
            filled=self._filled(panes),
            invalid=self._invalid(coverage),
            late=progress.late,
            applied_offset=progress.applied_offset,
            panes=self._pack(panes),
            period_ms=self.period_ms,
            covered_ms=covered_total,
            finished_rps=finished_rps(window.grid, window.watermark_ms, self.period_ms, self.series, panes),
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
        named = {(distribution.model, distribution.metric) for distribution in signals.distributions}
        new = sum(name not in self._number for name in named)
        idle = self._idle(named) if len(self.series) + new > MAX_SERIES else []
        self.dropped = self.dropped and not signals.distributions
        for distribution in signals.distributions:
            number = self._numbered(distribution.model, distribution.metric, idle)
            if number is None or distribution.count == 0:
                continue
            entry = Entry.of(distribution)
            self.series[number].add(entry)
            before = pane.entries.get(number)
            pane.entries[number] = entry if before is None else before.merged(entry)
            self.entry_bytes += pane.entries[number].size - (0 if before is None else before.size)
            pane.packed = None

    def _idle(self, named: set[tuple[str, Metric]]) -> list[int]:
        """Give the series that the window and a signal have nothing of; the one that was smoothed longest ago last."""
        used = {number for pane in self.window.panes.values() for number in pane.entries}
        idle = [
            number
            for number, series in enumerate(self.series)
            if number not in used and (series.model, series.metric) not in named
        ]
        return sorted(idle, key=lambda number: (self._smoothed_at_ms(number), number), reverse=True)

    def _smoothed_at_ms(self, number: int) -> int:
        base = self.series[number].base
        return -1 if base is None else base.at_ms

    def _bound(self) -> None:
        """Drop histograms, and then entries, of the oldest panes, until what is left is within MAX_ENTRY_BYTES."""
        for drop in (False, True):
            for _, pane in self.window.ordered():
                for number, entry in list(pane.entries.items()):
                    if self.entry_bytes <= MAX_ENTRY_BYTES:
                        return
                    self.series[number].remove(entry)
                    thin = entry.thin() if entry.counts else entry
                    if drop:
                        self.dropped = True
                        del pane.entries[number]
                        self.entry_bytes -= entry.size
                    else:
                        pane.entries[number] = thin
                        self.series[number].add(thin)
                        self.entry_bytes -= entry.size - thin.size
                    pane.packed = None

    def _evict(self) -> None:
        for pane in self.window.evict():
            for number, entry in pane.entries.items():
                self.series[number].remove(entry)
                self.entry_bytes -= entry.size

    def _numbered(self, model: str, metric: Metric, idle: list[int]) -> int | None:
        number = self._number.get((model, metric))
        if number is not None:
            return number
        if len(self.series) < MAX_SERIES:
            return self._number_next(Series(model, metric))
        if not idle:
            self.dropped = True
            return None
        number = idle.pop()
        del self._number[self.series[number].model, self.series[number].metric]
        self._number[model, metric] = number
        self.series[number], self._names[number] = Series(model, metric), model.encode()
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
        found = starmap(latency_of, zip(self.series, entries, smoothed, strict=True))
        return tuple(sorted(found, key=lambda latency: (latency.model, latency.metric)))

    def _filled(self, panes: list[tuple[int, EnginePane]]) -> tuple[str, ...]:
        held = 0 <= self.status_end_ms < self.window.watermark_ms
        thinned = any(entry.thinned for _, pane in panes for entry in pane.entries.values())
        found = {SERIES_DROPPED: self.dropped, HISTOGRAMS_DROPPED: thinned, STATUS_HELD: held}
        return tuple(rule for rule, applies in found.items() if applies)

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
                self.entry_bytes += entry.size
            pane.packed = reader.packed[start : reader.at]
        reader.end()


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
