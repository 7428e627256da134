"""The static fallback of each route: the engines it may use, in proportion to nominal capacity.

For the case that no snapshot has come for longer than its time to live. Load is even by construction, so no engine can
be overloaded before all are; the network is ignored but for which engines are kept where there are more than
`MAX_TARGETS`. Nominal capacity (without health factors) is used so that the fallback does not change from tick to tick.
"""

from operator import attrgetter

import numpy as np

from headrace.schemas.weights import FallbackTarget
from headrace.solver.core.answer.apportion import apportion
from headrace.solver.core.program.layout import Ints, Layout

MAX_TARGETS = 16
"""The fallback keeps the nearest this many engines."""
_ID, _ADDRESS, _PPM = attrgetter("engine_id"), attrgetter("address"), attrgetter("weight_ppm")


class Fallbacks:
    """The fallbacks of one layout, apportioned all at once, made into records only where they are asked for.

    Attributes:
        near: (row, engine) of each row's nearest engines, sorted.
    """

    def __init__(self, layout: Layout) -> None:
        self._engines = layout.engines
        nominal = np.array([e.ready_replicas * e.capacity_rps_per_replica for e in layout.engines], dtype=np.float64)
        row, engine = self.near = _nearest(layout)
        self._start: list[int] = np.searchsorted(row, np.arange(len(layout.rows) + 1)).tolist()
        self._engine: list[int] = engine.tolist()
        self._ppm: list[int] = apportion(row, nominal[engine], engine, len(layout.rows)).tolist()
        ids, addresses = [e.engine_id for e in layout.engines], [e.address for e in layout.engines]
        self._ids, self._addresses = [ids[e] for e in self._engine], [addresses[e] for e in self._engine]

    def is_still(self, row: int, old: tuple[FallbackTarget, ...]) -> bool:
        """Say whether a row's fallback is what it was."""
        first, end = self._start[row], self._start[row + 1]
        if len(old) != end - first:
            return False
        # In C and without a new object each, since it is asked of every route in every tick.
        return (
            list(map(_ID, old)) == self._ids[first:end]
            and list(map(_PPM, old)) == self._ppm[first:end]
            and list(map(_ADDRESS, old)) == self._addresses[first:end]
        )

    def of(self, row: int) -> tuple[FallbackTarget, ...]:
        """Give a row's fallback, sorted by engine; () where no engine may serve it."""
        return tuple(
            FallbackTarget((spec := self._engines[self._engine[i]]).engine_id, spec.address, self._ppm[i])
            for i in range(self._start[row], self._start[row + 1])
        )


def _nearest(layout: Layout) -> tuple[Ints, Ints]:
    """Give (row, engine) of the nearest `MAX_TARGETS` engines of every row, sorted; of one site the lowest ids."""
    sizes = np.array([min(len(pool.engines), MAX_TARGETS) for pool in layout.pools], dtype=np.int64)
    members = np.array([e for pool in layout.pools for e in pool.engines[:MAX_TARGETS]], dtype=np.int64)
    pair = _near_pairs(layout, sizes)
    count = sizes[layout.pair_pool[pair]]
    first = (np.cumsum(sizes) - sizes)[layout.pair_pool[pair]]
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    engine = members[np.repeat(first, count) + offset]
    # Pairs come by row and distance; engines of one distance are sorted by id.
    of_pair, distance = layout.pair_row[pair], layout.pair_network[pair]
    further = np.append(np.True_, (of_pair[1:] != of_pair[:-1]) | (distance[1:] != distance[:-1]))[: len(pair)]
    step, engines = np.repeat(np.cumsum(further), count), max(len(layout.engines), 1)
    by_distance = np.argsort(step * engines + engine, kind="stable")
    row, engine = np.repeat(of_pair, count)[by_distance], engine[by_distance]
    rank = np.arange(len(row)) - np.searchsorted(row, np.arange(len(layout.rows)))[row]
    near = rank < MAX_TARGETS
    row, engine = row[near], engine[near]
    order = np.argsort(row * engines + engine)
    return row[order], engine[order]


def _near_pairs(layout: Layout, sizes: Ints) -> Ints:
    """Give the pairs that can hold any of a row's nearest engines, by row and distance."""
    place = np.arange(len(layout.pair_row)) - layout.row_start[layout.pair_row]
    width = int(place.max(initial=-1)) + 1
    # One line per row, filled up with what is infinitely far: sorting short lines is far quicker than one long list.
    distance = np.full((len(layout.rows), width), np.inf)
    distance[layout.pair_row, place] = layout.pair_network
    order = np.argsort(distance, axis=1, kind="stable")
    distance = np.take_along_axis(distance, order, axis=1)
    pair = layout.row_start[:-1, None] + order
    there = np.isfinite(distance)
    count = np.where(there, sizes[layout.pair_pool[np.where(there, pair, 0)]], 0) if len(layout.pair_row) else order
    wanted = there & (np.cumsum(count, axis=1) - count < MAX_TARGETS)
    last = np.where(wanted, distance, -np.inf).max(axis=1, initial=-np.inf)
    return np.asarray(pair[there & (distance <= last[:, None])], dtype=np.int64)
