"""Which engines a route may not use, with reasons: what goes into a route's `excluded`.

Listed are the engines that serve the route's model and may not take its traffic. A route that no engine at all may
serve lists every engine, as the certificate of why it is refused, up to `MAX_LISTED`.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import Excluded
from headrace.solver.core.problem import Row
from headrace.solver.core.program.eligibility import network_exclusion, row_exclusion
from headrace.solver.core.program.layout import Layout

Bools = npt.NDArray[np.bool_]
MAX_LISTED = 500
"""Bound on one route's list: a record stays well below a topic's largest message."""


class Refusals:
    """The excluded engines of each row of one layout. Rows that ask for the same share one tuple."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._serving: dict[str, list[int]] = {}
        for i, engine in enumerate(layout.engines):
            for model in engine.models:
                self._serving.setdefault(model, []).append(i)
        self._by_wish: dict[int, tuple[Excluded, ...]] = {}
        self._all_sites = sorted({engine.site for engine in layout.engines})
        self._no_way: dict[str, frozenset[str]] = {}
        self._sites = {model: sorted({layout.engines[i].site for i in at}) for model, at in self._serving.items()}

    def of_all(self) -> list[tuple[Excluded, ...]]:
        """Give the same for every row."""
        layout = self._layout
        apart = np.array([bool(self._unlinked(cluster)) for cluster in layout.asked.clusters], dtype=np.bool_)
        by_itself: Bools = apart[layout.asked.cluster] | (np.diff(layout.row_start) == 0)
        wishes: list[int] = layout.asked.wish.tolist()
        alone: list[bool] = by_itself.tolist()
        # Rows of one wish that reach every site share what they may not use.
        first = dict(zip(reversed(wishes), range(len(wishes) - 1, -1, -1), strict=True))
        known = {wish: self.of(row) for wish, row in first.items() if not alone[row]}
        return [self.of(row) if alone[row] or wish not in known else known[wish] for row, wish in enumerate(wishes)]

    def of(self, row: int) -> tuple[Excluded, ...]:
        """Give the engines that a row may not use, sorted by id."""
        pairs = self._layout.pairs_of(row)
        asked = self._layout.rows[row]
        serving = self._serving.get(asked.route.model, [])
        if pairs.start == pairs.stop:
            return self._list(asked, range(min(len(self._layout.engines), MAX_LISTED)))
        unlinked = self._unlinked(asked.route.cluster)
        if unlinked and not unlinked.isdisjoint(self._sites.get(asked.route.model, ())):
            return self._list(asked, serving)
        wish = int(self._layout.asked.wish[row])
        found = self._by_wish.get(wish)
        if found is None:
            found = self._by_wish[wish] = self._list(asked, serving)
        return found

    def _unlinked(self, cluster: str) -> frozenset[str]:
        """Give the sites to which a cluster has no known way."""
        if cluster not in self._no_way:
            problem = self._layout.problem
            self._no_way[cluster] = frozenset(s for s in self._all_sites if network_exclusion(problem, cluster, s))
        return self._no_way[cluster]

    def _list(self, row: Row, engines: Sequence[int]) -> tuple[Excluded, ...]:
        listed, unlinked = list[Excluded](), self._unlinked(row.route.cluster)
        for i in engines:
            engine = self._layout.engines[i]
            # A fault of the engine is worth more to a reader than an unknown link to it.
            found = row_exclusion(row, engine) or self._layout.exclusions[i]
            if found is None and engine.site in unlinked:
                found = network_exclusion(self._layout.problem, row.route.cluster, engine.site)
            if found is not None:
                listed.append(Excluded(engine.engine_id, found.reason, found.sentence))
        return tuple(listed[:MAX_LISTED])
