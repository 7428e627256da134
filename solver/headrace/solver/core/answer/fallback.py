"""The static fallback of each route: the engines it may use, in proportion to nominal capacity.

For the case that no snapshot has come for longer than its time to live. Load is even by construction, so no engine can
be overloaded before all are; the network is ignored but for which engines are kept where there are more than
`MAX_TARGETS`. Nominal capacity (without health factors) is used so that the fallback does not change from tick to tick.

Pins hold here as well: an engine that is pinned to nothing is in none, one that is pinned to at most some share has no
more of it, as long as another one is there to take the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import FallbackTarget
from headrace.solver.core.answer.apportion import apportion
from headrace.solver.core.problem import Engine
from headrace.solver.core.program.layout import Floats, Ints, Layout
from headrace.solver.core.program.parts import pairs_of_rows
from headrace.solver.core.program.pins import pairs_at_nothing, pins_of
from headrace.solver.core.program.records_before import places

Bools = npt.NDArray[np.bool_]
MAX_TARGETS = 16
"""The fallback keeps the nearest this many engines."""


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """The nearest engines of N routes, sorted by route and engine.

    Where each route's begin (N + 1,); of each engine (T,) which it is, how far (ms), and its share of the fallback.
    """

    start: Ints
    engine: Ints
    distance: Floats
    ppm: Ints


class Fallbacks:
    """The fallbacks of one layout's routes; those of many rows are reckoned at once.

    Attributes:
        shared: makes the targets.
    """

    def __init__(self, layout: Layout) -> None:
        self.shared = SharedTargets(layout.engines)
        self._layout = layout
        nominal = [e.ready_replicas * e.capacity_rps_per_replica for e in layout.engines]
        self._nominal: Floats = np.array(nominal, dtype=np.float64)
        self._sizes: Ints = np.array([min(len(pool.engines), MAX_TARGETS) for pool in layout.pools], dtype=np.int64)
        of_pools = [e for pool in layout.pools for e in pool.engines[:MAX_TARGETS]]
        self._members: Ints = np.array(of_pools, dtype=np.int64)
        pins = pins_of(layout)
        self._closed: Bools | None = pairs_at_nothing(layout) if pins else None
        self._most = np.ones(len(layout.pair_row))
        self._most[pins.pair] = pins.most
        names = layout.records.names
        of_engines = [names.get((e.engine_id, e.address), -1) for e in layout.engines]
        self._names: Ints = np.array(of_engines, dtype=np.int64)

    def near(self, rows: Ints) -> Near:
        """Give the nearest `MAX_TARGETS` engines of each of the rows; of one site the lowest ids."""
        layout, sizes, engines = self._layout, self._sizes, max(len(self._layout.engines), 1)
        line, pair = _near_pairs(layout, sizes, rows, self._closed)
        pool, ms = layout.pair_pool[pair], layout.pair_network[pair]
        count, first = sizes[pool], (np.cumsum(sizes) - sizes)[pool]
        offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        engine = self._members[np.repeat(first, count) + offset]
        # Pairs come by row and distance; engines of one distance are sorted by id.
        further = np.append(np.True_, (line[1:] != line[:-1]) | (ms[1:] != ms[:-1]))[: len(pair)]
        by_distance = np.argsort(np.repeat(np.cumsum(further), count) * engines + engine, kind="stable")
        line, engine, distance = np.repeat(line, count), engine[by_distance], np.repeat(ms, count)[by_distance]
        most = np.repeat(self._most[pair], count)[by_distance]
        near = np.arange(len(line)) - np.searchsorted(line, np.arange(len(rows)))[line] < MAX_TARGETS
        line, engine, distance, most = line[near], engine[near], distance[near], most[near]
        order = np.argsort(line * engines + engine)
        line, engine = line[order], engine[order]
        ppm = apportion(line, _at_most(line, self._nominal[engine], most[order]), engine, len(rows))
        return Near(np.searchsorted(line, np.arange(len(rows) + 1)), engine, distance[order], ppm)

    def are_still(self, near: Near, rows: Ints) -> Bools:
        """Say of each of the rows, with these engines near, whether its fallback is what it was, (N,)."""
        before = self._layout.records
        old, count, now = before.fallback, before.fallback.count[rows], np.diff(near.start)
        same: Bools = np.asarray(count == now, dtype=np.bool_)
        line = np.flatnonzero(same)
        was, here = old.places_of(rows[line]), places(near.start[line], now[line])
        off = old.columns["name"][was] != self._names[near.engine[here]]
        off |= old.columns["ppm"][was] != near.ppm[here]
        same[np.repeat(line, now[line])[off]] = False
        return same

    def of(self, near: Near) -> Sequence[tuple[FallbackTarget, ...]]:
        """Give the fallbacks of routes, each sorted by engine; () where no engine may serve it."""
        return self.shared.of(near.start, near.engine, near.ppm)


class SharedTargets:
    """Makes the targets of routes; equal ones are one tuple. Lives for one tick.

    Clusters near each other have the same engines near them, and of a model that few engines serve all have.
    """

    def __init__(self, engines: Sequence[Engine]) -> None:
        # Arrays of objects: names of many engines are picked out of them at once.
        self._ids = np.array([e.engine_id for e in engines], dtype=np.object_)
        self._addresses = np.array([e.address for e in engines], dtype=np.object_)
        self._made: dict[bytes, tuple[FallbackTarget, ...]] = {}
        self._numbers: dict[int, int] = {}

    def names_of(self, engine: Ints) -> tuple[list[str], list[str | None]]:
        """Give the ids and the addresses of engines by their indices."""
        return self._ids[engine].tolist(), self._addresses[engine].tolist()

    def of(self, start: Ints, engine: Ints, ppm: Ints) -> list[tuple[FallbackTarget, ...]]:
        """Give the targets of N routes, `start` (N + 1,) saying where each one's begin."""
        names = np.stack((engine, ppm), axis=1).astype(np.int32).tobytes()
        told: list[int] = ppm.tolist()
        # Half of the numbers come again: one object each stands for all of them, as long as the snapshot does.
        shares = list(map(self._numbers.setdefault, told, told))
        bounds: list[int] = start.tolist()
        ids, addresses = self.names_of(engine)
        found: list[tuple[FallbackTarget, ...]] = []
        for first, end in pairwise(bounds):
            name = names[8 * first : 8 * end]
            targets = self._made.get(name)
            if targets is None:
                own = slice(first, end)
                targets = self._made[name] = tuple(map(FallbackTarget, ids[own], addresses[own], shares[own]))
            found.append(targets)
        return found


