"""A topic from an instant on, and then whatever comes: for logs too long to be read from their beginning.

Failure mode: a broker that goes away costs nothing but time.
"""

from collections.abc import Callable, Iterator

from headrace.infra.kafka_edge import require_topics
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord

POLL_S = 0.2


def follow_topic(
    kafka: KafkaSettings,
    topic: str,
    from_ms: int | None,
    stopped: Callable[[], bool],
    *,
    follow: bool,
    on_error: Callable[[str], None] | None = None,
) -> Iterator[RawRecord]:
    """Give the committed records of a topic; of each partition in its order.

    Args:
        kafka: how to reach it.
        topic: its name.
        from_ms: begin at the first record of this time or later; None for the beginning.
        stopped: asked several times a second whether to end.
        follow: whether to wait for more at the end.
        on_error: is told what the client says of its connections.

    Raises:
        UnreachableError, MissingTopicError: the broker does not answer, or the topic is not there.
    """
    require_topics(kafka, (topic,))
    begin = None if from_ms is None else {topic: from_ms}
    reader = CompactedReader(kafka, (topic,), on_error=on_error, from_ms=begin)
    try:
        while not stopped() and (follow or not reader.caught_up):
            yield from reader.poll(POLL_S)
    finally:
        reader.close()
