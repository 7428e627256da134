"""The newest record of each key of a compacted topic, read once: for commands that show or check what is there."""

import time
from collections.abc import Mapping

from headrace.infra.kafka_edge import require_topics
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord

READ_TIMEOUT_S = 30.0


class UnreadTopicError(HeadraceError):
    """A topic could not be read to its end in time; the message holds what the client said last."""


def read_latest(kafka: KafkaSettings, topic: str, timeout_s: float = READ_TIMEOUT_S) -> Mapping[bytes, RawRecord]:
    """Give the newest record of each key, sorted by key; keys whose newest record is a tombstone are left out.

    Raises:
        UnreachableError: the broker does not answer.
        MissingTopicError: the topic is not there.
        UnreadTopicError: it was not read to its end within `timeout_s`.
    """
    require_topics(kafka, (topic,))
    said: list[str] = []
    reader = CompactedReader(kafka, (topic,), on_error=said.append)
    deadline = time.monotonic() + timeout_s
    latest: dict[bytes, RawRecord] = {}
    try:
        while not reader.caught_up:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                reason = f": {said[-1]}" if said else "; is it there? `headrace topics diff` says"
                raise UnreadTopicError(f"{topic} was not read to its end within {timeout_s:g} s{reason}")
            for record in reader.poll(min(1.0, left_s)):
                _keep(latest, record)
    finally:
        reader.close()
    return dict(sorted(latest.items()))


def _keep(latest: dict[bytes, RawRecord], record: RawRecord) -> None:
    if record.key is None:
        return
    if record.value is None:
        latest.pop(record.key, None)
    else:
        latest[record.key] = record
