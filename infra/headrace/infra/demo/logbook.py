"""What a demo has seen: events with their times, snapshots with their statuses, traffic moved and shed, lags.

Times are seconds since requests began to arrive. Fed from one thread. Snapshots are counted once each, as the first
cluster's data plane installed them; lags are measured for every data plane.
"""

from collections import Counter
from collections.abc import Sequence

from headrace.infra.demo.lag import LagMeter
from headrace.infra.demo.movement import demand_rps, moved_rps, shed_rps
from headrace.infra.demo.planes import Installed
from headrace.infra.demo.retelling import Retelling
from headrace.infra.demo.state_tail import SeenState
from headrace.schemas.weights import Snapshot, SnapshotStatus

MAX_EVENTS = 1_000
SETTLED_S = 10.0
"""Until then windows fill for the first time and weights settle: what moves is the start, not the loop at work."""


class Logbook:
    """The record of one demo."""

    def __init__(self, clusters: Sequence[str]) -> None:
        self.events: list[tuple[float, str]] = []
        self.noted = 0
        self.installed: Counter[str] = Counter()
        self.statuses: Counter[SnapshotStatus] = Counter()
        self.moved: list[tuple[float, float]] = []
        self.shed_max_rps = 0.0
        self.snapshot: Snapshot | None = None
        self.lag = LagMeter(clusters)
        self._first = clusters[0]
        self._retelling = Retelling()

    def note(self, at_s: float, what: str) -> None:
        """Write an event; beyond MAX_EVENTS the oldest go."""
        self.events.append((at_s, what))
        self.noted += 1
        del self.events[:-MAX_EVENTS]

    def events_since(self, noted: int) -> Sequence[tuple[float, str]]:
        """Give the events after the first `noted` ones; those that went meanwhile are left out."""
        new = self.noted - noted
        return self.events[-new:] if new > 0 else ()

    def note_installed(self, at_s: float, one: Installed) -> None:
        """Take note of an installation."""
        self.installed[one.cluster] += 1
        self.lag.offer_installation(one.cluster, one.snapshot.commit.inputs, one.at_ms)
        if one.cluster == self._first:
            self._note_snapshot(at_s, one.snapshot)

    def note_states(self, seen: Sequence[SeenState]) -> None:
        """Take note of state records, and match them with the installations so far."""
        for state in seen:
            self.lag.offer_state(state.topic, state.partition, state.offset, state.signal_ms)
        self.lag.match()

    def moved_share(self, from_s: float, to_s: float) -> float:
        """Give the share of the traffic that was moved between two times, counted and not extrapolated: 1 = all."""
        return sum(share for at_s, share in self.moved if from_s <= at_s < to_s)

    @property
    def shed_now_rps(self) -> float:
        """What the last snapshot sheds."""
        return 0.0 if self.snapshot is None else shed_rps(self.snapshot)

    def _note_snapshot(self, at_s: float, snapshot: Snapshot) -> None:
        before, self.snapshot = self.snapshot, snapshot
        status = snapshot.commit.status
        self.statuses[status] += 1
        if before is not None and before.commit.status is not status:
            self.note(at_s, f"solver: {status}: {snapshot.commit.sentence}")
        demand = demand_rps(snapshot)
        if at_s >= 0.0 and demand > 0.0:
            self.moved.append((at_s, moved_rps(before, snapshot) / demand))
            del self.moved[:-100_000]
        self.shed_max_rps = max(self.shed_max_rps, shed_rps(snapshot))
        if at_s >= 0.0:
            for what in self._retelling.offer(snapshot):
                self.note(at_s, what)
