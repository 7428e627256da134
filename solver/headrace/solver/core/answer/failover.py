"""Where the sessions of an engine that is out go until the next snapshot: engines near by, by their spare capacity.

    spare  = capacity x (1 - load after the solve), at least `LEAST` of it
    lost   = the load of the busiest engine that the route uses: what has to be taken in
    taken  the nearest engines, whole distances at a time, until they have `failover_spare` x lost to spare, whichever
           one of the engines that the route uses is the lost one
    kept   of an engine's sessions those that the others taken have spare capacity for

A data plane knows within a round trip that an engine is dead; the solver hears of it many seconds later. Without this
its sessions go by the route's other weights, which were made for something else: often to a single engine, which fills
up while others have room. And where nobody has room, what is too much would be refused whoever it is, after a long
wait, until the solver sheds it: the data plane sheds it at once, by `kept`.

Taken of the same few engines as the static fallback; in a fleet without any room it is by capacity. It is as of when
the route was written: what changes elsewhere alone is no reason to write it again. `failover_spare` 0 gives none.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from headrace.schemas.weights import FallbackTarget
from headrace.solver.core.answer.apportion import apportion
from headrace.solver.core.program.layout import Ints, Layout
from headrace.solver.core.program.plan import Plan, utilisation

LEAST = 0.01
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Failover:
    """Of one route: its targets, sorted by engine, and what each engine has to spare and to lose, RPS, by index."""

    targets: tuple[FallbackTarget, ...] = ()
    spare: tuple[tuple[int, float], ...] = ()

    def kept(self, engine: int, load_rps: float) -> float | None:
        """Give the share of an engine's sessions, at its load, that would find room; None without a failover."""
        if not self.targets:
            return None
        room = sum(spare for e, spare in self.spare if e != engine)
        return 1.0 if load_rps <= room else round(room / load_rps, DIGITS)


class Failovers:
    """Gives the failover of each route that is written. Lives for one tick.

    Args:
        layout: of the problem.
        plan: what was decided.
        near: (row, engine) of each row's nearest engines, sorted.
        enough: `failover_spare`.
    """

    def __init__(self, layout: Layout, plan: Plan, near: tuple[Ints, Ints], enough: float) -> None:
        row, engine = near
        self._layout = layout
        self._enough = enough
        self._start: list[int] = np.searchsorted(row, np.arange(len(layout.rows) + 1)).tolist()
        self._near: list[int] = engine.tolist()
        capacity, usable = layout.engine_capacity, layout.engine_pool >= 0
        load = np.zeros(len(capacity))
        load[usable] = capacity[usable] * utilisation(layout, plan)[layout.engine_group[usable]]
        self.load: list[float] = load.tolist()
        self._spare: list[float] = np.maximum(capacity - load, 0.0).tolist()
        self._capacity: list[float] = capacity.tolist()

    def of(self, row: int, used: Collection[int]) -> Failover:
        """Give a row's failover, for the engines that have its weights."""
        near = self._near[self._start[row] : self._start[row + 1]]
        if self._enough <= 0.0 or not near or not used:
            return Failover()
        taken = self._taken(row, near, used)
        weight = np.array([max(self._spare[e], LEAST * self._capacity[e]) for e in taken])
        ppm: list[int] = apportion(np.zeros(len(taken), np.int64), weight, np.array(taken), 1).tolist()
        engines = [self._layout.engines[e] for e in taken]
        targets = tuple(
            FallbackTarget(e.engine_id, e.address, share) for e, share in zip(engines, ppm, strict=True) if share > 0
        )
        return Failover(targets, tuple((e, self._spare[e]) for e in taken))

    def _taken(self, row: int, near: list[int], used: Collection[int]) -> list[int]:
        """Give the nearest engines that have enough to spare together, sorted; engines as far as the last one, too."""
        wanted_rps = self._enough * max(self.load[e] for e in used)
        pairs = self._layout.pairs_of(row)
        at = np.searchsorted(self._layout.pair_pool[pairs], self._layout.engine_pool[near])
        distance: list[float] = self._layout.pair_network[pairs][at].tolist()
        taken: list[int] = []
        room, own, furthest = 0.0, 0.0, -1.0
        for ms, e in sorted(zip(distance, near, strict=True)):
            if room - own > wanted_rps and ms > furthest:
                break
            taken.append(e)
            room, furthest = room + self._spare[e], ms
            own = max(own, self._spare[e]) if e in used else own
        return sorted(taken)
