"""What had been read of each input partition, as one number: sum of XXH3-64 over each key's newest record, mod 2^64.

The same tables give the same number in whatever order the records came, whether or not compaction has taken away what
was superseded; so a later reader of the same log can prove that it sees what the solver saw, partition by partition.
Records without a key count for nothing, and unsound ones like all others: it is the log that is proved.
"""

from collections.abc import Sequence

import xxhash

from headrace.schemas.decisions import InputDigests
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import InputOffsets

_SIZE = 1 << 64
_Place = tuple[str, int]


class LogDigests:
    """Folds the records of topics. One number a key is kept: 1,000,000 keys take some 200 MB."""

    def __init__(self) -> None:
        self._total: dict[_Place, int] = {}
        self._summand: dict[_Place, dict[bytes, int]] = {}

    def offer(self, record: RawRecord) -> None:
        """Take the next record of a partition; a tombstone takes its key away."""
        if record.key is None:
            return
        place = record.topic, record.partition
        summands = self._summand.setdefault(place, {})
        total = self._total.get(place, 0) - summands.pop(record.key, 0)
        if record.value is not None:
            summands[record.key] = xxhash.xxh3_64_intdigest(record.key + b"\x00" + record.value)
            total += summands[record.key]
        self._total[place] = total % _SIZE

    def digests(self, read: Sequence[InputOffsets]) -> tuple[InputDigests, ...]:
        """Give the numbers of the same topics and partitions as `read` tells offsets of, as signed 64-bit integers."""
        return tuple(
            InputDigests(each.topic, tuple(self._signed(each.topic, number) for number in range(len(each.offsets))))
            for each in read
        )

    def _signed(self, topic: str, partition: int) -> int:
        total = self._total.get((topic, partition), 0)
        return total - _SIZE if total >= _SIZE // 2 else total
