"""Signals folded up to each tick: what a solver would see more of at it than at the tick before.

    records, in the order of `merged` ──► take ──┐
    the engines' signals, apart from them ───────┴──► seen(at): states that changed, records of the fleet

Knows nothing of what is decided, so it may run in another process than the deciding; a `Seen` is small, and pickled.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headrace.replay.core.columnar.batch import Batch
from headrace.replay.core.columnar.state_columns import StateColumns
from headrace.replay.core.history import Finding, Found, Place
from headrace.schemas.check_state import State
from headrace.schemas.overrides import is_override_key
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import FLEET, PROFILES, SIGNALS_ENGINE, Topic
from headrace.solver.core.inputs.state_view import StateFold

MAX_BATCH = 20_000
"""Records that are folded at once, at most; a tick folds what there is."""


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
    """A fold that takes and tells many at once; `headrace.replay.core.columnar.engines.ColumnarEngines`."""

    def take_batch(self, batch: Batch, fleet: Container[bytes] | None) -> None:
        """Fold a batch."""
        ...

    def told_columns(self) -> tuple[StateColumns | None, Mapping[bytes, State]]:
        """Give the states that changed since the last time: as columns, and those that fit into none."""
        ...


@dataclass(frozen=True, slots=True)
class Apart:
    """The engines' signals, nearly all that there is, apart from all other records.

    No order is lost by it but that against the fleet's records, and that one is kept.
    """

    fold: BatchFold
    engines: Engines
    topic: str


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What came since the tick before.

    Attributes:
        declared: records of the fleet and of profiles, in their order.
        gone: keys of engines that left the fleet, before any state below.
        columns: states of engines, as columns.
        states: all other states that changed, by role of the signals topic, then key.
    """

    declared: tuple[RawRecord, ...]
    gone: tuple[bytes, ...]
    columns: tuple[StateColumns, ...]
    states: Mapping[str, Mapping[bytes, State]]


@dataclass(slots=True)
class SignalsFold:
    """Folds record by record. `folds` by role of the signals topic; records of other roles are passed over."""

    topics: Mapping[str, Topic]
    folds: Mapping[str, Fold]
    known: StateFold
    apart: Apart | None = None
    fleet: set[bytes] = field(default_factory=set[bytes])
    waiting: dict[str, list[RawRecord]] = field(default_factory=dict[str, list[RawRecord]])
    refused: dict[Place, tuple[int, str]] = field(default_factory=dict[Place, tuple[int, str]])
    declared: list[RawRecord] = field(default_factory=list[RawRecord])
    gone: list[bytes] = field(default_factory=list[bytes])

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
            self.declared.append(record)
            refused = self.known.offer(record)
            if refused is not None:
                place = record.topic, record.partition
                count, said = self.refused.get(place, (0, ""))
                said = said or f"from offset {record.offset}: {refused.reason}: {refused.detail}"
                self.refused[place] = count + 1, said
            key, is_fleet = record.key, record.topic == self.topics[FLEET].name
            if is_fleet and refused is None and key is not None and not is_override_key(key):
                self._know(key, record, gone=record.value is None)

    def seen(self, at_ms: int) -> Seen:
        """Give what came since the last time, when all records up to an instant were taken."""
        self._fold_apart(at_ms, included=True)
        columns: tuple[StateColumns, ...] = ()
        states: dict[str, Mapping[bytes, State]] = {}
        for role, fold in self.folds.items():
            self._fold(role)
            if self.apart is not None and fold is self.apart.fold:
                told, states[role] = self.apart.fold.told_columns()
                columns = () if told is None else (told,)
            else:
                states[role] = fold.told()
        seen = Seen(tuple(self.declared), tuple(self.gone), columns, states)
        self.declared, self.gone = [], []
        return seen

    def findings(self) -> tuple[Finding, ...]:
        """Give what was refused."""
        known = tuple(
            Finding(Found.UNREADABLE, *place, count, said) for place, (count, said) in sorted(self.refused.items())
        )
        return known + tuple(finding for fold in self.folds.values() for finding in fold.findings())

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
        self.gone.append(key)

    def _fold_apart(self, at_ms: int, *, included: bool) -> None:
        batch = None if self.apart is None else self.apart.engines.until(at_ms, included=included)
        if self.apart is not None and batch is not None:
            self.apart.fold.take_batch(batch, self.fleet)

    def _fold(self, role: str) -> None:
        waiting = self.waiting.pop(role, None)
        if waiting:
            self.folds[role].take(waiting, self.fleet if role == SIGNALS_ENGINE else None)


def seen_at(instants: Iterable[int], records: Iterable[RawRecord], fold: SignalsFold) -> Iterator[Seen]:
    """Give what is seen at each of rising instants, ms; `records` in the order of `merged`."""
    came = iter(records)
    record = next(came, None)
    for at_ms in instants:
        while record is not None and record.timestamp_ms <= at_ms:
            fold.take(record)
            record = next(came, None)
        yield fold.seen(at_ms)


def put_together(parts: Sequence[Seen]) -> Seen:
    """Give what several folds saw of one tick, each of engines of its own; all of them read the fleet's records."""
    states: dict[str, dict[bytes, State]] = {}
    for part in parts:
        for role, told in part.states.items():
            states.setdefault(role, {}).update(told)
    columns = tuple(each for part in parts for each in part.columns)
    return Seen(parts[0].declared, parts[0].gone, columns, states)
