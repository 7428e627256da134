"""One partition's records as they come: each offset once, in its order; what is missing or odd is noted.

    offset <= last          dropped: a duplicate, of a range that was read or imported twice
    offset > last + 1       a hole: compaction's in a compacted topic; else a gap, but for the one offset that a
                            transaction's end takes
    timestamp < newest      the clock of its producer stepped back; the order of offsets stands

Bounded: counts, and the first of each kind for the sentence.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from headrace.replay.core.columnar.batch import Batch
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
            if self._is_new(record.offset, record.timestamp_ms):
                yield record

    def followed_batch(self, batch: Batch) -> Batch:
        """Give a batch's records, each offset once."""
        if not len(batch):
            return batch
        offset, at_ms = batch.offset, batch.timestamp_ms
        first = offset[0] if self._last is None else self._last + 1
        if not np.array_equal(offset, np.arange(first, first + len(batch))):
            told = zip(offset.tolist(), at_ms.tolist(), strict=True)
            return batch.only(np.array([self._is_new(*each) for each in told]))
        known_ms = at_ms[0] if self._newest_ms is None else self._newest_ms
        newest_ms = np.maximum.accumulate(np.concatenate(([known_ms], at_ms)))
        back = np.flatnonzero(at_ms < newest_ms[:-1])
        if len(back):
            self._note_back(len(back), int(offset[back[0]]), int(newest_ms[back[0]] - at_ms[back[0]]))
        self._last, self._newest_ms = int(offset[-1]), int(newest_ms[-1])
        return batch

    def findings(self) -> tuple[Finding, ...]:
        """Give what was found so far."""
        hole = Found.COMPACTED if self._compacted else Found.GAP
        told = ((hole, self._holes), (Found.DUPLICATES, self._twice), (Found.CLOCK_STEPPED_BACK, self._back))
        return tuple(Finding(found, *self._place, each.count, each.first) for found, each in told if each.count)

    def _is_new(self, offset: int, timestamp_ms: int) -> bool:
        if self._last is not None:
            if offset <= self._last:
                self._twice.add(1, f"offset {offset} comes again after {self._last}; read once")
                return False
            missing = offset - self._last - 1
            if missing > self._allowed:
                why = "superseded records were compacted away" if self._compacted else "records are lost"
                self._holes.add(missing, f"offsets {self._last + 1} to {offset - 1} are missing: {why}")
        if self._newest_ms is not None and timestamp_ms < self._newest_ms:
            self._note_back(1, offset, self._newest_ms - timestamp_ms)
        self._last = offset
        self._newest_ms = timestamp_ms if self._newest_ms is None else max(timestamp_ms, self._newest_ms)
        return True

    def _note_back(self, count: int, offset: int, step_ms: int) -> None:
        self._back.add(count, f"at offset {offset} time steps back by {step_ms} ms; the order of offsets stands")
