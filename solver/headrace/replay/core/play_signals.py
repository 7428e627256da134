"""A variant over signals: folded anew, ticked by the variant's own period, under an event-time clock.

    now        rises with the records' timestamps; never back
    tick at t  sees every record of a timestamp up to t - lag_ms, as a solver would that is `lag_ms` behind the log
    begin      recorded states up to SETTLE_MS into the range; signals that they hold already count once

For ranges without recorded ticks, for other smoothing, and for a shorter period. Where ticks were recorded, `play` is
exact: it knows what the solver had read at each of them, and this does not.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from headrace.replay.core.history import Finding, Span
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.variant import Variant
from headrace.schemas.check_state import State
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import FLEET, PROFILES, SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, Topic
from headrace.schemas.weights import Snapshot
from headrace.solver.core.decide import Waiting, decide
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.state_view import StateFold, StateView
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.tick import TickStamp

SETTLE_MS = 2_000
MAX_BATCH = 20_000
"""Records that are folded at once, at most; a tick folds what there is."""
EPOCH = 1


class Fold(Protocol):
    """A fold of one signals topic: `headrace.replay.core.refold.Refold`, or one that is quicker and says the same."""

    def begin(self, states: Mapping[bytes, State]) -> None:
        """Take up recorded states."""
        ...

    def take(self, records: Iterable[RawRecord], fleet: Container[bytes] | None) -> None:
        """Fold records."""
        ...

    def told(self) -> Mapping[bytes, State]:
        """Give the states that changed since the last time."""
        ...

    def forget(self, key: bytes) -> None:
        """Drop a key."""
        ...

    def findings(self) -> tuple[Finding, ...]:
        """Give what was refused."""
        ...


@dataclass(slots=True)
class SignalsView:
    """What a solver would see, kept up to date record by record. `folds` by role of the signals topic."""

    topics: Mapping[str, Topic]
    folds: Mapping[str, Fold]
    known: StateFold
    fleet: set[bytes] = field(default_factory=set[bytes])
    tables: dict[str, dict[bytes, State]] = field(default_factory=dict[str, dict[bytes, State]])
    waiting: dict[str, list[RawRecord]] = field(default_factory=dict[str, list[RawRecord]])

    def begin(self, role: str, states: Mapping[bytes, State]) -> None:
        """Take up the recorded states of a signals topic."""
        self.tables[role] = {key: replace(state, panes=b"") for key, state in states.items()}
        self.folds[role].begin(states)

    def take(self, record: RawRecord) -> None:
        """Take the next record, of any topic that matters here."""
        for role in self.folds:
            if record.topic == self.topics[role].name:
                waiting = self.waiting.setdefault(role, [])
                waiting.append(record)
                if len(waiting) >= MAX_BATCH:
                    self._fold(role)
                return
        if record.topic in (self.topics[FLEET].name, self.topics[PROFILES].name):
            refused = self.known.offer(record)
            if record.topic == self.topics[FLEET].name and refused is None and record.key is not None:
                self._know(record.key, gone=record.value is None)

    def _know(self, key: bytes, *, gone: bool) -> None:
        """Take note of an engine: signals count from the moment at which it is known; those that wait came before."""
        self._fold(SIGNALS_ENGINE)
        if not gone:
            self.fleet.add(key)
            return
        self.fleet.discard(key)
        self.folds[SIGNALS_ENGINE].forget(key)
        self.tables.get(SIGNALS_ENGINE, {}).pop(key, None)

    def view(self) -> StateView:
        """Give what stands now."""
        for role in self.folds:
            self._fold(role)
            self.tables.setdefault(role, {}).update(self.folds[role].told())
        known = self.known.view()
        engines, demands, links = (
            self.tables.get(role, {}) for role in (SIGNALS_ENGINE, SIGNALS_DEMAND, SIGNALS_NETWORK)
        )
        return StateView(known.specs, known.profiles, engines, demands, links)  # type: ignore[arg-type]  # each by its role

    def findings(self) -> tuple[Finding, ...]:
        """Give what was refused."""
        return tuple(finding for fold in self.folds.values() for finding in fold.findings())

    def _fold(self, role: str) -> None:
        waiting = self.waiting.pop(role, None)
        if waiting:
            self.folds[role].take(waiting, self.fleet if role == SIGNALS_ENGINE else None)


def play_signals(
    variant: Variant,
    records: Iterable[RawRecord],
    seen: SignalsView,
    span: Span,
    begin: tuple[Snapshot | None, int],
    lp: LinearSolver,
) -> Iterator[PlayedTick]:
    """Give a variant's run over merged records.

    Args:
        variant: what to run.
        records: of signals, fleet and profiles, in the order of `merged`.
        seen: what the records are taken into; states of before are in it.
        span: the range.
        begin: the snapshot that stood when the range began, or None; and the lag, ms.
        lp: solves the linear programs.
    """
    (previous, lag_ms), settings = begin, variant.settings
    version = 0 if previous is None else previous.commit.version
    epoch = EPOCH if previous is None else previous.commit.epoch + 1
    period_ms = settings.period_ms
    tick_ms = -(-(span.from_ms + SETTLE_MS) // period_ms) * period_ms
    came = iter(records)
    record = next(came, None)
    while tick_ms < span.to_ms:
        while record is not None and record.timestamp_ms <= tick_ms - lag_ms:
            seen.take(record)
            record = next(came, None)
        problem = assemble(seen.view(), settings, tick_ms)
        stamp = TickStamp(epoch, version + 1, tick_ms)
        decision = decide(problem, previous, settings, lp, stamp, tick_ms - settings.first_wait_ms)
        if not isinstance(decision, Waiting):
            tick = decision.tick
            yield PlayedTick(tick_ms, problem, tick.snapshot, tick.record)
            previous, version = tick.snapshot, version + 1
        tick_ms += period_ms
