"""How slow an engine really was, read from history where it is unmistakable; else it is taken to be as profiled.

    steady, below its wall    measured latency / profile at the measured load             (protections/residual)
    requests wait             capacity / rate that it just finished: it is at its wall, and the wall has come down

Only what is `slow_above` times slower counts: a fault, not a profile that is somewhat off. Smaller differences are left
to calibration, which would else compare a number with itself. It counts once it has been read for `PERSISTS_MS`: a
window that a fault or a burst has just entered tells of two loads at once. It stands until something else is read, or
nothing for `HOLDS_MS`; an engine that comes back begins anew. The same for every variant: it is the engine's, not the
weights'.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from headrace.replay.score.lengths import Answers
from headrace.solver.core.problem import Engine, Problem
from headrace.solver.core.protections.residual import FEWEST, residuals

AT_WALL = 0.05
"""Share of those inside that wait, from which an engine counts as being at its wall."""
PERSISTS_MS = 5_000
HOLDS_MS = 60_000
_NONE_TOLD: Mapping[str, float] = MappingProxyType({})


class Slowness:
    """One factor per engine that is slow, 1 for all others."""

    def __init__(self, slow_above: float) -> None:
        self._slow_above = slow_above
        self._factor: dict[str, float] = {}
        self._since_ms: dict[str, int] = {}
        self._seen_ms: dict[str, int] = {}

    @classmethod
    def known(cls, factors: Mapping[str, float]) -> "Slowness":
        """Give factors that are known, as those of a simulated fleet are."""
        slowness = cls(math.inf)
        slowness._factor.update(factors)
        return slowness

    def see(self, problem: Problem, now_ms: int, tokens: Mapping[str, float] = _NONE_TOLD) -> None:
        """Read what a tick's problem says of its engines; `tokens` of an answer by model, where known."""
        there: list[Engine] = []
        for engine in problem.engines:
            if engine.exclusion is not None or engine.ready_replicas <= 0:
                self._forget(engine.engine_id)
            else:
                there.append(engine)
        shares = _shares(problem, there, tokens) if tokens else {}
        below_wall = residuals(problem, there, shares)
        for engine in there:
            name = engine.engine_id
            seen = _at_wall(engine, shares.get(name, 1.0))
            if seen is None:
                seen = below_wall.get(name)
            if seen is None:
                if now_ms - self._seen_ms.get(name, now_ms) > HOLDS_MS:
                    self._forget(name)
                continue
            self._seen_ms[name] = now_ms
            if seen < self._slow_above:
                self._forget(name)
            elif now_ms - self._since_ms.setdefault(name, now_ms) >= PERSISTS_MS:
                self._factor[name] = seen

    def of(self, engine_id: str) -> float:
        """Give how many times slower than its profile an engine is."""
        return self._factor.get(engine_id, 1.0)

    def _forget(self, engine_id: str) -> None:
        self._factor.pop(engine_id, None)
        self._since_ms.pop(engine_id, None)

    @property
    def slow(self) -> tuple[str, ...]:
        """Engines that are slow now, sorted."""
        return tuple(sorted(self._factor))


def _shares(problem: Problem, engines: Sequence[Engine], tokens: Mapping[str, float]) -> dict[str, float]:
    """Give the share of its capacity that each has for answers as long as these: longer ones are no slowness."""
    answers, shares = Answers(problem, tokens), dict[str, float]()
    for engine in engines:
        found = answers.of(engine)
        if found is not None:
            shares[engine.engine_id] = 1.0 / found[1]
    return shares


def _at_wall(engine: Engine, share: float) -> float | None:
    """Give how far the wall has come down; by the newest periods alone, since the window before may have been idle."""
    through = engine.throughput
    if through is None or through.recent_rps is None or through.recent_rps <= 0.0:
        return None
    inside = through.running + through.waiting
    if inside < FEWEST or through.waiting <= AT_WALL * inside:
        return None
    return share * engine.ready_replicas * engine.capacity_rps_per_replica / through.recent_rps
