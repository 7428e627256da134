"""The fold over one signals topic: keys to accumulators, a batch of records to the states it touched.

    batch -> admit each -> fold each into its key's accumulator -> one state per touched key

Accumulators are a cache of what the states' bytes say: each is rebuilt from the stored bytes when its key is first met,
dropped when its partition is revoked or its engine leaves the fleet, and never the only place of anything. At most
`MAX_ACCUMULATORS` are kept; the one that was folded longest ago goes first.

Nothing that a record or a stored state holds stops the fold. Checks refuse what they know; where folding or encoding
raises all the same, the key's records of the batch are folded one by one from its stored bytes, and those that raise
are refused. A stored state that cannot be gone on from loses its panes and keeps its guard by offset.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from headrace.schemas.check_signals import Signal
from headrace.schemas.check_state import State, check_state
from headrace.schemas.codec import SchemaSource, decode, encode, must
from headrace.schemas.dead_letters import DeadLetter, Rejected, RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.state import DemandState, EngineState, NetworkState
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK
from headrace.streams.core.admission import admit, dead_letter
from headrace.streams.core.demand import DemandAccumulator
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.core.network import NetworkAccumulator
from headrace.streams.core.window import Outcome
from headrace.streams.settings import StreamsSettings

MAX_ACCUMULATORS = 50_000

StoredState = Callable[[bytes], bytes | None]
"""Gives the bytes of a key's stored state, or None where there is none."""


class Accumulator(Protocol):
    """What the folds of engines, demand and network have in common."""

    def apply(self, signal: Any, offset: int, timestamp_ms: int, /) -> Outcome:  # noqa: ANN401 - each fold has its own
        """Fold one signal of this fold's own type."""
        ...

    def state(self) -> State:
        """Give the state as of the last signal."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One signals topic's fold: its records, and how a key's accumulator begins and goes on."""

    signal: type[Signal]
    state: type[Any]
    begin: Callable[[Any, StreamsSettings], Accumulator]
    resume: Callable[[Any, StreamsSettings], Accumulator]


KINDS: Mapping[str, Kind] = {
    SIGNALS_ENGINE: Kind(
        EngineSignals,
        EngineState,
        lambda s, settings: EngineAccumulator(s.engine_id, settings),
        EngineAccumulator.resume,
    ),
    SIGNALS_DEMAND: Kind(
        Demand, DemandState, lambda s, settings: DemandAccumulator(s.route, settings), DemandAccumulator.resume
    ),
    SIGNALS_NETWORK: Kind(
        NetworkProbe,
        NetworkState,
        lambda s, settings: NetworkAccumulator(s.from_cluster, s.to_site, settings),
        NetworkAccumulator.resume,
    ),
}


@dataclass(frozen=True, slots=True)
class Folded:
    """What a batch came to: the encoded state of every touched key, what was refused, and what became of the rest.

    `newest_ms` is the newest event time in it, None where nothing was admitted.
    """

    states: Mapping[bytes, bytes]
    rejected: tuple[DeadLetter, ...]
    outcomes: Mapping[Outcome, int]
    newest_ms: int | None = None


_Admitted = tuple[RawRecord, Signal]


@dataclass(slots=True)
class _Done:
    """What one key's records of a batch came to; `state` None where it is as it was."""

    state: bytes | None
    outcomes: list[Outcome]
    rejected: list[DeadLetter] = field(default_factory=list[DeadLetter])


def _end_ms(signal: Signal) -> int:
    return signal.at_ms if isinstance(signal, NetworkProbe) else signal.period_end_ms


