"""Demand -> DemandState: arrivals by pane, spread over a period by time, and their smoothed rate.

    rate_rps     = sum of offered over the window / seconds of it that were covered by at least one source
    smoothed_rps = the mean over complete panes since the last step, over at most tau_demand (`level`, `taken_back`)

* A count over several panes is spread by time, whole requests, adding up exactly: the share up to an instant t is
  floor(count (t - start) / (end - start)), a pane gets the difference. What lies before the window is left out.
* The gateways of a cluster are added up. A pane is complete once event time has passed its end, or has reached it and
  as many source-milliseconds cover it as covered the pane before: a rate of half the gateways is not a fall in demand.
* A pane that is covered by less than half says nothing of its rate: it is no zero.
* Readings of counters go through the key's `ledger`, which takes their differences; what may still be reordered is
  counted on a copy, each time the state is told. Arrivals cover the time between their two readings.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from headrace.schemas.ids import RouteKey
from headrace.schemas.signals import Demand
from headrace.schemas.state import DemandState, Invalid
from headrace.streams.core import packing
from headrace.streams.core.ledger import Gain, Ledger
from headrace.streams.core.level import MS, Bounds, Pane
from headrace.streams.core.level_bytes import pack_level, read_level
from headrace.streams.core.mapping.reading import DEMANDED, Field, Identity
from headrace.streams.core.panes import Cover, PaneGrid, covered, covered_ms
from headrace.streams.core.taken_back import Followed, followed
from headrace.streams.core.window import Outcome, Progress, Window
from headrace.streams.settings import StreamsSettings

_PANE = struct.Struct("<qQQQQ")  # index, offered, rejected, retries, source-milliseconds


@dataclass(slots=True)
class DemandPane:
    """Arrivals in one pane. `source_ms` adds up the covered time of all sources.

    `packed`, and `rate` for the level, are kept until something changes.
    """

    offered: int = 0
    rejected: int = 0
    retries: int = 0
    source_ms: int = 0
    cover: Cover = ()
    covered_ms: int = 0
    packed: bytes | None = None
    rate: Pane | None = None

    def pack(self, index: int, start_ms: int) -> bytes:
        """Give the pane's bytes, encoding only what changed since the last time."""
        if self.packed is None:
            counts = _PANE.pack(index, self.offered, self.rejected, self.retries, self.source_ms)
            self.packed = counts + packing.pack_cover(self.cover, start_ms)
        return self.packed


