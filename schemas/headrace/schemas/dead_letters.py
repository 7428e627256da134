"""A message that could not be used: its original bytes, where it stood, and why it was refused."""

from dataclasses import dataclass
from enum import StrEnum


class RejectReason(StrEnum):
    """Why a message was refused."""

    UNKNOWN = "UNKNOWN"
    MALFORMED = "MALFORMED"
    UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"
    WRONG_RECORD = "WRONG_RECORD"
    NOT_FINITE = "NOT_FINITE"
    NEGATIVE = "NEGATIVE"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    INCONSISTENT = "INCONSISTENT"
    BAD_IDENTIFIER = "BAD_IDENTIFIER"
    KEY_MISMATCH = "KEY_MISMATCH"
    WRONG_PARTITION = "WRONG_PARTITION"
    UNKNOWN_ENGINE = "UNKNOWN_ENGINE"
    TIME_IN_FUTURE = "TIME_IN_FUTURE"
    TOO_LARGE = "TOO_LARGE"


@dataclass(frozen=True, slots=True)
class Rejected:
    """The outcome of reading a message that cannot be used."""

    reason: RejectReason
    detail: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The refused message as it came, and where from. `detail` names value, bound and field of every problem."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    record_key: bytes | None
    record_value: bytes | None
    reason: RejectReason
    detail: str
    stage: str

    @property
    def key(self) -> bytes:
        """Kafka key: the source topic."""
        return self.topic.encode()
