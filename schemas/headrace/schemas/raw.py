"""A Kafka record as it lies in the log, before anything is known of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RawRecord:
    """Bytes and their place. `timestamp_ms` is the broker's or the producer's, as the topic is configured."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
