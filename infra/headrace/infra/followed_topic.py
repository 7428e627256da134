"""A topic from an instant on, and then whatever comes: for logs too long to be read from their beginning.

Failure mode: a broker that goes away costs nothing but time.
"""

from collections.abc import Callable, Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from headrace.infra.kafka_edge import require_topics
from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord

POLL_S = 0.2
ASK_S = 10.0


def follow_topic(
    kafka: KafkaSettings, topic: str, from_ms: int | None, stopped: Callable[[], bool], *, follow: bool
) -> Iterator[RawRecord]:
    """Give the committed records of a topic; of each partition in its order.

    Args:
        kafka: how to reach it.
        topic: its name.
        from_ms: begin at the first record of this time or later; None for the beginning.
        stopped: asked several times a second whether to end.
        follow: whether to wait for more at the end.

    Raises:
        UnreachableError, MissingTopicError: the broker does not answer, or the topic is not there.
    """
    require_topics(kafka, (topic,))
    consumer = Consumer(consumer_options(kafka))
    try:
        numbers = sorted(consumer.list_topics(topic, timeout=ASK_S).topics[topic].partitions)
        starts = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers]
        if from_ms is not None:
            asked = [TopicPartition(topic, number, from_ms) for number in numbers]
            # Where no record is of that time or later, the offset found is the partition's end.
            starts = consumer.offsets_for_times(asked, timeout=ASK_S)
        consumer.assign(starts)
        unread = set(numbers)
        while not stopped() and (follow or unread):
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield raw_record(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name for the end of a partition
                unread.discard(message.partition() or 0)
    finally:
        consumer.close()
