"""Sampled requests of a range, in the order in which they were sent, and never more than fit.

Where there are more than `at_most`, half of the sessions are let go by a hash of theirs, and half of those again, until
the rest fit: whole sessions stay, and which ones depends on nothing but themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import xxhash

from headrace.replay.core.history import Finding, Found, Span
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.raw import RawRecord
from headrace.schemas.routed import RoutedRequest, RoutedRequests, check_routed

AT_MOST: Final = 200_000
_SEED: Final = 0x7468_696E
_BITS: Final = 64
_hash = xxhash.xxh3_64_intdigest


@dataclass(frozen=True, slots=True)
class Sampled:
    """One request and the key of its route, `cluster|model|class`."""

    key: bytes
    model: str
    request: RoutedRequest


class SampleFold:
    """Reads records of routed requests; records that are offered in another order give the same sample."""

    def __init__(self, span: Span, registry: SchemaSource | None = None, at_most: int = AT_MOST) -> None:
        self._span = span
        self._registry = registry
        self._at_most = at_most
        self._kept: list[tuple[int, tuple[int, int, int], Sampled]] = []
        self._halved = 0
        self._unreadable: dict[tuple[str, int], int] = {}

    def offer(self, record: RawRecord) -> None:
        """Take a record; one that cannot be read, or is not sound, is a finding."""
        read = decode(RoutedRequests, record.value, record.headers, self._registry)
        if isinstance(read, Rejected) or check_routed(read):
            place = record.topic, record.partition
            self._unreadable[place] = self._unreadable.get(place, 0) + 1
            return
        for number, request in enumerate(read.requests):
            if request.sent_ms in self._span:
                place_in_log = record.partition, record.offset, number
                rank = _rank(request, place_in_log)
                if not rank >> (_BITS - self._halved):
                    self._kept.append((rank, place_in_log, Sampled(read.key, read.model, request)))
        while len(self._kept) > self._at_most and self._halved < _BITS:
            self._halved += 1
            self._kept = [each for each in self._kept if not each[0] >> (_BITS - self._halved)]

    def requests(self) -> tuple[Sampled, ...]:
        """Give the sample, by the instant of sending."""
        ordered = sorted(self._kept, key=lambda kept: (kept[2].request.sent_ms, kept[1]))
        return tuple(sampled for _, _, sampled in ordered)

    def findings(self) -> tuple[Finding, ...]:
        """Give what could not be read, by partition."""
        return tuple(
            Finding(Found.UNREADABLE, topic, partition, count, f"{count} records of routed requests cannot be used")
            for (topic, partition), count in sorted(self._unreadable.items())
        )


def sample_of(records: Iterable[RawRecord], span: Span, registry: SchemaSource | None = None) -> SampleFold:
    """Read all records of routed requests."""
    fold = SampleFold(span, registry)
    for record in records:
        fold.offer(record)
    return fold


def _rank(request: RoutedRequest, place: tuple[int, int, int]) -> int:
    point = request.point
    own = repr(place).encode() if point is None else point.to_bytes(8, "little")
    return _hash(own, _SEED)
