"""What a partition's log itself says, by a client that is not Faust's: what is committed, where it begins and ends.

What Faust says of itself cannot be held against Faust. All calls block; they raise KafkaException where the broker does
not answer.
"""

import time
from collections.abc import Collection, Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError

ASK_S = 5.0

Place = tuple[str, int]
"""A topic's name and a partition."""


class NoAnswerError(HeadraceError):
    """The broker gave neither a record nor the end of the log in time."""


class LogOffsets:
    """Asks the broker about partitions, as a reader that joins no group."""

    def __init__(self, kafka: KafkaSettings, group_id: str) -> None:
        self._client = Consumer(consumer_options(kafka, group_id))

    def committed(self, places: Collection[Place]) -> Mapping[Place, int]:
        """Give the offset from which the group would go on; where nothing is committed, the log's beginning."""
        if not places:
            return {}
        answers = self._client.committed([TopicPartition(*place) for place in places], timeout=ASK_S)
        found = {(answer.topic, answer.partition): answer.offset for answer in answers}
        return {place: offset if offset >= 0 else self.bounds(place)[0] for place, offset in found.items()}

    def bounds(self, place: Place) -> tuple[int, int]:
        """Give the first offset and the one after the last. The embedded broker's end is too low, by up to a batch."""
        low, high = self._client.get_watermark_offsets(TopicPartition(*place), timeout=ASK_S, cached=False)
        return low, high

    def ends(self, places: Collection[Place]) -> Mapping[Place, int]:
        """Give the offset after the last of each partition."""
        return {place: self.bounds(place)[1] for place in places}

    def first_from(self, place: Place, offset: int) -> int | None:
        """Give the offset of the first committed record at or after `offset`; None where the log ends before one.

        Raises:
            NoAnswerError: neither a record nor the end came in time.
        """
        deadline = time.monotonic() + ASK_S
        self._client.assign([TopicPartition(*place, offset)])
        try:
            while time.monotonic() < deadline:
                message = self._client.poll(0.1)
                error = None if message is None else message.error()
                if message is not None and error is None:
                    return message.offset()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name
                    return None
            raise NoAnswerError(f"{place[0]}[{place[1]}]: nothing came from {offset} on within {ASK_S:g} s")
        finally:
            self._client.unassign()

    def close(self) -> None:
        """Let the client go."""
        self._client.close()
