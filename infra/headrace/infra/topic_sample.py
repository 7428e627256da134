"""The newest records of a topic, read once without a group: what `headrace map` looks at on a live topic."""

import time
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord

_ASK_S: Final = 10.0


class TopicUnreadableError(HeadraceError):
    """The broker cannot be reached, or there is no such topic."""


def sample_topic(kafka: KafkaSettings, topic: str, limit: int, timeout_s: float) -> tuple[RawRecord, ...]:
    """Read up to `limit` of the newest records, spread evenly over the partitions, by partition and offset.

    Returns what is there after `timeout_s` at the latest; commits nothing.

    Raises:
        TopicUnreadableError: the broker cannot be reached, or there is no such topic.
    """
    consumer = Consumer(consumer_options(kafka))
    try:
        ends = _assign(consumer, topic, limit)
        records = _read(consumer, ends, limit, timeout_s)
    except KafkaException as error:
        raise TopicUnreadableError(f"topic {topic!r} at {kafka.bootstrap_servers}: {error}") from error
    finally:
        consumer.close()
    return tuple(sorted(records, key=lambda record: (record.partition, record.offset)))


def _assign(consumer: Consumer, topic: str, limit: int) -> dict[int, int]:
    described: Any = consumer.list_topics(topic, timeout=_ASK_S).topics.get(topic)
    if described is None or described.error is not None or not described.partitions:
        raise TopicUnreadableError(f"there is no topic {topic!r}")
    share = -(-limit // len(described.partitions))
    starts: list[TopicPartition] = []
    ends: dict[int, int] = {}
    for number in sorted(described.partitions):
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_ASK_S)
        if high > low:
            starts.append(TopicPartition(topic, number, max(low, high - share)))
            ends[number] = high
    consumer.assign(starts)
    return ends


def _read(consumer: Consumer, ends: dict[int, int], limit: int, timeout_s: float) -> list[RawRecord]:
    records: list[RawRecord] = []
    waiting = set(ends)
    deadline = time.monotonic() + timeout_s
    while waiting and len(records) < limit and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's own name for it
                waiting.discard(message.partition() or 0)
                continue
            raise KafkaException(error)
        record = raw_record(message)
        records.append(record)
        if record.offset + 1 >= ends[record.partition]:
            waiting.discard(record.partition)
    return records
