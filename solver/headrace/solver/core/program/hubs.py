"""The program of a tick as a network of flow, with a hub between the rows and the pools of one site.

    row ──way──► hub ──link──► pool ──chord──► out        way: network + pi        chord: slope, up to its width
     │ └────────keep──────────►  │                        keep: network, up to what was there
     └──────────shed───────────────────────────► out      shed: P[tier] + pi, the part that was shed before P[tier]

A hub stands for the pools that rows with the same wishes reach at one site. The network is priced by site, so a request
that moves goes to whichever of them is cheapest, and one way stands for a pair with each: of 200 clusters, 5,000
engines and 100 models, a third of the engines serving two, 200,000 ways in place of 530,000 pairs, and no ties between
them. It is the same optimum: what a hub takes in may be split over its links in any manner.

Every arc leaves a node, and ends in one or outside (`OUT`); what leaves a node less what enters it is its supply.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.solver.core.linear import LinearProgram
from headrace.solver.core.program.chord_columns import chord_columns
from headrace.solver.core.program.layout import Floats, Ints, Layout
from headrace.solver.core.program.parts import Part, pairs_of_rows, parts_of
from headrace.solver.core.program.plan import Curves
from headrace.solver.core.program.program import Costs
from headrace.solver.core.program.sparse import compressed_arcs

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int32]
"""Of rows, hubs or pairs: there are never more than some millions of them."""
OUT = -1


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """A network: (A,) arcs with tail, head (or `OUT`), cost in ms, upper bound in RPS; (N,) supplies of its nodes."""

    tail: Ints
    head: Ints
    cost: Floats
    upper: Floats
    supply: Floats

    def program(self, near: Floats | None = None) -> LinearProgram:
        """Give the linear program: one row per node, one column per arc; `near` are prices that may be right, (N,)."""
        row_start, columns, coefficients = compressed_arcs(self.tail, self.head, len(self.supply))
        return LinearProgram(
            self.cost, np.zeros_like(self.upper), self.upper, self.supply, row_start, columns, coefficients, near
        )


@dataclass(frozen=True, slots=True, eq=False)
class Hubs:
    """The network of a layout's rows that ask for something and may be served, or of a stretch of its parts.

    Nodes are R rows, then H hubs, then G pools. Arcs are W ways, K keeps, L links, Y chords, R sheds, S kept sheds.

    Attributes:
        arcs: the network.
        rows: (R,) the layout's, rising.
        pools: (G,) the layout's, rising.
        way_start: (R + 1,) where each row's ways begin.
        way_network: (W,) round trip, ms.
        keep_pair: (K,) the layout's pair that each keep is for.
        shed_keep: (S,) rows, of these R, that were shed before.
        sizes: (H, G, W, K, L, Y).
    """

    arcs: Arcs
    rows: Ints
    pools: Ints
    way_start: Ints
    way_network: Floats
    keep_pair: Ints
    shed_keep: Ints
    sizes: tuple[int, int, int, int, int, int]

    @property
    def first_hub(self) -> int:
        """Node of the first hub."""
        return len(self.rows)

    @property
    def first_pool(self) -> int:
        """Node of the first pool."""
        return len(self.rows) + self.sizes[0]

    @property
    def bounds(self) -> tuple[int, ...]:
        """Where ways, keeps, links, chords, sheds and kept sheds begin, and the end."""
        _, _, w, k, links, y = self.sizes
        return tuple(accumulate((w, k, links, y, len(self.rows), len(self.shed_keep)), initial=0))


def hubs_of(layout: Layout, curves: Curves, costs: Costs, stretch: Sequence[Part] | None = None) -> Hubs:
    """Build the network of some of a layout's parts; without any named of all of it, with pools that nobody reaches.

    Pairs are many, and all of this stands beside two snapshots: their numbers are of 32 bits on the way, and columns
    are filled in their place.
    """
    parts_here = parts_of(layout) if stretch is None else stretch
    rows = _rising([part.rows for part in parts_here])
    pools = _rising([part.pools for part in parts_here]) if stretch is not None else np.arange(len(layout.pools))
    pair = _numbers(pairs_of_rows(layout, rows))
    row = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(layout.row_start)[rows])
    pool_at = np.full(len(layout.pools), OUT, dtype=np.int32)
    pool_at[pools] = np.arange(len(pools))
    pool_of = pool_at.take(layout.pair_pool.take(pair))
    hub, hub_count = _hub_of(layout, (rows, row), (pools, pool_of))
    # Pools are sorted by site first, so a row's hubs rise with its pairs.
    begins = np.ones(len(pair), dtype=np.bool_)
    begins[1:] = (hub[1:] != hub[:-1]) | (row[1:] != row[:-1])
    first = np.flatnonzero(begins)
    link_hub, link_pool = _links(hub, pool_of, (hub_count, len(pools)))
    way_pair, way_row, way_hub = pair[first], row[first], hub[first]
    kept = _kept(layout, costs, pair)
    keep_pair, keep_row = pair[kept].astype(np.int64), row[kept]
    del pair, row, hub, pool_of, begins, first, kept
    groups: Ints = np.flatnonzero(pool_at[layout.group_pool] != OUT)
    chords = chord_columns(layout, curves, groups)
    shed_keep = np.flatnonzero((layout.row_warm_shed[rows] > 0.0) & (costs.shed_move[rows] > 0.0))
    r, h = len(rows), hub_count
    pool, way_network = r + h, layout.pair_network[way_pair]
    parts = _Columns((len(way_row), len(keep_pair), len(link_hub), len(chords.slope), r, len(shed_keep)))
    chord_pool = pool + np.repeat(pool_at[layout.group_pool[groups]], chords.count)
    arcs = Arcs(
        tail=parts.ints((way_row, keep_row, r + link_hub, chord_pool, np.arange(r), shed_keep)),
        head=parts.ints((way_hub + r, pool + pool_at[layout.pair_pool[keep_pair]], pool + link_pool, OUT, OUT, OUT)),
        cost=parts.floats(
            (
                way_network,
                layout.pair_network[keep_pair],
                0.0,
                chords.slope,
                (costs.shed + costs.shed_move)[rows],
                costs.shed[rows[shed_keep]],
            )
        ),
        upper=parts.floats(
            (
                np.inf,
                layout.pair_warm[keep_pair],
                np.inf,
                chords.width,
                layout.demand[rows],
                layout.row_warm_shed[rows[shed_keep]],
            )
        ),
        supply=np.concatenate((layout.demand[rows], np.zeros(h + len(pools)))),
    )
    arcs.cost[: len(way_row)] += costs.move[way_pair]
    return Hubs(
        arcs=arcs,
        rows=rows,
        pools=pools,
        way_start=np.searchsorted(way_row, np.arange(r + 1, dtype=np.int32)),
        way_network=way_network,
        keep_pair=keep_pair,
        shed_keep=shed_keep,
        sizes=(h, len(pools), len(way_row), len(keep_pair), len(link_hub), len(chords.slope)),
    )


def _kept(layout: Layout, costs: Costs, pair: Numbers) -> Ints:
    """Give which of these pairs had traffic that it costs something to move."""
    had = np.flatnonzero(layout.pair_previous[pair] > 0.0)
    return had[costs.move[pair[had]] > 0.0]


def _rising(members: Sequence[Ints]) -> Ints:
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *members]))


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns over arcs, put together of parts of these sizes; a part may be one value for all of its arcs."""

    sizes: tuple[int, ...]

    def ints(self, parts: Sequence[Numbers | Ints | int]) -> Ints:
        """Give a column of numbers."""
        return self._filled(np.empty(sum(self.sizes), dtype=np.int64), parts)

    def floats(self, parts: Sequence[Floats | float]) -> Floats:
        """Give a column of values."""
        return self._filled(np.empty(sum(self.sizes)), parts)

    def _filled(self, column: npt.NDArray[Any], parts: Sequence[npt.ArrayLike]) -> npt.NDArray[Any]:
        begin = 0
        for part, size in zip(parts, self.sizes, strict=True):
            column[begin : begin + size] = part
            begin += size
        return column


