"""Where the sessions of an engine that is out go until the next snapshot: engines near by, by their spare capacity.

    spare  = capacity x (1 - load after the solve), at least `LEAST` of it
    lost   = the load of the busiest engine that the route uses: what has to be taken in
    taken  the nearest engines, whole distances at a time, until they have `failover_spare` x lost to spare, whichever
           one of the engines that the route uses is the lost one
    kept   of an engine's sessions those that the others taken have spare capacity for

Of an engine that is pinned to less than all, the spare capacity is at most what the pin leaves, most x demand - flow:
one that has all that its pin allows has room for nobody, and is given nobody while others are there; one that is pinned
to nothing is not among the near ones at all.

A data plane knows within a round trip that an engine is dead; the solver hears of it many seconds later. Without this
its sessions go by the route's other weights, which were made for something else: often to a single engine, which fills
up while others have room. And where nobody has room, what is too much would be refused whoever it is, after a long
wait, until the solver sheds it: the data plane sheds it at once, by `kept`.

Taken of the same few engines as the static fallback; in a fleet without any room it is by capacity. It is as of when
the route was written: what changes elsewhere alone is no reason to write it again. `failover_spare` 0 gives none.

Many routes are reckoned at once, a line of `MAX_TARGETS` engines each; sums run from left to right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import FallbackTarget
from headrace.solver.core.answer.apportion import apportion
from headrace.solver.core.answer.fallback import MAX_TARGETS, Near, SharedTargets
from headrace.solver.core.program.layout import Entries, Floats, Ints, Layout
from headrace.solver.core.program.pins import pins_of
from headrace.solver.core.program.plan import Plan, utilisation

Bools = npt.NDArray[np.bool_]
LEAST = 0.01
DIGITS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Failover:
    """Of N routes: their targets, each sorted by engine, and (N, `MAX_TARGETS`) which engines have how much to spare.

    The engine is -1 and the spare capacity 0 RPS where there is none.
    """

    targets: Sequence[tuple[FallbackTarget, ...]]
    engine: Ints
    spare: Floats
    load: Floats

    def kept(self, place: Ints, engine: Ints) -> list[float | None]:
        """Give the share of the sessions of engines (T,) in routes (T,) that would find room; None without a failover.

        Args:
            place: which of the N routes.
            engine: index into the layout's.
        """
        room = np.zeros(len(place))
        for k in range(self.engine.shape[1]):
            room += np.where(self.engine[place, k] == engine, 0.0, self.spare[place, k])
        there = [bool(targets) for targets in self.targets]
        rows = zip(place.tolist(), self.load[engine].tolist(), room.tolist(), strict=True)
        return [(1.0 if load <= left else round(left / load, DIGITS)) if there[n] else None for n, load, left in rows]


class Failovers:
    """Gives the failovers of the routes that are written. Lives for one tick.

    Args:
        layout: of the problem.
        plan: what was decided.
        shared: makes the targets.
        enough: `failover_spare`.
    """

    def __init__(self, layout: Layout, plan: Plan, shared: SharedTargets, enough: float) -> None:
        self._layout = layout
        self._enough = enough
        self._shared = shared
        capacity, usable = layout.engine_capacity, layout.engine_pool >= 0
        self._load = np.zeros(len(capacity))
        self._load[usable] = capacity[usable] * utilisation(layout, plan)[layout.engine_group[usable]]
        self._spare: Floats = np.maximum(capacity - self._load, 0.0)
        self._pinned, self._left = _left_by_pins(layout, plan)

    def of(self, rows: Ints, near: Near, used: Entries) -> Failover:
        """Give the failovers of rows (N,) with these engines near, for the weights of all rows."""
        size = (len(rows), MAX_TARGETS)
        engine, distance = np.full(size, -1, dtype=np.int64), np.full(size, np.inf)
        there: Bools = np.arange(MAX_TARGETS) < np.diff(near.start)[:, None]
        engine[there], distance[there] = near.engine, near.distance
        spare = np.where(there, self._spare[engine], 0.0) if len(self._spare) else np.zeros(size)
        left = self._left_to(rows, engine)
        spare = np.minimum(spare, left)
        wanted_rps = self._enough * self._busiest(rows, used)
        there &= ((wanted_rps >= 0.0) & (self._enough > 0.0))[:, None]
        taken = there & _taken(distance, spare, self._among(rows, engine, used), wanted_rps)
        line, _ = np.nonzero(taken)
        members = engine[taken]
        least, free = LEAST * self._layout.engine_capacity[members], np.isinf(left[taken])
        weight = np.where(free, np.maximum(spare[taken], least), spare[taken])
        # Where pins leave nothing of anybody, who is not shed still has to go somewhere.
        nowhere = np.bincount(line, weight, minlength=len(rows)) <= 0.0
        ppm = apportion(line, np.where(nowhere[line], least, weight), members, len(rows))
        some = ppm > 0
        start = np.searchsorted(line[some], np.arange(len(rows) + 1))
        targets = self._shared.of(start, members[some], ppm[some])
        return Failover(targets, np.where(taken, engine, -1), np.where(taken, spare, 0.0), self._load)

    def _left_to(self, rows: Ints, engine: Ints) -> Floats:
        """Give what pins leave of engines (N, k) to their rows, RPS; infinity where there is no pin."""
        if not len(self._pinned):
            return np.broadcast_to(np.inf, engine.shape)
        wanted = rows[:, None] * len(self._layout.engines) + engine
        at = np.minimum(np.searchsorted(self._pinned, wanted), len(self._pinned) - 1)
        return np.where((self._pinned[at] == wanted) & (engine >= 0), self._left[at], np.inf)

    def _busiest(self, rows: Ints, used: Entries) -> Floats:
        """Give the load of the busiest engine that each row uses, RPS; -1 where it uses none."""
        most = np.full(len(self._layout.rows), -1.0)
        np.maximum.at(most, used.row, self._load[used.engine])
        return np.asarray(most[rows], dtype=np.float64)

    def _among(self, rows: Ints, engine: Ints, used: Entries) -> Bools:
        """Say which engines (N, k) are among those that their rows use."""
        size = max(len(self._layout.engines), 1)
        keys = used.row * size + used.engine
        wanted = rows[:, None] * size + engine
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray((keys[at] == wanted) & (engine >= 0), dtype=np.bool_) if len(keys) else engine < -1


def _left_by_pins(layout: Layout, plan: Plan) -> tuple[Ints, Floats]:
    """Give (row x engines + engine, what its pin leaves in RPS) of each pin to less than all, rising."""
    pins = pins_of(layout)
    some = pins.most < 1.0
    pair, most = pins.pair[some], pins.most[some]
    row, pools = layout.pair_row[pair], layout.pair_pool[pair].tolist()
    # A pinned engine is a pool of its own.
    engine = np.array([layout.pools[pool].engines[0] for pool in pools], dtype=np.int64)
    key, left = row * len(layout.engines) + engine, np.maximum(most * layout.demand[row] - plan.flow[pair], 0.0)
    order = np.argsort(key)
    return key[order], left[order]


def _taken(distance: Floats, spare: Floats, used: Bools, wanted_rps: Floats) -> Bools:
    """Take of each line the nearest that have enough to spare together; those as far as the last one, too."""
    # Engines of one distance stay in their order, and those that are not there come last.
    order = np.argsort(distance, axis=1, kind="stable")
    distance, spare = np.take_along_axis(distance, order, axis=1), np.take_along_axis(spare, order, axis=1)
    used = np.take_along_axis(used, order, axis=1)
    room = np.cumsum(spare, axis=1)
    own = np.maximum.accumulate(np.where(used, spare, 0.0), axis=1)
    enough = np.zeros_like(used)
    enough[:, 1:] = (room - own > wanted_rps[:, None])[:, :-1] & (distance[:, 1:] > distance[:, :-1])
    taken = np.empty_like(used)
    np.put_along_axis(taken, order, ~np.logical_or.accumulate(enough, axis=1), axis=1)
    return taken
