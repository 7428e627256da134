"""Signals folded anew: the live admission and the live folds, with states told only when a tick asks for them.

    signals ──► admit ──► the key's accumulator, taken up from its recorded state where there is one
                              └── told(): states of the keys that were touched since the last time

What a live worker would have written at that moment for the same signals at the same offsets, as a solver keeps it. A
signal at or below a recorded state's offset is in that state, and counts once.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from headrace.replay.core.history import Finding, Found
from headrace.schemas.check_state import State
from headrace.schemas.codec import SchemaSource
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import Topic
from headrace.solver.core.inputs.state_view import without_window
from headrace.streams.core.admission import admit
from headrace.streams.core.keyed import KINDS, Accumulator
from headrace.streams.core.window import Outcome
from headrace.streams.settings import StreamsSettings


class Refold:
    """The fold of one signals topic."""

    def __init__(self, topic: Topic, settings: StreamsSettings, registry: SchemaSource | None = None) -> None:
        self._topic = topic
        self._kind = KINDS[topic.role]
        self._settings = settings
        self._registry = registry
        self._accumulators: dict[bytes, Accumulator] = {}
        self._touched: dict[bytes, Accumulator] = {}
        self._rejected: dict[int, tuple[int, str]] = {}

    def begin(self, states: Mapping[bytes, State]) -> None:
        """Take up recorded states, each with its panes."""
        for key, state in states.items():
            self._accumulators[key] = self._kind.resume(state, self._settings)

    def take(self, records: Iterable[RawRecord], fleet: Container[bytes] | None) -> None:
        """Fold records, each partition's in the order of its offsets."""
        for record in records:
            signal = admit(record, self._kind.signal, self._topic.partitions, fleet, self._registry)
            if isinstance(signal, Rejected):
                self._refuse(record, f"{signal.reason}: {signal.detail}")
                continue
            key = signal.key
            accumulator = self._accumulators.get(key)
            if accumulator is None:
                accumulator = self._accumulators[key] = self._kind.begin(signal, self._settings)
            if accumulator.apply(signal, record.offset, record.timestamp_ms) is not Outcome.DUPLICATE:
                self._touched[key] = accumulator

    def told(self) -> Mapping[bytes, State]:
        """Give the states of the keys that were touched since the last time, as a solver keeps them."""
        states: dict[bytes, Any] = {key: without_window(each.state()) for key, each in self._touched.items()}
        self._touched.clear()
        return states

    def adopt(self, key: bytes, accumulator: Accumulator) -> None:
        """Go on from an accumulator that was filled elsewhere; it counts as touched."""
        self._accumulators[key] = self._touched[key] = accumulator

    def forget(self, key: bytes) -> None:
        """Drop a key: its engine left the fleet, and comes back as a new one."""
        self._accumulators.pop(key, None)
        self._touched.pop(key, None)

    def findings(self) -> tuple[Finding, ...]:
        """Give what was refused; a live worker refuses the same, into dead letters."""
        return tuple(
            Finding(Found.UNREADABLE, self._topic.name, partition, count, sentence)
            for partition, (count, sentence) in sorted(self._rejected.items())
        )

    def _refuse(self, record: RawRecord, why: str) -> None:
        count, sentence = self._rejected.get(record.partition, (0, ""))
        self._rejected[record.partition] = count + 1, sentence or f"from offset {record.offset}: {why}"