def _numbers(of: npt.NDArray[np.integer[Any]]) -> Numbers:
    return of.astype(np.int32)


def _links(hub: Numbers, pool: Numbers, size: tuple[int, int]) -> tuple[Ints, Ints]:
    """Give hub and pool of each link, rising."""
    linked = np.zeros(size[0] * size[1], dtype=np.bool_)
    linked[hub.astype(np.int64) * size[1] + pool] = True
    link_hub, link_pool = np.divmod(np.flatnonzero(linked), max(size[1], 1))
    return link_hub, link_pool


def _hub_of(layout: Layout, rows: tuple[Ints, Numbers], pools: tuple[Ints, Numbers]) -> tuple[Numbers, int]:
    """Give the hub of each pair: numbered by what its row asks for, then by site.

    Rows and pools are the layout's, rising, and which of them each pair is of.
    """
    (row, of_row), (pool, of_pool) = rows, pools
    numbers: list[int] = pool.tolist()
    names = [layout.pools[g].site for g in numbers]
    sites = {site: i for i, site in enumerate(sorted(set(names)))}
    site = np.array([sites[name] for name in names], dtype=np.int32)
    key = (_numbers(layout.asked.wish[row]) * np.int32(len(sites))).take(of_row)
    key += site.take(of_pool)
    used = np.zeros(len(layout.asked.wishes) * len(sites), dtype=np.bool_)
    used[key] = True
    number = np.cumsum(used, dtype=np.int32) - 1
    return number.take(key), int(used.sum())
