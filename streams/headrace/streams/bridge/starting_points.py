"""Where a group that has committed nothing yet begins; committed at once, so that it begins there only once.

Left to the client, `latest` would mean the end of the log at each start until something is committed: what came while
the bridge was down would be lost.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from confluent_kafka import Consumer, TopicPartition

from headrace.schemas.bus.log_bounds import log_bounds

ASK_S: Final = 10.0


def starting_points(
    consumer: Consumer, partitions: Sequence[TopicPartition], begin: Literal["latest", "earliest"]
) -> list[TopicPartition]:
    """Give the partitions with the offsets to begin at; called while they are assigned.

    A partition that was added to a topic which the group reads already begins at its oldest record.

    Raises:
        KafkaException: the broker does not answer.
    """
    found = consumer.committed(list(partitions), timeout=ASK_S)
    fresh = [each for each in found if each.offset < 0]
    if not fresh:
        return found
    known = {topic for topic in {each.topic for each in fresh} if _is_read(consumer, topic)}
    for each in fresh:
        low, high = log_bounds(consumer, each.topic, each.partition)
        each.offset = low if begin == "earliest" or each.topic in known else high
    consumer.commit(offsets=fresh, asynchronous=False)
    return found


def _is_read(consumer: Consumer, topic: str) -> bool:
    """Say whether the group has committed anything of a topic."""
    described: Any = consumer.list_topics(topic, timeout=ASK_S).topics[topic]
    every = [TopicPartition(topic, number) for number in described.partitions]
    return any(each.offset >= 0 for each in consumer.committed(every, timeout=ASK_S))
