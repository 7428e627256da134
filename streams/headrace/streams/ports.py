"""What the worker needs from outside it."""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headrace.schemas.dead_letters import DeadLetter
from headrace.schemas.log import Log
from headrace.schemas.metric_table import Counts, NoCounts


@dataclass(frozen=True, slots=True)
class Voice:
    """What a worker tells of itself: in words, and in counts (`headrace.streams.metrics.TABLE` names all of them)."""

    log: Log
    counts: Counts = field(default_factory=NoCounts)


class RecoveredTable(Protocol):
    """The states of the owned partitions by key, and where in their changelog each lay when it was recovered."""

    @property
    def data(self) -> MutableMapping[bytes, bytes]:
        """Give the states. What is set here is not written to the changelog."""
        ...

    @property
    def places(self) -> Mapping[bytes, int]:
        """Give the changelog's offsets, of deleted states too."""
        ...


class Letters(Protocol):
    """Where the refused signals go."""

    async def deliver(self, letters: Sequence[DeadLetter], /) -> None:
        """Return once all of them are safe, or given up for their size, which is said."""
        ...
