"""Where a group that has committed nothing yet begins; committed at once, so that it begins there only once.

Left to the client, `latest` would mean the end of the log at each start until something is committed: what came while
the bridge was down would be lost.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from headrace.schemas.bus.log_bounds import log_bounds

ASK_S: Final = 10.0


class StartingPoints(NamedTuple):
    """Partitions with the offsets to begin at; `left` counts by topic the records before a beginning at the end."""

    partitions: list[TopicPartition]
    left: Mapping[str, int]


def starting_points(
    consumer: Consumer, partitions: Sequence[TopicPartition], begin: Literal["latest", "earliest"]
) -> StartingPoints:
    """Give where to begin; called while partitions are assigned.

    A partition that was added to a topic which the group reads already begins at its oldest record.

    Raises:
        KafkaException: the broker does not answer.
    """
    found = consumer.committed(list(partitions), timeout=ASK_S)
    fresh = [each for each in found if each.offset < 0]
    if not fresh:
        return StartingPoints(found, {})
    known = {topic for topic in {each.topic for each in fresh} if _is_read(consumer, topic)}
    left = Counter[str]()
    for each in fresh:
        low, high = log_bounds(consumer, each.topic, each.partition)
        is_from_oldest = begin == "earliest" or each.topic in known
        each.offset = low if is_from_oldest else high
        if not is_from_oldest:
            left[each.topic] += high - low
    consumer.commit(offsets=fresh, asynchronous=False)
    return StartingPoints(found, left)


def told_beginnings(left: Mapping[str, int], group_id: str) -> Iterator[str]:
    """Say for each topic of which a group leaves records that it does, and how they are read after all."""
    for topic, records in sorted(left.items()):
        if records:
            yield (
                f'begins at the end of {topic}: {records} records before it are left; begin = "earliest" under '
                f"[bridge] reads them, with a bridge.group_id other than {group_id}, which now has its place"
            )
        else:
            yield f"begins at the end of {topic}, with no record before it"


def _is_read(consumer: Consumer, topic: str) -> bool:
    """Say whether the group has committed anything of a topic."""
    described: Any = consumer.list_topics(topic, timeout=ASK_S).topics[topic]
    every = [TopicPartition(topic, number) for number in described.partitions]
    return any(each.offset >= 0 for each in consumer.committed(every, timeout=ASK_S))
