"""Ends a worker that hangs: signals wait in its partitions, the broker answers, and nothing has moved for `stall_ms`.

Faust has been seen to stay alive without fetching; such a worker holds its partitions for ever. A process that ends is
started again by whatever supervises it, and goes on from the committed offsets. What is asked of the broker is asked
by a client of its own, so that a hang of Faust's cannot hide itself. A broker that is away is no hang.
"""

import asyncio
import time
from collections.abc import Collection

from confluent_kafka import Consumer, KafkaException, TopicPartition

from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.settings import KafkaSettings
from headrace.streams.progress import Place, Progress

ASK_S = 5.0


class Watchdog:
    """Asks the broker, now and then, whether signals wait."""

    def __init__(self, kafka: KafkaSettings, group_id: str, stall_ms: int, progress: Progress) -> None:
        self._client = Consumer(consumer_options(kafka, group_id))
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

    def close(self) -> None:
        """Let the client go."""
        self._client.close()

    def _waiting(self, owned: tuple[Place, ...]) -> bool:
        try:
            asked = [TopicPartition(*place) for place in owned]
            committed = {(c.topic, c.partition): c.offset for c in self._client.committed(asked, timeout=ASK_S)}
            return any(self._is_behind(place, committed[place]) for place in owned)
        except KafkaException:
            return False

    def _is_behind(self, place: Place, committed: int) -> bool:
        # On the embedded broker the high mark is too low by up to a batch: a hang is then seen a little later.
        low, high = self._client.get_watermark_offsets(TopicPartition(*place), timeout=ASK_S, cached=False)
        return high > max(low, committed, self._progress.next_offsets.get(place, 0))
