"""How far the worker has come: next offsets by partition, what became of the signals, and when it last moved."""

import time
from collections.abc import Iterable, Mapping

from headrace.streams.core.keyed import Folded
from headrace.streams.core.window import Outcome
from headrace.streams.log_offsets import Place


class Progress:
    """Counts of a worker, written by its folds and read by its watchdog."""

    def __init__(self) -> None:
        self.next_offsets: dict[Place, int] = {}
        self.outcomes: dict[Outcome, int] = dict.fromkeys(Outcome, 0)
        self.refused = 0
        self.moved_at_s = time.monotonic()

    def begin(self, starts: Mapping[Place, int]) -> None:
        """Take where the owned partitions are read from."""
        self.next_offsets.update(starts)

    def processed(self, topic: str, next_offsets: Mapping[int, int], folded: Folded) -> None:
        """Note a batch that was acknowledged, and by partition the offset behind it."""
        for partition, offset in next_offsets.items():
            self.next_offsets[topic, partition] = offset
        for outcome, count in folded.outcomes.items():
            self.outcomes[outcome] += count
        self.refused += len(folded.rejected)
        self.moved()

    def moved(self) -> None:
        """Note that something moved: a batch, a recovery's step, a new assignment."""
        self.moved_at_s = time.monotonic()

    def forget(self, places: Iterable[Place]) -> None:
        """Drop the offsets of partitions that others own now."""
        for place in places:
            self.next_offsets.pop(place, None)

    def counts(self) -> Mapping[str, int]:
        """Give what became of the signals so far, by name."""
        return {outcome.lower(): count for outcome, count in self.outcomes.items()} | {"refused": self.refused}
