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

from headrace.replay.core.columnar.batch import Batch
from headrace.replay.core.history import Finding, Found, Place, Span
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.variant import Variant
from headrace.schemas.check_state import State
from headrace.schemas.overrides import is_override_key
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import FLEET, PROFILES, SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, Topic
from headrace.schemas.weights import Snapshot
from headrace.solver.core.decide import Waiting, decide
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.in_work import in_work
from headrace.solver.core.inputs.state_view import StateFold, StateView
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.tick import TickStamp

SETTLE_MS = 2_000
MAX_BATCH = 20_000
"""Records that are folded at once, at most; a tick folds what there is."""
EPOCH = 1
_FOREVER_MS = 1 << 62


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


class Engines(Protocol):
    """The engines' signals as they go on; `headrace.replay.core.columnar.tail.Tail`."""

    def until(self, at_ms: int, *, included: bool) -> Batch | None:
        """Give those that come before an instant, `included` those that come at it; None where there are none."""
        ...


class BatchFold(Fold, Protocol):
    """A fold that takes many at once; `headrace.replay.core.columnar.engines.ColumnarEngines`."""

    def take_batch(self, batch: Batch, fleet: Container[bytes] | None) -> None:
        """Fold a batch."""
        ...


@dataclass(frozen=True, slots=True)
class Apart:
    """The engines' signals, nearly all that there is, apart from all other records.

    No order is lost by it but that against the fleet's records, and that one is kept.
    """

    fold: BatchFold
    engines: Engines
    topic: str


@dataclass(slots=True)
class SignalsView:
    """What a solver would see, kept up to date record by record. `folds` by role of the signals topic."""

    topics: Mapping[str, Topic]
    folds: Mapping[str, Fold]
    known: StateFold
    fleet: set[bytes] = field(default_factory=set[bytes])
    tables: dict[str, dict[bytes, State]] = field(default_factory=dict[str, dict[bytes, State]])
    waiting: dict[str, list[RawRecord]] = field(default_factory=dict[str, list[RawRecord]])
    apart: Apart | None = None
    refused: dict[Place, tuple[int, str]] = field(default_factory=dict[Place, tuple[int, str]])

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
            if refused is not None:
                place = record.topic, record.partition
                count, said = self.refused.get(place, (0, ""))
                said = said or f"from offset {record.offset}: {refused.reason}: {refused.detail}"
                self.refused[place] = count + 1, said
            key, is_fleet = record.key, record.topic == self.topics[FLEET].name
            if is_fleet and refused is None and key is not None and not is_override_key(key):
                self._know(key, record, gone=record.value is None)

    def _know(self, key: bytes, record: RawRecord, *, gone: bool) -> None:
        """Take note of an engine: signals count from the moment at which it is known; those that wait came before."""
        self._fold(SIGNALS_ENGINE)
        if self.apart is not None:
            self._fold_apart(record.timestamp_ms, included=self.apart.topic < record.topic)
        if not gone:
            self.fleet.add(key)
            return
        self.fleet.discard(key)
        self.folds[SIGNALS_ENGINE].forget(key)
        self.tables.get(SIGNALS_ENGINE, {}).pop(key, None)

    def view(self, at_ms: int = _FOREVER_MS) -> StateView:
        """Give what stands when all records up to an instant were taken."""
        self._fold_apart(at_ms, included=True)
        for role in self.folds:
            self._fold(role)
            self.tables.setdefault(role, {}).update(self.folds[role].told())
        known = self.known.view()
        engines, demands, links = (
            self.tables.get(role, {}) for role in (SIGNALS_ENGINE, SIGNALS_DEMAND, SIGNALS_NETWORK)
        )
        return replace(known, engines=engines, demands=demands, links=links)  # type: ignore[arg-type]  # each by its role

    def findings(self) -> tuple[Finding, ...]:
        """Give what was refused."""
        known = tuple(
            Finding(Found.UNREADABLE, *place, count, said) for place, (count, said) in sorted(self.refused.items())
        )
        return known + tuple(finding for fold in self.folds.values() for finding in fold.findings())

    def _fold_apart(self, at_ms: int, *, included: bool) -> None:
        batch = None if self.apart is None else self.apart.engines.until(at_ms, included=included)
        if self.apart is not None and batch is not None:
            self.apart.fold.take_batch(batch, self.fleet)

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
        problem = in_work(assemble(seen.view(tick_ms - lag_ms), settings, tick_ms), previous)
        stamp = TickStamp(epoch, version + 1, tick_ms)
        decision = decide(problem, previous, settings, lp, stamp, tick_ms - settings.first_wait_ms)
        if not isinstance(decision, Waiting):
            tick = decision.tick
            yield PlayedTick(tick_ms, problem, tick.snapshot, tick.record)
            previous, version = tick.snapshot, version + 1
        tick_ms += period_ms