class DemandAccumulator:
    """The fold of one route's demand, in place. `DemandState` is what it says, and all it needs to go on."""

    def __init__(self, route: RouteKey, settings: StreamsSettings) -> None:
        self.route = route
        self.settings = settings
        self.bounds = Bounds(settings.tau_demand_ms / MS, settings.step_share, settings.step_sigmas)
        self.window: Window[DemandPane] = Window(PaneGrid.of(settings), Progress())
        self.base: Followed | None = None
        self.ledger: Ledger | None = None

    @classmethod
    def resume(cls, state: DemandState, settings: StreamsSettings) -> "DemandAccumulator":
        """Take up a state's fold where it ended; bytes of another version or pane length begin a new window."""
        known = cls(state.route, settings)
        try:
            known._read(state.panes)
        except packing.UNREADABLE:
            known = cls(state.route, settings)
        known.window.resume(
            Progress.resume(state.last_signal_ms, state.signal_timestamp_ms, state.late, state.applied_offset)
        )
        known.ledger = Ledger.resume(state.series)
        return known

    def apply(self, demand: Demand, offset: int, timestamp_ms: int) -> Outcome:
        """Fold one signal."""
        if demand.lineage is not None or demand.series is not None:
            return self._apply_read(demand, offset, timestamp_ms)
        return self._apply_told(demand, offset, timestamp_ms)

    def _apply_told(self, demand: Demand, offset: int, timestamp_ms: int) -> Outcome:
        outcome = self.window.see(demand.period_end_ms, offset, timestamp_ms)
        if outcome is Outcome.APPLIED:
            self._spread(demand)
            self._close()
        return outcome

    def _apply_read(self, demand: Demand, offset: int, timestamp_ms: int) -> Outcome:
        window, lineage = self.window, demand.lineage
        if offset <= window.progress.applied_offset:
            return Outcome.DUPLICATE
        if self.ledger is None:
            self.ledger = Ledger()
        ledger = self.ledger
        if demand.series is None or not demand.series:
            if not ledger.first_told(lineage, demand.period_end_ms):
                return Outcome.DUPLICATE
            return self._apply_told(demand, offset, timestamp_ms)
        seen = window.progress.watermark_ms is not None
        frontier_ms = window.watermark_ms - window.grid.grace_ms if seen else None
        who = Identity("", "", "", "", self.route.cluster, self.route.request_class)
        taken = ledger.hold(demand.series, lineage, who, offset, frontier_ms)
        if not taken.fresh:
            return Outcome.DUPLICATE
        outcome = window.see_read(taken.late, taken.newest_ms, offset, timestamp_ms)
        if taken.newest_ms is not None:
            self._close(0)
            for gain in ledger.due(window.watermark_ms - window.grid.grace_ms):
                # Differences come by their ends, so that none reaches back before this one's beginning.
                self._close(gain.delta.from_ms // window.grid.pane_ms)
                self.gain(gain)
            self.window.evict()
        return outcome

    def gain(self, gain: Gain) -> None:
        """Count what arrived between two readings, spread over the time in between; arrivals alone cover it."""
        reading, delta, route = gain.reading, gain.delta, self.route
        if delta.value is None or reading.field not in DEMANDED:
            return
        counted = {field: round(delta.value) if reading.field is field else 0 for field in DEMANDED}
        offered, rejected, retries = (counted[field] for field in (Field.ARRIVALS, Field.REJECTED, Field.RETRIES))
        period = delta.from_ms, delta.to_ms
        part = Demand(route.cluster, route.model, route.request_class, "", *period, offered, rejected, retries)
        self._spread(part, covers=reading.field is Field.ARRIVALS)

    def _close(self, before: int | None = None) -> None:
        for index, pane in self.window.close(before):
            self.base = self._smooth(self.base, index, pane)
        self.window.evict()

    def state(self) -> DemandState:
        """Give the state as of the last signal: a pure reading, which changes nothing."""
        packed = self._pack(self.window.ordered())
        if self.ledger is None:
            return self.tell(packed)
        _, gains = self.ledger.told()
        told = self._copy() if gains else self
        for gain in gains:
            told.gain(gain)
        return replace(told.tell(packed), series=self.ledger.pack(()))

    def _copy(self) -> "DemandAccumulator":
        """Give an accumulator that counts on without changing this one; it is told and thrown away."""
        copy = DemandAccumulator(self.route, self.settings)
        copy.window = Window(self.window.grid, self.window.progress)
        copy.window.open_from, copy.base = self.window.open_from, self.base
        copy.window.panes = {index: replace(pane) for index, pane in self.window.panes.items()}
        return copy

    def tell(self, packed: bytes) -> DemandState:
        """Give the state that says this, over these packed panes."""
        window, progress = self.window, self.window.progress
        panes = window.ordered()
        total = DemandPane()
        for _, pane in panes:
            total.offered += pane.offered
            total.rejected += pane.rejected
            total.retries += pane.retries
            total.covered_ms += pane.covered_ms
        coverage = total.covered_ms / window.grid.window_ms(window.watermark_ms)
        rates = [rate for index, pane in panes if self._is_complete(index) and (rate := self._rate(pane)) is not None]
        smoothed = self.base
        for index, pane in window.open():
            if self._is_complete(index):
                smoothed = self._smooth(smoothed, index, pane)
        return DemandState(
            cluster=self.route.cluster,
            model=self.route.model,
            request_class=self.route.request_class,
            as_of_ms=window.grid.as_of_ms(window.watermark_ms),
            last_signal_ms=window.watermark_ms,
            signal_timestamp_ms=progress.signal_timestamp_ms,
            rate_rps=_per_second(total.offered, total.covered_ms),
            smoothed_rps=None if smoothed is None else smoothed.level.rps,
            peak_1s_rps=max(rates, default=None),
            rejected_rps=_per_second(total.rejected, total.covered_ms),
            retry_rps=_per_second(total.retries, total.covered_ms),
            coverage=coverage,
            invalid=Invalid.LOW_COVERAGE if coverage < self.settings.min_coverage else Invalid.NO,
            late=progress.late,
            applied_offset=progress.applied_offset,
            panes=packed,
        )

    def _spread(self, demand: Demand, *, covers: bool = True) -> None:
        grid, start, end = self.window.grid, demand.period_start_ms, demand.period_end_ms
        last = grid.index(end)
        first = max(min(start // grid.pane_ms, last), grid.first_in_window(self.window.watermark_ms))
        for index in range(first, last + 1):
            from_ms, to_ms = max(start, index * grid.pane_ms), min(end, grid.end_ms(index))
            pane = self.window.panes.setdefault(index, DemandPane())
            pane.offered += _share(demand.offered, demand, from_ms, to_ms)
            pane.rejected += _share(demand.rejected, demand, from_ms, to_ms)
            pane.retries += _share(demand.retries, demand, from_ms, to_ms)
            pane.packed = pane.rate = None
            if covers:
                pane.source_ms += max(0, to_ms - from_ms)
                pane.cover = covered(pane.cover, from_ms, to_ms)
                pane.covered_ms = covered_ms(pane.cover)

    def _is_complete(self, index: int) -> bool:
        window = self.window
        if window.grid.end_ms(index) != window.watermark_ms:
            return window.grid.end_ms(index) < window.watermark_ms
        before = window.panes.get(index - 1)
        return before is None or window.panes[index].source_ms >= before.source_ms

    def _rate(self, pane: DemandPane) -> float | None:
        if 2 * pane.covered_ms < self.settings.pane_ms:
            return None
        return _per_second(pane.offered, pane.covered_ms)

    def _smooth(self, before: Followed | None, index: int, pane: DemandPane) -> Followed | None:
        seen = self._seen(index, pane)
        return before if seen is None else followed(before, seen, self._newest_first(index), self.bounds)

    def _newest_first(self, index: int) -> Iterator[Pane]:
        """Give the panes back from one, up to the first that says nothing."""
        panes = self.window.panes
        while (pane := panes.get(index)) is not None and (seen := pane.rate or self._seen(index, pane)) is not None:
            yield seen
            index -= 1

    def _seen(self, index: int, pane: DemandPane) -> Pane | None:
        if pane.rate is None:
            rate, grid = self._rate(pane), self.window.grid
            pane.rate = None if rate is None else Pane(rate, grid.pane_ms / MS, grid.end_ms(index))
        return pane.rate

    def _pack(self, panes: list[tuple[int, DemandPane]]) -> bytes:
        window = self.window
        head = packing.head(window.grid.pane_ms, 0 if window.open_from is None else window.open_from)
        base = pack_level(self.base, len(panes))
        return head + base + b"".join(pane.pack(index, index * window.grid.pane_ms) for index, pane in panes)

    def _read(self, packed: bytes) -> None:
        window, reader = self.window, packing.Reader(packed)
        window.open_from = packing.read_head(reader, window.grid.pane_ms)
        self.base, count = read_level(reader)
        for _ in range(count):
            start = reader.at
            index, offered, rejected, retries, source_ms = reader.take(_PANE)
            cover = packing.read_cover(reader, index * window.grid.pane_ms)
            window.panes[index] = DemandPane(
                offered, rejected, retries, source_ms, cover, covered_ms(cover), packed[start : reader.at]
            )
        reader.end()


def _share(count: int, demand: Demand, from_ms: int, to_ms: int) -> int:
    length_ms = demand.period_end_ms - demand.period_start_ms
    if length_ms == 0:
        return count
    before = count * (from_ms - demand.period_start_ms) // length_ms
    return count * (to_ms - demand.period_start_ms) // length_ms - before


def _per_second(count: int, span_ms: int) -> float | None:
    return None if span_ms == 0 else count * 1000 / span_ms


def arrivals(state: DemandState) -> tuple[tuple[int, int, float], ...]:
    """Give what arrived in each pane that a state tells of: (begin, end, RPS), ms since the epoch, oldest first.

    Panes of which less than half was covered are left out, as are all of a state without panes, or with such as this
    version did not write.
    """
    reader = packing.Reader(state.panes)
    found = list[tuple[int, int, float]]()
    try:
        version, pane_ms, _ = reader.take(packing.HEAD)
        if version != packing.VERSION:
            return ()
        _, count = read_level(reader)
        for _ in range(count):
            index, offered, *_ = reader.take(_PANE)
            covered = covered_ms(packing.read_cover(reader, index * pane_ms))
            if 2 * covered >= pane_ms:
                found.append((index * pane_ms, (index + 1) * pane_ms, offered * MS / covered))
    except packing.UNREADABLE:
        return ()
    return tuple(found)


def fold_demand(
    state: DemandState | None, demand: Demand, offset: int, timestamp_ms: int, settings: StreamsSettings
) -> DemandState:
    """Fold one signal into a state, from bytes to bytes: what the accumulator does, one message at a time.

    A signal at or below the state's applied offset changes nothing.
    """
    if state is None:
        accumulator = DemandAccumulator(demand.route, settings)
    else:
        accumulator = DemandAccumulator.resume(state, settings)
    accumulator.apply(demand, offset, timestamp_ms)
    return accumulator.state()
