"""Network probes -> NetworkState: round trips and losses by pane, and the smoothed round trip.

    rtt_s = sum of round trips / probes that came back        lost_share = probes that did not / probes

A lost probe is a measurement: it counts in `count` and `lost_share`, and leaves the round trip as it was. Smoothing is
that of latencies: worse fast, better slowly, from a base at the last closed pane.

A probe that a bridge read somewhere counts once, however often the bridge delivers it: how far each source was read is
part of the state, as with engines.
"""

import struct
from dataclasses import dataclass

from headrace.schemas.signals import NetworkProbe
from headrace.schemas.state import Invalid, NetworkState
from headrace.streams.core import packing
from headrace.streams.core.ledger import Ledger
from headrace.streams.core.panes import PaneGrid
from headrace.streams.core.smoothing import Smoothed, smooth
from headrace.streams.core.window import Outcome, Progress, Window
from headrace.streams.settings import StreamsSettings

_BASE = struct.Struct("<BdqH")  # has a base, base, its event time, number of panes
_PANE = struct.Struct("<qQQd")  # index, probes, probes that came back, sum of their round trips


@dataclass(slots=True)
class NetworkPane:
    """Probes of one pane."""

    count: int = 0
    returned: int = 0
    sum_s: float = 0.0


class NetworkAccumulator:
    """The fold of one link's probes, in place. `NetworkState` is what it says, and all it needs to go on."""

    def __init__(self, from_cluster: str, to_site: str, settings: StreamsSettings) -> None:
        self.from_cluster = from_cluster
        self.to_site = to_site
        self.settings = settings
        self.window: Window[NetworkPane] = Window(PaneGrid.of(settings), Progress())
        self.base: Smoothed | None = None
        self.ledger: Ledger | None = None

    @classmethod
    def resume(cls, state: NetworkState, settings: StreamsSettings) -> "NetworkAccumulator":
        """Take up a state's fold where it ended; bytes of another version or pane length begin a new window."""
        known = cls(state.from_cluster, state.to_site, settings)
        try:
            known._read(state.panes)
        except packing.UNREADABLE:
            known = cls(state.from_cluster, state.to_site, settings)
        known.window.resume(
            Progress.resume(state.last_signal_ms, state.signal_timestamp_ms, state.late, state.applied_offset)
        )
        known.ledger = Ledger.resume(state.series)
        return known

    def apply(self, probe: NetworkProbe, offset: int, timestamp_ms: int) -> Outcome:
        """Fold one probe."""
        window = self.window
        if offset > window.progress.applied_offset and probe.lineage is not None:
            if self.ledger is None:
                self.ledger = Ledger()
            if not self.ledger.first_told(probe.lineage, probe.at_ms):
                return Outcome.DUPLICATE
        outcome = window.see(probe.at_ms, offset, timestamp_ms)
        if outcome is not Outcome.APPLIED:
            return outcome
        pane = window.panes.setdefault(window.grid.index(probe.at_ms), NetworkPane())
        pane.count += 1
        if probe.rtt_s is not None:
            pane.returned += 1
            pane.sum_s += probe.rtt_s
        for index, final in window.close():
            self.base = self._smooth(self.base, final, window.grid.end_ms(index))
        window.evict()
        return outcome

    def state(self) -> NetworkState:
        """Give the state as of the last probe: a pure reading, which changes nothing."""
        window, progress = self.window, self.window.progress
        panes = window.ordered()
        total = NetworkPane()
        for _, pane in panes:
            total.count += pane.count
            total.returned += pane.returned
            total.sum_s += pane.sum_s
        smoothed = self.base
        for index, pane in window.open():
            smoothed = self._smooth(smoothed, pane, min(window.grid.end_ms(index), window.watermark_ms))
        return NetworkState(
            from_cluster=self.from_cluster,
            to_site=self.to_site,
            as_of_ms=window.grid.as_of_ms(window.watermark_ms),
            last_signal_ms=window.watermark_ms,
            signal_timestamp_ms=progress.signal_timestamp_ms,
            count=total.count,
            rtt_s=total.sum_s / total.returned if total.returned else None,
            smoothed_s=None if smoothed is None else smoothed.value,
            lost_share=(total.count - total.returned) / total.count if total.count else None,
            invalid=Invalid.NO,
            late=progress.late,
            applied_offset=progress.applied_offset,
            panes=self._pack(panes),
            series=None if self.ledger is None else self.ledger.pack(()),
        )

    def _smooth(self, smoothed: Smoothed | None, pane: NetworkPane, at_ms: int) -> Smoothed | None:
        if pane.returned == 0:
            return smoothed
        settings = self.settings
        return smooth(smoothed, pane.sum_s / pane.returned, at_ms, settings.tau_bad_ms, settings.tau_good_ms)

    def _pack(self, panes: list[tuple[int, NetworkPane]]) -> bytes:
        window = self.window
        value, at_ms = (0.0, 0) if self.base is None else self.base
        head = packing.head(window.grid.pane_ms, 0 if window.open_from is None else window.open_from)
        base = _BASE.pack(self.base is not None, value, at_ms, len(panes))
        return head + base + b"".join(_PANE.pack(index, p.count, p.returned, p.sum_s) for index, p in panes)

    def _read(self, packed: bytes) -> None:
        window, reader = self.window, packing.Reader(packed)
        window.open_from = packing.read_head(reader, window.grid.pane_ms)
        has_base, value, at_ms, count = reader.take(_BASE)
        self.base = Smoothed(value, at_ms) if has_base else None
        for _ in range(count):
            index, probes, returned, sum_s = reader.take(_PANE)
            window.panes[index] = NetworkPane(probes, returned, sum_s)
        reader.end()


def fold_network(
    state: NetworkState | None, probe: NetworkProbe, offset: int, timestamp_ms: int, settings: StreamsSettings
) -> NetworkState:
    """Fold one probe into a state, from bytes to bytes: what the accumulator does, one message at a time.

    A probe at or below the state's applied offset changes nothing.
    """
    if state is None:
        accumulator = NetworkAccumulator(probe.from_cluster, probe.to_site, settings)
    else:
        accumulator = NetworkAccumulator.resume(state, settings)
    accumulator.apply(probe, offset, timestamp_ms)
    return accumulator.state()
