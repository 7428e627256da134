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
  for an engine that is silent: such signals are kept apart. Their offset and instant are taken note of, the state says
  GATEWAY_APART, and only how requests ended is counted (`outcomes`).
* Readings of cumulative series go through the key's `ledger`, which takes their differences; what may still be
  reordered is counted on a copy, each time the state is told. A difference covers the time between its two readings.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.schemas.signals import EngineSignals, EngineStatus, Health, Metric, Vantage
from headrace.schemas.state import EngineState, Invalid
from headrace.streams.core import packing
from headrace.streams.core.differencing.spread import distribution
from headrace.streams.core.engine_packing import packed_panes, packed_series, read_panes, read_series
from headrace.streams.core.engine_pane import EnginePane
from headrace.streams.core.engine_telling import engine_state
from headrace.streams.core.held import SERIES_TBOT_KINDS
from headrace.streams.core.ledger import Gain, Ledger
from headrace.streams.core.mapping.reading import DURATIONS, OUTCOMES, Field, Identity
from headrace.streams.core.outcomes import OutcomePanes
from headrace.streams.core.panes import PaneGrid
from headrace.streams.core.roster import MAX_SERIES, Roster
from headrace.streams.core.series import Entry, Series, smoothed_by
from headrace.streams.core.window import Outcome, Progress, Window
from headrace.streams.settings import StreamsSettings

if TYPE_CHECKING:
    from headrace.schemas.series import TbotKind

MAX_ENTRY_BYTES = 2 * 1024 * 1024
"""Most bytes of entries in one engine's panes: with all the rest, a state is far below its topic's limit."""
_NO_STATUS = EngineStatus(Health.UNKNOWN, None, None, None, None, None, None)
KEPT_APART = (Vantage.GATEWAY, Vantage.CLIENT)
"""Vantages whose latencies are not the engine's own."""


