"""Which part of the input topics the ticks of a range need: from the least offset that any had read to the most.

below least    the newest record of each key is all that a tick can see of it
least..most    every record, since one tick sees it and another does not
no ticks       by the records' own time instead: what stood when the range began, and what came in it
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.replay.core.history import Span
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import SnapshotCommit


@dataclass(slots=True)
class Bounds:
    """The offsets, taken in tick by tick; the first live tick, and whether none had read less than it."""

    span: Span
    least: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    most: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    ticks: int = 0
    first: SnapshotCommit | None = None
    first_is_least: bool = True

    def add(self, commit: SnapshotCommit, *, live: bool = True) -> None:
        """Take in a tick of the range; `live` where it is not a shadow's."""
        self.ticks += 1
        if live:
            self.first = self.first or commit
            read = zip(self.first.inputs, commit.inputs, strict=False)
            self.first_is_least &= all(
                now >= then for one, other in read for then, now in zip(one.offsets, other.offsets, strict=False)
            )
        for number, each in enumerate(commit.inputs):
            for partition, offset in enumerate(each.offsets):
                place = number, partition
                self.least[place] = min(self.least.get(place, offset), offset)
                self.most[place] = max(self.most.get(place, offset), offset)

    def is_before(self, number: int, record: RawRecord) -> bool:
        """Say whether every tick of the range had read a record."""
        if self.ticks:
            return record.offset < self.least.get((number, record.partition), 0)
        return record.timestamp_ms < self.span.from_ms

    def is_past(self, number: int, record: RawRecord) -> bool:
        """Say whether no tick of the range had read it."""
        if self.ticks:
            return record.offset >= self.most.get((number, record.partition), 0)
        return record.timestamp_ms >= self.span.to_ms


class Base:
    """What stood in one input topic before the range: the newest record of each key, until the range begins."""

    def __init__(self, bounds: Bounds, number: int) -> None:
        self._bounds = bounds
        self._number = number
        self._standing: dict[int, dict[bytes, RawRecord]] = {}
        self._begun: set[int] = set()

    def followed(self, record: RawRecord) -> Iterator[RawRecord]:
        """Take the next record; give what is to be written because of it."""
        partition = record.partition
        if partition not in self._begun and self._bounds.is_before(self._number, record):
            if record.key is not None:
                self._standing.setdefault(partition, {})[record.key] = record
            return
        yield from self._begin(partition)
        yield record

    def rest(self) -> Iterator[RawRecord]:
        """Give what stood in the partitions in which the range brought nothing."""
        for partition in sorted(self._standing):
            yield from self._begin(partition)

    def _begin(self, partition: int) -> Iterator[RawRecord]:
        self._begun.add(partition)
        yield from sorted(self._standing.pop(partition, {}).values(), key=lambda record: record.offset)
