"""A topic's records between two points, from Kafka: what is committed, bounded by partition EOF, committing nothing.

    start   by time (the first record at or after it), or the log's beginning
    end     the partition's end, or the first record that the caller calls past it

Records that `headrace import` put there carry their old offset and timestamp in headers; they are given as they were.
The embedded broker's word on what is committed cannot be trusted: of it, all records are given.

Failure mode: a broker that falls silent for SILENCE_S ends the reading with what it said last.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.replay.core.history import HistoryError
from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.log_bounds import log_bounds
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord

BATCH = 2_000
POLL_S = 0.5
ASK_S = 10.0
SILENCE_S = 30.0
OFFSET_HEADER = "headrace.offset"
TIMESTAMP_HEADER = "headrace.timestamp_ms"


class NoTopicError(HistoryError):
    """The broker has no such topic."""


@dataclass(frozen=True, slots=True)
class Log:
    """What a broker says of a partition: its first offset, the one after its last, and where reading begins."""

    first_offset: int
    next_offset: int
    start: int


class KafkaRange:
    """Reads one topic once; by a client of its own, or by one that reads one topic after another."""

    def __init__(self, kafka: KafkaSettings, topic: str, client: Consumer | None = None) -> None:
        self._kafka = kafka
        self._topic = topic
        self._client = client
        self._said = ""
        self.logs: Mapping[int, Log] = {}

    def read(
        self, from_ms: int | None = None, is_past: Callable[[RawRecord], bool] | None = None
    ) -> Iterator[RawRecord]:
        """Give the records; of each partition in the order of its offsets.

        Args:
            from_ms: begin at the first record of this time or later; None for the log's beginning.
            is_past: says that a record, and all after it in its partition, lie beyond the range.

        Raises:
            HistoryError: there is no such topic, or the broker fell silent.
        """
        consumer = self._client or Consumer(consumer_options(self._kafka, error_cb=self._client_error))
        try:
            waiting = self._assign(consumer, from_ms)
            deadline = time.monotonic() + SILENCE_S
            while waiting:
                messages = _next(consumer)
                if messages:
                    deadline = time.monotonic() + SILENCE_S
                elif time.monotonic() > deadline:
                    raise HistoryError(f"{self._topic}: the broker has been silent for {SILENCE_S:g} s: {self._said}")
                for message in messages:
                    record = self._taken(message, waiting)
                    if record is None:
                        continue
                    if is_past is not None and is_past(record):
                        waiting.discard(message.partition() or 0)
                        consumer.incremental_unassign([TopicPartition(self._topic, message.partition() or 0)])
                        continue
                    yield record
        except KafkaException as error:
            raise HistoryError(f"{self._topic} at {self._kafka.bootstrap_servers}: {error.args[0]}") from error
        finally:
            if self._client is None:
                consumer.close()
            else:
                consumer.unassign()

    def _assign(self, consumer: Consumer, from_ms: int | None) -> set[int]:
        found = consumer.list_topics(self._topic, timeout=ASK_S).topics.get(self._topic)
        if found is None or found.error is not None or not found.partitions:
            raise NoTopicError(f"there is no topic {self._topic} at {self._kafka.bootstrap_servers}")
        numbers = sorted(found.partitions)
        bounds = {n: log_bounds(consumer, self._topic, n) for n in numbers}
        starts = dict.fromkeys(numbers, OFFSET_BEGINNING)
        if from_ms is not None:
            asked = [TopicPartition(self._topic, n, from_ms) for n in numbers]
            starts = {each.partition: each.offset for each in consumer.offsets_for_times(asked, timeout=ASK_S)}
        self.logs = {n: Log(*bounds[n], starts[n]) for n in numbers}
        # Where no record is of that time or later, the offset found is OFFSET_END.
        consumer.incremental_assign([TopicPartition(self._topic, n, starts[n]) for n in numbers])
        return set(numbers)

    def _taken(self, message: Message, waiting: set[int]) -> RawRecord | None:
        error, partition = message.error(), message.partition() or 0
        if message.topic() not in (None, self._topic):
            return None
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name for the end of a partition
                waiting.discard(partition)
            else:
                self._said = error.str()
            return None
        return restored(raw_record(message)) if partition in waiting else None

    def _client_error(self, error: KafkaError) -> None:
        self._said = error.str()


def _next(consumer: Consumer) -> list[Message]:
    """Give what has come, as soon as there is something: `consume` alone waits for a whole batch."""
    first = consumer.poll(POLL_S)
    return [] if first is None else [first, *consumer.consume(BATCH, 0)]


def restored(record: RawRecord) -> RawRecord:
    """Give an imported record as it was; any other as it is."""
    headers = dict(record.headers)
    if OFFSET_HEADER not in headers:
        return record
    kept = tuple(pair for pair in record.headers if pair[0] not in (OFFSET_HEADER, TIMESTAMP_HEADER))
    offset, timestamp_ms = int(headers[OFFSET_HEADER]), int(headers.get(TIMESTAMP_HEADER, record.timestamp_ms))
    return replace(record, offset=offset, timestamp_ms=timestamp_ms, headers=kept)
