"""The newest records of a topic, read once without a group: what `headrace map` looks at on a live topic."""

import time
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.infra.kafka_edge import require_topics
from headrace.infra.topic_readers.to_end import UnreadTopicError
from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.log_bounds import log_bounds
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord

_ASK_S: Final = 10.0


def sample_topic(kafka: KafkaSettings, topic: str, limit: int, timeout_s: float) -> tuple[RawRecord, ...]:
    """Read up to `limit` of the newest records, spread evenly over the partitions, by partition and offset.

    Returns what is there after `timeout_s` at the latest; commits nothing.

    Raises:
        UnreachableError: the broker does not answer.
        MissingTopicError: there is no such topic.
        UnreadTopicError: it cannot be read.
    """
    require_topics(kafka, (topic,), ours=False)
    consumer = Consumer(consumer_options(kafka))
    try:
        waiting = _assign(consumer, topic, limit)
        records = _read(consumer, waiting, limit, timeout_s)
    except KafkaException as error:
        raise UnreadTopicError(f"topic {topic!r} at {kafka.bootstrap_servers}: {error}") from error
    finally:
        consumer.close()
    return tuple(sorted(records, key=lambda record: (record.partition, record.offset)))


def _assign(consumer: Consumer, topic: str, limit: int) -> set[int]:
    described: Any = consumer.list_topics(topic, timeout=_ASK_S).topics.get(topic)
    if described is None or described.error is not None or not described.partitions:
        raise UnreadTopicError(f"there is no topic {topic!r}")
    bounds = {number: log_bounds(consumer, topic, number) for number in sorted(described.partitions)}
    shares = _shares({number: high - low for number, (low, high) in bounds.items()}, limit)
    consumer.assign([TopicPartition(topic, n, bounds[n][1] - share) for n, share in shares.items()])
    return set(shares)


def _shares(available: dict[int, int], limit: int) -> dict[int, int]:
    """Give how many records to take of each partition that has any: as even as they allow, `limit` in all."""
    shares: dict[int, int] = {}
    left = limit
    waiting = sorted((count, number) for number, count in available.items() if count)
    for i, (count, number) in enumerate(waiting):
        share = min(count, -(-left // (len(waiting) - i)))
        if share:
            shares[number] = share
        left -= share
    return shares


def _read(consumer: Consumer, waiting: set[int], limit: int, timeout_s: float) -> list[RawRecord]:
    # Only the end of a partition tells that it is read: the embedded broker's watermarks are wrong.
    records: list[RawRecord] = []
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
        records.append(raw_record(message))
    return records
