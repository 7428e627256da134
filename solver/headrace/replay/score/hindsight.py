"""Which engines were dead while a tick still planned for them: known only later, when their silence had expired.

    signal ─ ─ ─ ─ ─ ─ silent, planned for ─ ─ ─ ─ ─ ─► excluded STALE          at most `reach_ms` later
           └────────── gone, as was found out then ───┘

Ticks wait here until nothing that may still come can tell more of them. The same for all variants: it is history's.
An engine that does not say when its last signal was is believed to have lived until it was excluded.
"""

from collections import deque
from collections.abc import Iterator

from headrace.replay.core.played import PlayedTick
from headrace.schemas.weights import Reason
from headrace.solver.core.problem import Engine

MAX_WAITING = 4096
"""Ticks that wait at most, whatever the reach."""
SPEAKS_WITHIN_MS = 1_500
"""A living engine's next signal is at most this much later."""


class Hindsight:
    """Holds ticks back, and gives each with the engines that were gone at it, though its problem has them in."""

    def __init__(self, reach_ms: int) -> None:
        self._reach_ms = reach_ms
        self._waiting: deque[tuple[PlayedTick, set[str]]] = deque()
        self._spoke_ms: dict[str, int] = {}

    def add(self, tick: PlayedTick) -> Iterator[tuple[PlayedTick, frozenset[str]]]:
        """Take the next tick; give those that are old enough."""
        for engine in tick.problem.engines:
            if engine.throughput is not None:
                self._spoke_ms[engine.engine_id] = engine.throughput.signal_ms
            if _fell_silent(engine) and engine.engine_id in self._spoke_ms:
                self._mark(engine.engine_id, self._spoke_ms.pop(engine.engine_id) + SPEAKS_WITHIN_MS)
        self._waiting.append((tick, set()))
        while len(self._waiting) > MAX_WAITING or tick.now_ms - self._waiting[0][0].now_ms > self._reach_ms:
            yield self._give()

    def rest(self) -> Iterator[tuple[PlayedTick, frozenset[str]]]:
        """Give what still waits."""
        while self._waiting:
            yield self._give()

    def _give(self) -> tuple[PlayedTick, frozenset[str]]:
        tick, gone = self._waiting.popleft()
        return tick, frozenset(gone)

    def _mark(self, engine_id: str, since_ms: int) -> None:
        for tick, gone in reversed(self._waiting):
            if tick.now_ms < since_ms:
                return
            gone.add(engine_id)


def _fell_silent(engine: Engine) -> bool:
    return engine.exclusion is not None and engine.exclusion.reason is Reason.STALE
