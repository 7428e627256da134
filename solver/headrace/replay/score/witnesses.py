"""A few whole ticks of a run, evenly over its time: what differences between variants are explained by, later.

    kept: the first tick in each cell of a grid of time; the grid doubles where it would hold more than MOST

The grid is anchored at time 0 of the epoch, so two variants over the same ticks keep the same ones.
"""

from dataclasses import dataclass, replace

from headrace.replay.core.played import PlayedTick
from headrace.replay.core.told import NOTHING_TOLD
from headrace.schemas.weights import Snapshot

MOST = 32


@dataclass(frozen=True, slots=True)
class Witness:
    """A tick with the snapshot before it, from which it can be decided once more; None at a run's first tick."""

    tick: PlayedTick
    previous: Snapshot | None


class Witnesses:
    """The ticks that are kept so far."""

    def __init__(self, step_ms: int = 1000) -> None:
        self._step_ms = step_ms
        self._kept: dict[int, Witness] = {}

    def add(self, tick: PlayedTick, previous: Snapshot | None) -> None:
        """Keep a tick, if it is the first of its cell."""
        self._kept.setdefault(tick.now_ms // self._step_ms, Witness(replace(tick, told=NOTHING_TOLD), previous))
        while len(self._kept) > MOST:
            self._step_ms *= 2
            coarser: dict[int, Witness] = {}
            for _, witness in sorted(self._kept.items()):
                coarser.setdefault(witness.tick.now_ms // self._step_ms, witness)
            self._kept = coarser

    def kept(self) -> tuple[Witness, ...]:
        """Give them, oldest first."""
        return tuple(witness for _, witness in sorted(self._kept.items()))
