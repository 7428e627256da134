"""The snapshots that the weights topic still holds, in their order; compaction has merged older ones into newer."""

import time
from collections.abc import Callable

from headrace.infra.kafka_edge import ANSWER_TIMEOUT_S, require_topics
from headrace.infra.latest import READ_TIMEOUT_S, UnreadTopicError
from headrace.schemas.assembly import Assembled, SnapshotAssembler
from headrace.schemas.bus.compacted import CompactedReader
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
    require_topics(kafka, (topic,), answer_s)
    said: list[str] = []
    reader, assembler = CompactedReader(kafka, (topic,), on_error=said.append), SnapshotAssembler()
    deadline = time.monotonic() + timeout_s
    try:
        while not reader.caught_up:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                reason = f": {said[-1]}" if said else ""
                raise UnreadTopicError(f"{topic} was not read to its end within {timeout_s:g} s{reason}")
            for record in reader.poll(min(1.0, left_s)):
                outcome = assembler.offer(record)
                if isinstance(outcome, Assembled):
                    take(outcome.snapshot)
    finally:
        reader.close()
    return assembler.snapshot
