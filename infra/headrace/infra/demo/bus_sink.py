"""The fleet's records onto Kafka, dated with the virtual time at which they came to be."""

from collections.abc import Mapping

from headrace.infra.fleet.sink import FleetRecord
from headrace.schemas.bus.publisher import Dropped, Publisher
from headrace.schemas.codec import encode
from headrace.schemas.topics import Topic


class BusSink:
    """Publishes until it is closed; then forgets, so that a fleet may run to its end faster than the clock."""

    def __init__(self, publisher: Publisher, topics: Mapping[str, Topic]) -> None:
        self._publisher = publisher
        self._names = {role: topic.name for role, topic in topics.items()}
        self._open = True
        self.dropped = 0

    def put(self, role: str, record: FleetRecord, timestamp_ms: int) -> None:
        """Publish one record without waiting; what does not fit is counted."""
        if not self._open:
            return
        outcome = self._publisher.publish(self._names[role], record.key, encode(record), timestamp_ms)
        self.dropped += isinstance(outcome, Dropped)

    def close(self) -> None:
        """Forget all that comes from now on."""
        self._open = False
