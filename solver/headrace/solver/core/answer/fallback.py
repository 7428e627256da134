"""The static fallback of each route: the engines it may use, in proportion to nominal capacity.

For the case that no snapshot has come for longer than its time to live. Load is even by construction, so no engine can
be overloaded before all are; the network is ignored but for which engines are kept where there are more than
`MAX_TARGETS`. Nominal capacity (without health factors) is used so that the fallback does not change from tick to tick.
"""

import numpy as np

from headrace.schemas.weights import FallbackTarget
from headrace.solver.core.answer.apportion import apportion
from headrace.solver.core.program.layout import Ints, Layout

MAX_TARGETS = 16
"""The fallback keeps the nearest this many engines."""


class Fallbacks:
    """The fallbacks of one layout, apportioned all at once, made into records only where they are asked for."""

    def __init__(self, layout: Layout) -> None:
        self._engines = layout.engines
        nominal = np.array([e.ready_replicas * e.capacity_rps_per_replica for e in layout.engines], dtype=np.float64)
        row, engine = _nearest(layout)
        self._start: list[int] = np.searchsorted(row, np.arange(len(layout.rows) + 1)).tolist()
        self._engine: list[int] = engine.tolist()
        self._ppm: list[int] = apportion(row, nominal[engine], engine, len(layout.rows)).tolist()

    def is_still(self, row: int, old: tuple[FallbackTarget, ...]) -> bool:
        """Say whether a row's fallback is what it was."""
        first, end = self._start[row], self._start[row + 1]
        if len(old) != end - first:
            return False
        return all(
            t.weight_ppm == self._ppm[i]
            and t.engine_id == (spec := self._engines[self._engine[i]]).engine_id
            and t.address == spec.address
            for i, t in enumerate(old, first)
        )

    def of(self, row: int) -> tuple[FallbackTarget, ...]:
        """Give a row's fallback, sorted by engine; () where no engine may serve it."""
        return tuple(
            FallbackTarget((spec := self._engines[self._engine[i]]).engine_id, spec.address, self._ppm[i])
            for i in range(self._start[row], self._start[row + 1])
        )


def _nearest(layout: Layout) -> tuple[Ints, Ints]:
    """Give (row, engine) of the nearest `MAX_TARGETS` engines of every row, sorted; of one site the lowest ids."""
    sizes = np.array([len(pool.engines) for pool in layout.pools], dtype=np.int64)
    members = np.array([e for pool in layout.pools for e in pool.engines], dtype=np.int64)
    count = sizes[layout.pair_pool]
    first = (np.cumsum(sizes) - sizes)[layout.pair_pool]
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    row, engine = np.repeat(layout.pair_row, count), members[np.repeat(first, count) + offset]
    by_distance = np.lexsort((engine, np.repeat(layout.pair_network, count), row))
    row, engine = row[by_distance], engine[by_distance]
    rank = np.arange(len(row)) - np.searchsorted(row, np.arange(len(layout.rows)))[row]
    near = rank < MAX_TARGETS
    row, engine = row[near], engine[near]
    order = np.lexsort((engine, row))
    return row[order], engine[order]