def _at_most(line: Ints, weight: Floats, most: Floats) -> Floats:
    """Give weights (T,) that are of no more than `most` of their line's; what is taken off, the others share."""
    size = int(line.max(initial=-1)) + 1
    bounded = most < 1.0
    if not bounded.any():
        return weight
    share = weight / np.maximum(np.bincount(line, weight, minlength=size), np.finfo(np.float64).tiny)[line]
    held = np.where(bounded, np.minimum(share, most), 0.0)
    free = np.where(bounded, 0.0, share)
    left, others = (np.bincount(line, part, minlength=size)[line] for part in (held, free))
    held += np.divide(free * (1.0 - left), others, out=np.zeros_like(free), where=others > 0.0)
    return held


def _near_pairs(layout: Layout, sizes: Ints, rows: Ints, closed: Bools | None) -> tuple[Ints, Ints]:
    """Give the pairs that can hold any of a row's nearest engines, and which of the rows, by row and distance.

    `closed` are those that may take nothing, (P,); None for none.
    """
    count = np.diff(layout.row_start)[rows]
    # One line per row, filled up with what is infinitely far: sorting short lines is far quicker than one long list.
    there = np.arange(int(count.max(initial=0))) < count[:, None]
    pair, distance = np.zeros(there.shape, dtype=np.int64), np.full(there.shape, np.inf)
    pair[there] = pairs_of_rows(layout, rows)
    distance[there] = layout.pair_network[pair[there]]
    if closed is not None:
        distance[there] = np.where(closed[pair[there]], np.inf, distance[there])
    order = np.argsort(distance, axis=1, kind="stable")
    distance, pair = np.take_along_axis(distance, order, axis=1), np.take_along_axis(pair, order, axis=1)
    there = np.isfinite(distance)
    engines = np.where(there, sizes[layout.pair_pool[pair]], 0) if len(layout.pair_row) else pair
    wanted = there & (np.cumsum(engines, axis=1) - engines < MAX_TARGETS)
    last = np.where(wanted, distance, -np.inf).max(axis=1, initial=-np.inf)
    line, place = np.nonzero(there & (distance <= last[:, None]))
    return line, pair[line, place]
