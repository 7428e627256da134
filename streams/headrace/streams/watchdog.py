"""Ends a worker that hangs: signals wait in its partitions, the broker answers, and nothing has moved for `stall_ms`.

Faust has been seen to stay alive without fetching; such a worker holds its partitions for ever. A process that ends is
started again by whatever supervises it, and goes on from the committed offsets. A broker that is away is no hang.
"""

import asyncio
import time
from collections.abc import Collection

from confluent_kafka import KafkaException

from headrace.streams.log_offsets import LogOffsets, NoAnswerError, Place
from headrace.streams.progress import Progress


class Watchdog:
    """Asks the broker, now and then, whether signals wait."""

    def __init__(self, log_offsets: LogOffsets, stall_ms: int, progress: Progress) -> None:
        self._log_offsets = log_offsets
        self._stall_s = stall_ms / 1000
        self._progress = progress

    async def is_stalled(self, owned: Collection[Place]) -> bool:
        """Say whether the worker hangs. Cheap while it moves: the broker is asked only after `stall_ms` without."""
        if time.monotonic() - self._progress.moved_at_s < self._stall_s:
            return False
        waiting = await asyncio.to_thread(self._waiting, tuple(owned))
        if not waiting:
            self._progress.moved()
        return waiting

    def _waiting(self, owned: tuple[Place, ...]) -> bool:
        try:
            committed = self._log_offsets.committed(owned)
            # On the embedded broker the end is too low by up to a batch: a hang is then seen a little later.
            return any(
                self._waits(place, max(committed[place], self._progress.next_offsets.get(place, 0))) for place in owned
            )
        except (KafkaException, NoAnswerError):
            return False

    def _waits(self, place: Place, position: int) -> bool:
        """Say whether a record waits. Beyond the last one there may be markers of transactions, and aborted records."""
        return self._log_offsets.bounds(place)[1] > position and (
            self._log_offsets.first_from(place, position) is not None
        )
