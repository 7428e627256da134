"""A thread that follows the state topics and hands out which signal each record carries the trace of."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.state import DemandState, EngineState, NetworkState
from headrace.schemas.topics import STATE_DEMAND, STATE_ENGINE, STATE_NETWORK, STATE_OF, Topic

POLL_S = 0.2
MAX_UNSEEN = 100_000
_KINDS: Mapping[str, type[EngineState | DemandState | NetworkState]] = {
    STATE_ENGINE: EngineState,
    STATE_DEMAND: DemandState,
    STATE_NETWORK: NetworkState,
}


@dataclass(frozen=True, slots=True)
class SeenState:
    """Where a state record lies, and the Kafka timestamp of the newest signal in it."""

    topic: str
    partition: int
    offset: int
    signal_ms: int


class StateTail:
    """Follows the state topics from their beginning. Tombstones and unreadable records carry no signal."""

    def __init__(self, kafka: KafkaSettings, topics: Mapping[str, Topic]) -> None:
        self._kinds = {topics[role].name: _KINDS[role] for role in STATE_OF.values()}
        self._reader = CompactedReader(kafka, tuple(self._kinds))
        self._seen: deque[SeenState] = deque(maxlen=MAX_UNSEEN)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="state-tail", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def take(self) -> list[SeenState]:
        """Give what was read since the last call, in each partition's order."""
        return [self._seen.popleft() for _ in range(len(self._seen))]

    def _run(self) -> None:
        while not self._stopping.is_set():
            for record in self._reader.poll(POLL_S):
                if record.value is None:
                    continue
                state = decode(self._kinds[record.topic], record.value, record.headers)
                if not isinstance(state, Rejected):
                    seen = SeenState(record.topic, record.partition, record.offset, state.signal_timestamp_ms)
                    self._seen.append(seen)
        self._reader.close()
