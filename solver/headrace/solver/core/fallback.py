"""The static fallback of a route: every engine it may use, in proportion to nominal capacity.

For the case that no snapshot has come for longer than its time to live. Load is even by construction, so no engine can
be overloaded before all are; the network is ignored but for which engines are kept where there are more than
`MAX_TARGETS`. Nominal capacity (without health factors) is used so that the fallback does not change from tick to tick.
"""

import numpy as np

from headrace.schemas.weights import FallbackTarget
from headrace.solver.core.apportion import apportion
from headrace.solver.core.layout import Layout

MAX_TARGETS = 32
"""The fallback keeps the nearest this many engines."""


class Fallbacks:
    """The fallback of each row of one layout. Rows with the same engines share one tuple."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._by_engines: dict[tuple[int, ...], tuple[FallbackTarget, ...]] = {}

    def of(self, row: int) -> tuple[FallbackTarget, ...]:
        """Give a row's fallback, sorted by engine; () where no engine may serve it."""
        pairs = self._layout.pairs_of(row)
        pools: list[int] = self._layout.pair_pool[pairs].tolist()
        if sum(len(self._layout.pools[g].engines) for g in pools) > MAX_TARGETS:
            pools = self._layout.pair_pool[pairs][np.argsort(self._layout.pair_network[pairs], kind="stable")].tolist()
        key = tuple(pools)
        if key not in self._by_engines:
            self._by_engines[key] = self._make(key)
        return self._by_engines[key]

    def _make(self, pools: tuple[int, ...]) -> tuple[FallbackTarget, ...]:
        chosen = sorted([i for g in pools for i in self._layout.pools[g].engines][:MAX_TARGETS])
        engines = [self._layout.engines[i] for i in chosen]
        nominal = np.array([e.ready_replicas * e.capacity_rps_per_replica for e in engines], dtype=np.float64)
        ppm = apportion(np.zeros(len(chosen), dtype=np.int64), nominal, np.arange(len(chosen)), 1)
        return tuple(FallbackTarget(e.engine_id, e.address, int(p)) for e, p in zip(engines, ppm, strict=True))