class EngineAccumulator:
    """The fold of one engine, in place. `EngineState` is what it says at any moment, and all it needs to go on."""

    def __init__(self, engine_id: str, settings: StreamsSettings) -> None:
        self.engine_id = engine_id
        self.settings = settings
        self.window: Window[EnginePane] = Window(PaneGrid.of(settings), Progress())
        self.roster = Roster()
        self.status = _NO_STATUS
        self.status_end_ms = -1
        self.dropped = False
        self.period_ms: int | None = None
        self.entry_bytes = 0
        self.ledger: Ledger | None = None
        self.tbot_kinds: dict[str, TbotKind] = {}
        self.outcomes = OutcomePanes(self.window.grid)

    @property
    def series(self) -> list[Series]:
        """Latency series by number."""
        return self.roster.series

    @classmethod
    def resume(cls, state: EngineState, settings: StreamsSettings) -> "EngineAccumulator":
        """Take up a state's fold where it ended; bytes of another version or pane length begin a new window."""
        known = cls(state.engine_id, settings)
        try:
            read_panes(known, state)
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
        read_series(known, state)
        return known

    def apply(self, signals: EngineSignals, offset: int, timestamp_ms: int) -> Outcome:
        """Fold one signal."""
        if signals.vantage in KEPT_APART:
            return self._keep_apart(signals, offset)
        if signals.lineage is not None or signals.series is not None:
            return self._apply_read(signals, offset, timestamp_ms)
        return self._apply_told(signals, offset, timestamp_ms)

    def _apply_told(self, signals: EngineSignals, offset: int, timestamp_ms: int) -> Outcome:
        window = self.window
        outcome = window.see(signals.period_end_ms, offset, timestamp_ms)
        if outcome is not Outcome.APPLIED:
            return outcome
        if signals.period_end_ms == window.watermark_ms:
            self.period_ms = signals.period_end_ms - signals.period_start_ms
        self._cover(signals.period_start_ms, signals.period_end_ms)
        self._count(signals)
        self.outcomes.add(Vantage.ENGINE, signals.period_end_ms, signals.outcomes or ())
        self._bound()
        if signals.status is not None and signals.period_end_ms >= self.status_end_ms:
            self.status, self.status_end_ms = signals.status, signals.period_end_ms
        self._close()
        return outcome

    def _apply_read(self, signals: EngineSignals, offset: int, timestamp_ms: int) -> Outcome:
        """Fold a signal that the bridge read somewhere: what was read before is dropped, whatever its offset here."""
        window, lineage = self.window, signals.lineage
        if offset <= window.progress.applied_offset:
            return Outcome.DUPLICATE
        ledger = self._ledger()
        if signals.series is None or not signals.series:
            if not ledger.first_told(lineage, signals.period_end_ms):
                return Outcome.DUPLICATE
            return self._apply_told(signals, offset, timestamp_ms)
        seen = window.progress.watermark_ms is not None
        frontier_ms = window.watermark_ms - window.grid.grace_ms if seen else None
        who = Identity(self.engine_id, "", "", "", "", "")
        taken = ledger.hold(signals.series, lineage, who, offset, frontier_ms)
        if not taken.fresh:
            return Outcome.DUPLICATE
        outcome = window.see_read(taken.late, taken.newest_ms, offset, timestamp_ms)
        if taken.newest_ms is None:
            return outcome
        if signals.status is not None and signals.period_end_ms >= self.status_end_ms:
            self.status, self.status_end_ms = signals.status, signals.period_end_ms
        for gain in ledger.due(window.watermark_ms - window.grid.grace_ms):
            self.gain(gain)
        self._bound()
        self._close()
        return outcome

    def _keep_apart(self, signals: EngineSignals, offset: int) -> Outcome:
        if offset <= self.window.progress.applied_offset:
            return Outcome.DUPLICATE
        self.window.progress.applied_offset = offset
        ledger = self._ledger()
        ledger.apart_ms = max(signals.period_end_ms, ledger.apart_ms or 0)
        if signals.outcomes is not None and ledger.first_told(signals.lineage, signals.period_end_ms):
            self.outcomes.add(signals.vantage, signals.period_end_ms, signals.outcomes)
            self.outcomes.evict(self.window.watermark_ms)
        return Outcome.KEPT_APART

    def _ledger(self) -> Ledger:
        if self.ledger is None:
            self.ledger = Ledger()
        return self.ledger

    def gain(self, gain: Gain) -> None:
        """Count what happened between two readings: in the pane where it ended, covering the time in between."""
        delta, grid = gain.delta, self.window.grid
        if delta.to_ms > delta.from_ms:
            self._cover(delta.from_ms, delta.to_ms)
            self.period_ms = delta.to_ms - delta.from_ms
        if gain.reading.field in OUTCOMES:
            self.outcomes.gain(gain.model, delta, failed=gain.reading.field is Field.FAILED)
        metric, histogram = DURATIONS.get(gain.reading.field), delta.histogram
        if metric is None or histogram is None or not histogram.observations or histogram.total is None:
            return
        if gain.entry is None:
            gain.entry = Entry.of(distribution(gain.model, metric, histogram))
        name = gain.model, metric
        number = self._numbered(name, [] if name in self.roster else self._idle({name}, 1))
        if metric is Metric.TBOT:
            self._note_kind(gain)
        if number is not None:
            self._enter(self._pane(grid.index(delta.to_ms)), number, gain.entry)

    def _note_kind(self, gain: Gain) -> None:
        kind = SERIES_TBOT_KINDS.get(gain.reading.tbot_kind)
        if kind is None:
            self.tbot_kinds.pop(gain.model, None)
        else:
            self.tbot_kinds[gain.model] = kind

    def _close(self) -> None:
        window = self.window
        for index, pane in window.close():
            for number, entry in pane.entries.items():
                series = self.series[number]
                series.base = smoothed_by(series.base, entry, window.grid.end_ms(index), self.settings)
        self._evict()

    def state(self) -> EngineState:
        """Give the state as of the last signal: a pure reading, which changes nothing."""
        panes = packed_panes(self, self.window.ordered())
        if self.ledger is None:
            return engine_state(self, panes, None)
        packed = packed_series(self, self.ledger)
        book, gains = self.ledger.told()
        told = self._copy() if gains else self
        for gain in gains:
            told.gain(gain)
        return replace(engine_state(told, panes, book), series=packed)

    def _copy(self) -> "EngineAccumulator":
        """Give an accumulator that counts on without changing this one; it is told and thrown away."""
        copy, window = EngineAccumulator(self.engine_id, self.settings), self.window
        copy.window = Window(window.grid, window.progress)
        copy.window.open_from = window.open_from
        copy.window.panes = {index: pane.copy() for index, pane in window.panes.items()}
        copy.roster, copy.status, copy.status_end_ms = self.roster.copy(), self.status, self.status_end_ms
        copy.dropped, copy.period_ms, copy.ledger = self.dropped, self.period_ms, self.ledger
        copy.tbot_kinds, copy.outcomes = dict(self.tbot_kinds), self.outcomes.copy()
        return copy

    def _cover(self, start_ms: int, end_ms: int) -> None:
        window = self.window
        first = max(start_ms // window.grid.pane_ms, window.grid.first_in_window(window.watermark_ms))
        for index in range(first, window.grid.index(end_ms) + 1):
            from_ms, to_ms = index * window.grid.pane_ms, window.grid.end_ms(index)
            self._pane(index).add_cover(max(start_ms, from_ms), min(end_ms, to_ms))

    def _pane(self, index: int) -> EnginePane:
        pane = self.window.panes.get(index)
        if pane is None:
            pane = self.window.panes[index] = EnginePane()
        return pane

    def _count(self, signals: EngineSignals) -> None:
        pane = self._pane(self.window.grid.index(signals.period_end_ms))
        names = [(each.model, each.metric) for each in signals.distributions]
        new = sum([name not in self.roster for name in names])
        idle = self._idle(set(names), new) if new else []
        self.dropped = self.dropped and not names
        for name, each in zip(names, signals.distributions, strict=True):
            number = self._numbered(name, idle)
            if number is None or each.count == 0:
                continue
            self._enter(pane, number, Entry.of(each))

    def _enter(self, pane: EnginePane, number: int, entry: Entry) -> None:
        self.series[number].add(entry)
        before = pane.entries.get(number)
        whole = entry if before is None else before.merged(entry)
        pane.entries[number] = whole
        self.entry_bytes += whole.size - (0 if before is None else before.size)
        pane.packed = None

    def _idle(self, named: set[tuple[str, Metric]], new: int) -> list[int]:
        """Give the series whose place `new` ones may take; none where there is room."""
        if len(self.roster) + new <= MAX_SERIES:
            return []
        return self.roster.idle({number for pane in self.window.panes.values() for number in pane.entries}, named)

    def _bound(self) -> None:
        """Drop histograms, and then entries, of the oldest panes, until what is left is within MAX_ENTRY_BYTES."""
        if self.entry_bytes <= MAX_ENTRY_BYTES:
            return
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
        self.outcomes.evict(self.window.watermark_ms)
        for pane in self.window.evict():
            for number, entry in pane.entries.items():
                self.series[number].remove(entry)
                self.entry_bytes -= entry.size

    def _numbered(self, name: tuple[str, Metric], idle: list[int]) -> int | None:
        number = self.roster.numbered(name, idle)
        self.dropped = self.dropped or number is None
        return number


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
