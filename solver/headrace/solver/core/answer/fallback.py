"""The static fallback of each route: the engines it may use, in proportion to nominal capacity.

For the case that no snapshot has come for longer than its time to live. Load is even by construction, so no engine can
be overloaded before all are; the network is ignored but for which engines are kept where there are more than
`MAX_TARGETS`. Nominal capacity (without health factors) is used so that the fallback does not change from tick to tick.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

import numpy as np

from headrace.schemas.weights import FallbackTarget
from headrace.solver.core.answer.apportion import apportion
from headrace.solver.core.problem import Engine
from headrace.solver.core.program.layout import Floats, Ints, Layout

MAX_TARGETS = 16
"""The fallback keeps the nearest this many engines."""
_ID, _ADDRESS, _PPM = attrgetter("engine_id"), attrgetter("address"), attrgetter("weight_ppm")


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """The nearest engines of R rows, sorted by row and engine: where each row's begin (R + 1,), which, how far (ms)."""

    start: Ints
    engine: Ints
    distance: Floats


class Fallbacks:
    """The fallbacks of one layout, apportioned all at once, made into records only where they are asked for.

    Attributes:
        near: each row's nearest engines.
        shared: makes the targets.
    """

    def __init__(self, layout: Layout) -> None:
        self.shared = SharedTargets(layout.engines)
        nominal = np.array([e.ready_replicas * e.capacity_rps_per_replica for e in layout.engines], dtype=np.float64)
        row, engine, distance = _nearest(layout)
        self.near = Near(np.searchsorted(row, np.arange(len(layout.rows) + 1)), engine, distance)
        self._shares = apportion(row, nominal[engine], engine, len(layout.rows))
        self._start: list[int] = self.near.start.tolist()
        self._engine: list[int] = engine.tolist()
        self._ppm: list[int] = self._shares.tolist()
        ids, addresses = [e.engine_id for e in layout.engines], [e.address for e in layout.engines]
        self._ids, self._addresses = [ids[e] for e in self._engine], [addresses[e] for e in self._engine]

    def is_still(self, row: int, old: tuple[FallbackTarget, ...]) -> bool:
        """Say whether a row's fallback is what it was."""
        first, end = self._start[row], self._start[row + 1]
        if len(old) != end - first:
            return False
        # In C and without a new object each, since it is asked of every route in every tick.
        return (
            list(map(_PPM, old)) == self._ppm[first:end]
            and list(map(_ID, old)) == self._ids[first:end]
            and list(map(_ADDRESS, old)) == self._addresses[first:end]
        )

    def of(self, rows: Ints) -> Sequence[tuple[FallbackTarget, ...]]:
        """Give the fallbacks of rows, each sorted by engine; () where no engine may serve it."""
        start = self.near.start
        count = np.diff(start)[rows]
        ends = np.cumsum(count)
        at = np.repeat(start[rows] - (ends - count), count) + np.arange(int(count.sum()))
        return self.shared.of(np.append(0, ends), self.near.engine[at], self._shares[at])


class SharedTargets:
    """Makes the targets of routes; equal ones are one tuple. Lives for one tick.

    Clusters near each other have the same engines near them, and of a model that few engines serve all have.
    """

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._ids, self._addresses = [e.engine_id for e in engines], [e.address for e in engines]
        self._made: dict[bytes, tuple[FallbackTarget, ...]] = {}

    def of(self, start: Ints, engine: Ints, ppm: Ints) -> list[tuple[FallbackTarget, ...]]:
        """Give the targets of N routes, `start` (N + 1,) saying where each one's begin."""
        names = np.stack((engine, ppm), axis=1).astype(np.int32).tobytes()
        members: list[int] = engine.tolist()
        shares: list[int] = ppm.tolist()
        bounds: list[int] = start.tolist()
        ids, addresses = [self._ids[e] for e in members], [self._addresses[e] for e in members]
        found: list[tuple[FallbackTarget, ...]] = []
        for first, end in pairwise(bounds):
            name = names[8 * first : 8 * end]
            targets = self._made.get(name)
            if targets is None:
                own = slice(first, end)
                targets = self._made[name] = tuple(map(FallbackTarget, ids[own], addresses[own], shares[own]))
            found.append(targets)
        return found


def _nearest(layout: Layout) -> tuple[Ints, Ints, Floats]:
    """Give (row, engine, ms) of the nearest `MAX_TARGETS` engines of every row, sorted; of one site the lowest ids."""
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
    row, engine, ms = (
        np.repeat(of_pair, count)[by_distance],
        engine[by_distance],
        np.repeat(distance, count)[by_distance],
    )
    rank = np.arange(len(row)) - np.searchsorted(row, np.arange(len(layout.rows)))[row]
    near = rank < MAX_TARGETS
    row, engine, ms = row[near], engine[near], ms[near]
    order = np.argsort(row * engines + engine)
    return row[order], engine[order], ms[order]


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
