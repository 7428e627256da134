"""A topic read once, from its beginning or an instant up to its end: for commands that look at what is there."""

import time
from collections.abc import Iterator

from headrace.infra.kafka_edge import ANSWER_TIMEOUT_S, require_topics
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord

READ_TIMEOUT_S = 30.0


class UnreadTopicError(HeadraceError):
    """A topic could not be read to its end in time; the message holds what the client said last."""


def read_to_end(
    kafka: KafkaSettings,
    topic: str,
    from_ms: int | None = None,
    *,
    answer_s: float = ANSWER_TIMEOUT_S,
    timeout_s: float = READ_TIMEOUT_S,
) -> Iterator[RawRecord]:
    """Give the committed records, of each partition in its order; `from_ms`: from the first one of that time or later.

    Waits for the broker's first answer for at most `answer_s`.

    Raises:
        UnreachableError: the broker does not answer.
        MissingTopicError: the topic is not there.
        UnreadTopicError: it was not read to its end within `timeout_s`.
    """
    require_topics(kafka, (topic,), answer_s)
    said: list[str] = []
    begin = None if from_ms is None else {topic: from_ms}
    reader = CompactedReader(kafka, (topic,), on_error=said.append, from_ms=begin)
    deadline = time.monotonic() + timeout_s
    try:
        while not reader.caught_up:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                reason = f": {said[-1]}" if said else "; is it there? `headrace topics diff` says"
                raise UnreadTopicError(f"{topic} was not read to its end within {timeout_s:g} s{reason}")
            yield from reader.poll(min(1.0, left_s))
    finally:
        reader.close()
