"""One partition's records as they come: each offset once, in its order; what is missing or odd is noted.

    offset <= last          dropped: a duplicate, of a range that was read or imported twice
    offset > last + 1       a hole: compaction's in a compacted topic; else a gap, but for the one offset that a
                            transaction's end takes
    timestamp < newest      the clock of its producer stepped back; the order of offsets stands

Bounded: counts, and the first of each kind for the sentence.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.replay.core.history import Finding, Found, Place
from headrace.schemas.raw import RawRecord

TRANSACTION_MARKERS = 1
"""Offsets that the end of a transaction takes in a partition that it wrote to."""


@dataclass(slots=True)
class _Counted:
    count: int = 0
    first: str = ""

    def add(self, count: int, sentence: str) -> None:
        self.first = self.first or sentence
        self.count += count


class Continuity:
    """Watches one partition. `transactional` says that its records were written in transactions."""

    def __init__(self, place: Place, *, compacted: bool, transactional: bool) -> None:
        self._place = place
        self._compacted = compacted
        self._allowed = TRANSACTION_MARKERS if transactional else 0
        self._last: int | None = None
        self._newest_ms: int | None = None
        self._holes, self._twice, self._back = _Counted(), _Counted(), _Counted()

    def followed(self, records: Iterable[RawRecord]) -> Iterator[RawRecord]:
        """Give the records, each offset once."""
        for record in records:
            if self._is_new(record):
                yield record

    def findings(self) -> tuple[Finding, ...]:
        """Give what was found so far."""
        hole = Found.COMPACTED if self._compacted else Found.GAP
        told = ((hole, self._holes), (Found.DUPLICATES, self._twice), (Found.CLOCK_STEPPED_BACK, self._back))
        return tuple(Finding(found, *self._place, each.count, each.first) for found, each in told if each.count)

    def _is_new(self, record: RawRecord) -> bool:
        if self._last is not None:
            if record.offset <= self._last:
                self._twice.add(1, f"offset {record.offset} comes again after {self._last}; read once")
                return False
            missing = record.offset - self._last - 1
            if missing > self._allowed:
                why = "superseded records were compacted away" if self._compacted else "records are lost"
                self._holes.add(missing, f"offsets {self._last + 1} to {record.offset - 1} are missing: {why}")
        if self._newest_ms is not None and record.timestamp_ms < self._newest_ms:
            step_ms = self._newest_ms - record.timestamp_ms
            self._back.add(1, f"at offset {record.offset} time steps back by {step_ms} ms; the order of offsets stands")
        self._last = record.offset
        self._newest_ms = max(record.timestamp_ms, self._newest_ms or record.timestamp_ms)
        return True
