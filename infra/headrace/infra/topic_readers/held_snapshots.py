"""The snapshots that the weights topic still holds, in their order; compaction has merged older ones into newer."""

from collections.abc import Callable

from headrace.infra.kafka_edge import ANSWER_TIMEOUT_S
from headrace.infra.topic_readers.to_end import READ_TIMEOUT_S, read_to_end
from headrace.schemas.assembly import Assembled, SnapshotAssembler
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.weights import Snapshot


def fold_snapshots(
    kafka: KafkaSettings,
    topic: str,
    take: Callable[[Snapshot], None],
    *,
    answer_s: float = ANSWER_TIMEOUT_S,
    timeout_s: float = READ_TIMEOUT_S,
) -> Snapshot | None:
    """Give each snapshot to `take`, up to the topic's end; returns the newest, None where there is none.

    Waits for the broker's first answer for at most `answer_s`.

    Raises:
        UnreachableError: the broker does not answer.
        MissingTopicError: the topic is not there.
        UnreadTopicError: it was not read to its end within `timeout_s`.
    """
    assembler = SnapshotAssembler()
    for record in read_to_end(kafka, topic, answer_s=answer_s, timeout_s=timeout_s):
        outcome = assembler.offer(record)
        if isinstance(outcome, Assembled):
            take(outcome.snapshot)
    return assembler.snapshot
