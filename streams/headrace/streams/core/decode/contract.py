"""What every decoder gives: points in one normal form, JSON documents, signals of our own, and rejects with a reason.

A decoder is a function `decode(record, options) -> Decoded` in `decode/<carrier>.py`. Whatever bytes come, it never
raises past `decode.edge`: what cannot be used is a reject. A point without a value or histogram is "no recorded
value": NaN, a staleness marker, a flag. That is missing, never zero.

Points are named tuples, not dataclasses: a hundred thousand a second are made on one core.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from headrace.schemas.check_signals import Signal
from headrace.schemas.codec import SchemaSource
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.raw import RawRecord

Part = TypeVar("Part")

Labels = tuple[tuple[str, str], ...]
"""Label names and values, sorted by name; a name stands once. Resource attributes are labels too."""

MAX_TIME_MS = 253_402_300_799_999
"""The end of the year 9999: an instant beyond is a wrong unit."""
MAX_COUNT = 10**15
MAX_BUCKETS = 512
MAX_LABELS = 128
MAX_LABEL_CHARS = 1024
MAX_SERIES_CHARS = 16_384
"""Of all labels of a series together: what is remembered of series is bounded by it."""
MAX_REJECTS = 100
"""Rejects of one message that are told apart; those beyond are one more reject that counts them."""


class Kind(StrEnum):
    """What a point measures. UNTYPED: the carrier does not say whether it is a gauge or a counter."""

    GAUGE = "GAUGE"
    COUNTER = "COUNTER"
    UNTYPED = "UNTYPED"
    HISTOGRAM = "HISTOGRAM"


class Temporality(StrEnum):
    """Whether a value counts since the series began (CUMULATIVE), since the last point (DELTA), or is a reading."""

    INSTANT = "INSTANT"
    CUMULATIVE = "CUMULATIVE"
    DELTA = "DELTA"


class Explicit(NamedTuple):
    """A histogram with its source's bounds, in the source's unit.

    counts[i] observations lie in (bounds[i-1], bounds[i]]; the last of len(bounds) + 1 counts is the overflow. Without
    bounds (a summary) only their number and sum are known. The counts add up to `observations`.
    `total` None: not recorded.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    observations: int
    total: float | None
    low: float | None = None
    high: float | None = None


class Exponential(NamedTuple):
    """A histogram whose bucket i holds (b^i, b^(i+1)], b = 2^(2^-scale), from index `offset` on.

    Observations at or below zero, and those of negative buckets, are in `zero_count`.
    """

    scale: int
    zero_count: int
    offset: int
    counts: tuple[int, ...]
    observations: int
    total: float | None
    low: float | None = None
    high: float | None = None


class Point(NamedTuple):
    """One reading of one series; `place` is where it stood in its message.

    `start_ms` None: the carrier does not say since when a cumulative value counts.
    """

    name: str
    labels: Labels
    kind: Kind
    temporality: Temporality
    time_ms: int
    start_ms: int | None
    value: float | None
    histogram: Explicit | Exponential | None
    unit: str
    place: int

    @property
    def is_missing(self) -> bool:
        """Whether the source said that it recorded no value: not zero, not an error."""
        return self.value is None and self.histogram is None


class Document(NamedTuple):
    """One JSON-like value, for a mapping to look into. `time_ms` is the message's own; the document may say better."""

    body: Mapping[str, Any]
    time_ms: int
    place: int


@dataclass(frozen=True, slots=True)
class Decoded:
    """What one message held. `skipped` counts points by name that `options.wanted` did not ask for."""

    points: tuple[Point, ...] = ()
    documents: tuple[Document, ...] = ()
    signals: tuple[Signal, ...] = ()
    rejects: tuple[Rejected, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How a topic's messages are read.

    Attributes:
        carrier: name of the decoder.
        max_bytes: a larger message is refused before it is parsed.
        max_points: a message with more points or documents is refused whole.
        registry: where writer schemas of foreign Avro records are found.
        wanted: names of series whose points are wanted (a histogram's without its suffix); None: all. Others are
            counted by name, and cost little.
    """

    carrier: str
    max_bytes: int = 16 * 1024 * 1024
    max_points: int = 100_000
    registry: SchemaSource | None = None
    wanted: frozenset[str] | None = None


Decoder = Callable[[RawRecord, DecodeOptions], Decoded]


class Refusal(Exception):  # noqa: N818 - it says what was done with a message; it never leaves `decode`
    """Raised inside a decoder where a message cannot be used; `decode.edge` makes a reject of it."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        self.rejected = Rejected(reason, detail[:300])
        super().__init__(detail)


def rejected(reason: RejectReason, detail: str) -> Decoded:
    """Give the outcome of a message that is refused whole."""
    return Decoded(rejects=(Rejected(reason, detail[:300]),))


class Gathering:
    """What a decoder has found so far in one message: lists inside, handed out once as a Decoded."""

    __slots__ = ("_limit", "_more_rejects", "_parts", "_rejects", "documents", "points", "skipped")

    def __init__(self, options: DecodeOptions) -> None:
        self.points: list[Point] = []
        self.documents: list[Document] = []
        self.skipped: dict[str, int] = {}
        self._rejects: list[Rejected] = []
        self._more_rejects = 0
        self._parts = 0
        self._limit = options.max_points

    def bound(self) -> None:
        """Refuse the message where it holds more than it may; called now and then while it is read."""
        found = len(self.points) + len(self.documents) + len(self._rejects) + self._more_rejects
        if found > self._limit:
            raise Refusal(RejectReason.TOO_LARGE, f"the message holds more than {self._limit} points")

    def opened(self, parts: int) -> None:
        """Count parts of the message that hold points, and refuse a message of nothing but millions of them."""
        self._parts += parts
        if self._parts > self._limit:
            raise Refusal(RejectReason.TOO_LARGE, f"the message has more than {self._limit} parts")

    def reject(self, reason: RejectReason, detail: str) -> None:
        """Note what cannot be used; the rest of the message goes on."""
        if len(self._rejects) < MAX_REJECTS:
            self._rejects.append(Rejected(reason, detail[:300]))
        else:
            self._more_rejects += 1

    def read_each(
        self,
        parts: Iterable[Part],
        read: "Callable[[Part, int, DecodeOptions, Gathering], None]",
        otherwise_ms: int,
        options: DecodeOptions,
    ) -> None:
        """Read the message's parts in turn, within the bound; one that is refused is noted, and the rest goes on.

        `otherwise_ms` is for a part that says no time of its own.
        """
        for part in parts:
            try:
                read(part, otherwise_ms, options, self)
            except Refusal as refusal:
                self.reject(refusal.rejected.reason, refusal.rejected.detail)
            self.bound()

    def decoded(self) -> Decoded:
        """Give what was found."""
        self.bound()
        rejects = self._rejects
        if self._more_rejects:
            rejects = [*rejects, Rejected(rejects[-1].reason, f"and {self._more_rejects} more parts of this message")]
        return Decoded(tuple(self.points), tuple(self.documents), (), tuple(rejects), self.skipped)