class KeyedFold:
    """The accumulators of one signals topic, by key."""

    def __init__(
        self, kind: Kind, settings: StreamsSettings, partitions: int, registry: SchemaSource | None = None
    ) -> None:
        self.kind = kind
        self.settings = settings
        self.partitions = partitions
        self.registry = registry
        self.unreadable = 0
        self._accumulators: dict[bytes, tuple[int, Accumulator]] = {}

    def fold(self, records: Iterable[RawRecord], stored: StoredState, fleet: Container[bytes] | None) -> Folded:
        """Fold a batch, in the order given; the states depend on each key's own records and nothing else.

        A key whose records were all duplicates is not touched: its stored state says all that it has to say.
        """
        admitted: dict[bytes, list[_Admitted]] = {}
        rejected: list[DeadLetter] = []
        for record in records:
            signal = admit(record, self.kind.signal, self.partitions, fleet, self.registry)
            if isinstance(signal, Rejected):
                rejected.append(dead_letter(record, signal))
            else:
                admitted.setdefault(signal.key, []).append((record, signal))
        states: dict[bytes, bytes] = {}
        outcomes = dict.fromkeys(Outcome, 0)
        for key, own in admitted.items():
            done = self._fold_key(key, own, stored)
            if done.state is not None:
                states[key] = done.state
            rejected.extend(done.rejected)
            for outcome in done.outcomes:
                outcomes[outcome] += 1
        self._bound()
        newest = max((_end_ms(own[-1][1]) for own in admitted.values()), default=None)
        return Folded(states, tuple(rejected), outcomes, newest)

    def read(self, value: bytes) -> State:
        """Give the state that `fold` encoded.

        Raises:
            UnreadableError: the bytes are of another hand.
        """
        state: State = must(decode(self.kind.state, value))
        return state

    @property
    def series(self) -> int:
        """Give how many cumulative series are held for the differences to come."""
        ledgers = (getattr(kept, "ledger", None) for _, kept in self._accumulators.values())
        return sum(len(ledger.book.levels) + len(ledger.book.gauges) for ledger in ledgers if ledger is not None)

    def forget(self, key: bytes) -> None:
        """Drop a key's accumulator: its state was deleted."""
        self._accumulators.pop(key, None)

    def keep_partitions(self, owned: Container[int]) -> None:
        """Drop the accumulators of every partition but those: another worker folds them now."""
        self._accumulators = {key: kept for key, kept in self._accumulators.items() if kept[0] in owned}

    def _fold_key(self, key: bytes, own: Sequence[_Admitted], stored: StoredState) -> _Done:
        try:
            record, signal = own[0]
            accumulator = self._accumulator(signal, record.partition, stored)
            outcomes = [accumulator.apply(signal, record.offset, record.timestamp_ms) for record, signal in own]
            return _Done(self._written(accumulator, outcomes), outcomes)
        except Exception:  # noqa: BLE001 - whatever raises is found again, and refused, one by one
            # What it holds may be half of a signal: its stored bytes are whole.
            self.forget(key)
            return self._fold_singly(own, stored(key))

    def _fold_singly(self, own: Sequence[_Admitted], value: bytes | None) -> _Done:
        done = _Done(None, [])
        for record, signal in own:
            accumulator = self._rebuilt(signal, value)
            try:
                outcome = accumulator.apply(signal, record.offset, record.timestamp_ms)
                written = self._written(accumulator, [outcome])
            except Exception as error:  # noqa: BLE001 - the last line: a record that cannot be folded is refused
                detail = f"cannot be folded: {type(error).__name__}: {error}"[:300]
                done.rejected.append(dead_letter(record, Rejected(RejectReason.INCONSISTENT, detail)))
                continue
            done.outcomes.append(outcome)
            if written is not None:
                done.state = value = written
        return done

    def _written(self, accumulator: Accumulator, outcomes: Sequence[Outcome]) -> bytes | None:
        untouched = all(outcome is Outcome.DUPLICATE for outcome in outcomes)
        return None if untouched else encode(accumulator.state())

    def _accumulator(self, signal: Signal, partition: int, stored: StoredState) -> Accumulator:
        key = signal.key
        found = self._accumulators.pop(key, None)
        if found is None:
            found = partition, self._rebuilt(signal, stored(key))
        # Put back at the end: the dict's order is the order of last use.
        self._accumulators[key] = found
        return found[1]

    def _rebuilt(self, signal: Signal, value: bytes | None) -> Accumulator:
        if value is None:
            return self.kind.begin(signal, self.settings)
        state = decode(self.kind.state, value)
        if not isinstance(state, Rejected):
            # Without panes a window begins anew; the guard by offset is a field of its own.
            for candidate in (state, replace(state, panes=b"")):
                found = self._resumed(candidate)
                if found is not None:
                    return found
        self.unreadable += 1
        return self.kind.begin(signal, self.settings)

    def _resumed(self, state: State) -> Accumulator | None:
        try:
            found = self.kind.resume(state, self.settings)
            again = found.state()
            encode(again)
        except Exception:  # noqa: BLE001 - bytes of another hand raise nearly anything
            problems: Sequence[str] = ("cannot be resumed",)
        else:
            problems = check_state(again)
            if not problems:
                return found
        self.unreadable += 1
        return None

    def _bound(self) -> None:
        for key in list(self._accumulators)[: max(0, len(self._accumulators) - MAX_ACCUMULATORS)]:
            del self._accumulators[key]
