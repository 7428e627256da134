"""Many records of a log at once: their bytes where they lie, and where in them each key and value begins and ends.

    data   ... offset | timestamp | key | value | headers ...   a block of an exported file, or values one after another
    batch  offset, timestamp_ms, partition, key, start, end     (N,) each; end -1 where there is no value

What is odd of a record (headers, no key, no value) is marked, and given as the record that it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from headrace.replay.core.columnar.cursor import Ints, Marks
from headrace.schemas.raw import RawRecord


@dataclass(frozen=True, slots=True)
class Batch:
    """N records of one topic; of each partition in the order of its offsets.

    Attributes:
        topic: of all of them.
        data: bytes that hold the values.
        partition, offset, timestamp_ms: (N,)
        key: of each; None where it has none.
        start, end: (N,) where each value lies in `data`; -1 where it is null.
        odd: records that have headers, by number: those are given as they are.
    """

    topic: str
    data: bytes
    partition: Ints
    offset: Ints
    timestamp_ms: Ints
    key: list[bytes | None]
    start: Ints
    end: Ints
    odd: dict[int, RawRecord] = field(default_factory=dict[int, RawRecord])

    def __len__(self) -> int:
        return len(self.key)

    def record(self, n: int) -> RawRecord:
        """Give one as a record."""
        if n in self.odd:
            return self.odd[n]
        start, end = int(self.start[n]), int(self.end[n])
        value = None if end < 0 else self.data[start:end]
        return RawRecord(
            self.topic, int(self.partition[n]), int(self.offset[n]), int(self.timestamp_ms[n]), self.key[n], value
        )

    def records(self) -> Iterator[RawRecord]:
        """Give all of them."""
        return (self.record(n) for n in range(len(self)))

    def part(self, first: int, last: int) -> "Batch":
        """Give those from one number to another, not included; with only the bytes that they need."""
        if first == 0 and last == len(self):
            return self
        start, end = self.start[first:last], self.end[first:last]
        held = end >= 0
        low, high = (int(start[held].min()), int(end[held].max())) if held.any() else (0, 0)
        return Batch(
            self.topic,
            self.data[low:high],
            self.partition[first:last],
            self.offset[first:last],
            self.timestamp_ms[first:last],
            self.key[first:last],
            np.where(held, start - low, -1),
            np.where(held, end - low, -1),
            {n - first: record for n, record in self.odd.items() if first <= n < last},
        )

    def only(self, marks: Marks) -> "Batch":
        """Give those that are marked."""
        if marks.all():
            return self
        of = np.flatnonzero(marks)
        numbers = {n: new for new, n in enumerate(of.tolist())}
        return Batch(
            self.topic,
            self.data,
            self.partition[of],
            self.offset[of],
            self.timestamp_ms[of],
            [self.key[n] for n in of.tolist()],
            self.start[of],
            self.end[of],
            {numbers[n]: record for n, record in self.odd.items() if n in numbers},
        )


def batch_of(topic: str, records: Sequence[RawRecord]) -> Batch:
    """Give records as a batch."""
    values = [record.value for record in records]
    length = np.array([0 if value is None else len(value) for value in values], dtype=np.int64)
    end = np.cumsum(length)
    null = np.array([value is None for value in values], dtype=np.bool_)
    return Batch(
        topic,
        b"".join(value for value in values if value is not None),
        np.array([record.partition for record in records], dtype=np.int64),
        np.array([record.offset for record in records], dtype=np.int64),
        np.array([record.timestamp_ms for record in records], dtype=np.int64),
        [record.key for record in records],
        np.where(null, -1, end - length),
        np.where(null, -1, end),
        {n: record for n, record in enumerate(records) if record.headers},
    )


def joined(batches: Sequence[Batch]) -> Batch:
    """Give batches of one topic, at least one, as one."""
    if len(batches) == 1:
        return batches[0]
    begin = np.cumsum([0, *(len(each.data) for each in batches)])
    first = np.cumsum([0, *(len(each) for each in batches)])
    moved = [
        (np.where(each.end < 0, -1, each.start + at), np.where(each.end < 0, -1, each.end + at))
        for each, at in zip(batches, begin.tolist(), strict=False)
    ]
    return Batch(
        batches[0].topic,
        b"".join(each.data for each in batches),
        np.concatenate([each.partition for each in batches]),
        np.concatenate([each.offset for each in batches]),
        np.concatenate([each.timestamp_ms for each in batches]),
        [key for each in batches for key in each.key],
        np.concatenate([start for start, _ in moved]),
        np.concatenate([end for _, end in moved]),
        {n + at: record for each, at in zip(batches, first.tolist(), strict=False) for n, record in each.odd.items()},
    )
