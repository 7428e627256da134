"""The partitions of one topic, read batch by batch up to an instant: what of them comes before it, in one batch.

A record counts as no earlier than the one before it in its partition, as in `headrace.replay.core.merge`. Bounded: one
batch a partition is held, and what one tick takes.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.replay.core.columnar.batch import Batch, joined

if TYPE_CHECKING:
    from headrace.replay.core.columnar.cursor import Ints


class _Partition:
    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches
        self._batch: Batch | None = None
        self._order: Ints = np.zeros(0, dtype=np.int64)
        self._next = 0
        self._newest_ms = -(1 << 62)

    def until(self, at_ms: int, side: str) -> Iterator[Batch]:
        """Give what comes before an instant, or at it where `side` is "right"."""
        while True:
            if self._batch is None:
                self._batch, self._next = next(self._batches, None), 0
                if self._batch is None:
                    return
                self._order = np.maximum(np.maximum.accumulate(self._batch.timestamp_ms), self._newest_ms)
                self._newest_ms = int(self._order[-1]) if len(self._order) else self._newest_ms
            last = int(np.searchsorted(self._order, at_ms, side=side))  # type: ignore[call-overload]  # its stub wants a literal
            if last > self._next:
                yield self._batch.part(self._next, last)
                self._next = last
            if last < len(self._order):
                return
            self._batch = None


class Tail:
    """Partitions as they go on."""

    def __init__(self, partitions: Sequence[Iterator[Batch]]) -> None:
        self._partitions = [_Partition(batches) for batches in partitions]

    def until(self, at_ms: int, *, included: bool) -> Batch | None:
        """Give what comes before an instant, `included` what comes at it; None where there is nothing."""
        side = "right" if included else "left"
        found = [batch for partition in self._partitions for batch in partition.until(at_ms, side)]
        return joined(found) if found else None
