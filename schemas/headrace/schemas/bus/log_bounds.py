"""Where a partition's log begins and ends, from a broker that may be electing the partition's leader just now."""

import time
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

ASK_S: Final = 10.0
ELECTION_S: Final = 30.0
_RETRY_S: Final = 0.2
_ELECTING: Final = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
"""By their codes: the client marks an error as one to retry only where it comes from a transaction."""


def log_bounds(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Give a partition's first offset and the one after its last.

    A topic that was just made, or whose broker was just started, may have no leader yet: the client says so at once,
    and is asked again for half a minute. The embedded broker's end is too low, by up to a batch.

    Raises:
        KafkaException: the broker does not answer, or the partition has no leader for longer than that.
    """
    deadline = time.monotonic() + ELECTION_S
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ASK_S, cached=False)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            may_pass = reason.retriable() or reason.code() in _ELECTING
            if not may_pass or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)
