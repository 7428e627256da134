"""What history is: records of topics by partition, over a range of time, and what is known to be missing from it.

    span      from_ms <= time < to_ms, ms since the epoch
    place     (topic, partition)
    finding   something about the range that a reader must know, as a word, where, and a sentence

A history does not pretend to be whole: each hole is a finding, and a result that a hole would make wrong is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from headrace.replay.core.instants import instant
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import Topic

Place = tuple[str, int]
"""Topic and partition."""


class HistoryError(HeadraceError):
    """The range cannot be replayed; the message says what is missing and what to do."""


class DamagedError(HistoryError):
    """History itself cannot be read: a file is missing or broken. Nothing is concluded from what is left of it."""


class Found(StrEnum):
    """What may be wrong with a range."""

    EMPTY = "EMPTY"
    EXPIRED = "EXPIRED"
    GAP = "GAP"
    COMPACTED = "COMPACTED"
    DUPLICATES = "DUPLICATES"
    CLOCK_STEPPED_BACK = "CLOCK_STEPPED_BACK"
    UNREADABLE = "UNREADABLE"
    NO_KEYFRAME = "NO_KEYFRAME"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about a range. `count` is of records, or of ticks where the sentence says so."""

    found: Found
    topic: str
    partition: int | None
    count: int
    sentence: str

    def __str__(self) -> str:
        """Say it in one line."""
        where = self.topic if self.partition is None else f"{self.topic}[{self.partition}]"
        return f"{self.found}: {where}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Span:
    """A range of time, ms since the epoch; the end is not in it."""

    from_ms: int
    to_ms: int

    def __post_init__(self) -> None:
        """See that it is a range.

        Raises:
            HistoryError: it ends before it begins.
        """
        if self.to_ms <= self.from_ms:
            ends, begins = instant(self.to_ms), instant(self.from_ms)
            raise HistoryError(f"the range ends at {ends}, not after its beginning {begins}")

    def __contains__(self, at_ms: object) -> bool:
        return isinstance(at_ms, int) and self.from_ms <= at_ms < self.to_ms


class History(Protocol):
    """Records of a range, to be read as often as wanted."""

    @property
    def span(self) -> Span:
        """The range that was asked for."""
        ...

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics by role, named as they were when they were recorded."""
        ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found while the range was read from where it came from."""
        ...

    def places(self, role: str) -> tuple[Place, ...]:
        """Give the partitions of a role's topic that hold records, sorted."""
        ...

    def read(self, place: Place) -> Iterator[RawRecord]:
        """Give a partition's records by rising offset, anew at each call."""
        ...
