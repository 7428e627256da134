"""The newest record of each key of a compacted topic, read once: for commands that show or check what is there."""

from collections.abc import Mapping

from headrace.infra.topic_readers.to_end import READ_TIMEOUT_S, read_to_end
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord


def read_latest(kafka: KafkaSettings, topic: str, timeout_s: float = READ_TIMEOUT_S) -> Mapping[bytes, RawRecord]:
    """Give the newest record of each key, sorted by key; keys whose newest record is a tombstone are left out.

    Raises:
        UnreachableError: the broker does not answer.
        MissingTopicError: the topic is not there.
        UnreadTopicError: it was not read to its end within `timeout_s`.
    """
    latest: dict[bytes, RawRecord] = {}
    for record in read_to_end(kafka, topic, timeout_s=timeout_s):
        _keep(latest, record)
    return dict(sorted(latest.items()))


def _keep(latest: dict[bytes, RawRecord], record: RawRecord) -> None:
    if record.key is None:
        return
    if record.value is None:
        latest.pop(record.key, None)
    else:
        latest[record.key] = record
