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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.solver.core.linear import LinearProgram
from headrace.solver.core.program.chord_columns import chord_columns
from headrace.solver.core.program.layout import Floats, Ints, Layout
from headrace.solver.core.program.plan import Curves
from headrace.solver.core.program.program import Costs
from headrace.solver.core.program.sparse import component_labels, compressed_arcs

Bools = npt.NDArray[np.bool_]
OUT = -1
BATCH = 8000
"""Ways of components that may be solved together: a program of its own for each of very many would be all overhead."""


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
    """The network of a layout's rows that ask for something and may be served.

    Nodes are R rows, then H hubs, then all G pools. Arcs are W ways, K keeps, L links, Y chords, R sheds, S kept sheds.

    Attributes:
        arcs: the network.
        rows: (R,) the layout's.
        way_start: (R + 1,) where each row's ways begin.
        way_network: (W,) round trip, ms.
        pair_way: (P,) the way of each of the layout's pairs; `OUT` where its row is not here.
        keep_pair: (K,) the layout's pair that each keep is for.
        shed_keep: (S,) rows, of these R, that were shed before.
        sizes: (H, G, W, K, L, Y).
        apart: (N,) number of the batch that each node is of: a few components of the whole network, `BATCH` ways.
    """

    arcs: Arcs
    rows: Ints
    way_start: Ints
    way_network: Floats
    pair_way: Ints
    keep_pair: Ints
    shed_keep: Ints
    sizes: tuple[int, int, int, int, int, int]
    apart: Ints

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
        return tuple(np.cumsum([0, w, k, links, y, len(self.rows), len(self.shed_keep)]).tolist())


def hubs_of(layout: Layout, curves: Curves, costs: Costs) -> Hubs:
    """Build the network."""
    pair = np.flatnonzero(layout.demand[layout.pair_row] > 0.0)
    # Pairs are sorted by row, so a row begins where the number changes.
    of_pair = layout.pair_row[pair]
    begins = np.append(np.True_, of_pair[1:] != of_pair[:-1])[: len(pair)]
    rows, row = of_pair[begins], np.cumsum(begins) - 1
    hub, hub_count = _hub_of(layout, pair)
    # Pools are sorted by site first, so a row's hubs rise with its pairs.
    first = np.ones(len(pair), dtype=np.bool_)
    first[1:] = (hub[1:] != hub[:-1]) | (row[1:] != row[:-1])
    pair_way = np.full(len(layout.pair_row), OUT, dtype=np.int64)
    pair_way[pair] = np.cumsum(first) - 1
    linked = np.zeros((hub_count, len(layout.pools)), dtype=np.bool_)
    linked[hub, layout.pair_pool[pair]] = True
    link_hub, link_pool = np.nonzero(linked)
    way_row, way_hub, way_network = row[first], hub[first], layout.pair_network[pair[first]]
    kept = (layout.pair_previous[pair] > 0.0) & (costs.move[pair] > 0.0)
    keep_pair = pair[kept]
    chords = chord_columns(layout, curves, np.arange(len(layout.group_profile)))
    demand, shed_before = layout.demand[rows], layout.row_warm_shed[rows]
    shed_keep = np.flatnonzero((shed_before > 0.0) & (costs.shed_move[rows] > 0.0))
    r, h = len(rows), hub_count
    pool, at = r + h, np.arange(r)
    arcs = _joined(
        np.concatenate((demand, np.zeros(h + len(layout.pools)))),
        # tail, head, cost, upper bound: of ways, keeps, links, chords, sheds, kept sheds
        (way_row, r + way_hub, way_network + costs.move[pair[first]], np.inf),
        (
            row[kept],
            pool + layout.pair_pool[keep_pair],
            layout.pair_network[keep_pair],
            layout.pair_warm[keep_pair],
        ),
        (r + link_hub, pool + link_pool, 0.0, np.inf),
        (pool + np.repeat(layout.group_pool, chords.count), OUT, chords.slope, chords.width),
        (at, OUT, (costs.shed + costs.shed_move)[rows], demand),
        (shed_keep, OUT, costs.shed[rows[shed_keep]], shed_before[shed_keep]),
    )
    return Hubs(
        arcs=arcs,
        rows=rows,
        way_start=np.searchsorted(way_row, np.arange(r + 1)),
        way_network=way_network,
        pair_way=pair_way,
        keep_pair=keep_pair,
        shed_keep=shed_keep,
        sizes=(h, len(layout.pools), len(way_row), len(keep_pair), len(link_hub), len(chords.slope)),
        apart=_apart(arcs, way_row),
    )


def _joined(supply: Floats, *kinds: tuple[Ints, Ints | int, Floats | float, Floats | float]) -> Arcs:
    """Put the arcs of each kind one after another; a single head, cost or bound is that of the whole kind."""
    whole = [tuple(np.broadcast_to(of, len(kind[0])) for of in kind) for kind in kinds]
    tail, head, cost, upper = (np.concatenate(column) for column in zip(*whole, strict=True))
    return Arcs(tail, head, cost, upper, supply)


def _apart(arcs: Arcs, way_row: Ints) -> Ints:
    """Number components of the network in the order of their first node, those with few ways together."""
    inner = arcs.head != OUT
    label = component_labels(arcs.tail[inner], arcs.head[inner], len(arcs.supply))
    ways = np.bincount(label[way_row], minlength=int(label.max(initial=-1)) + 1)
    batch = (np.cumsum(ways) - ways) // BATCH
    return np.asarray(batch[label], dtype=np.int64)


def _hub_of(layout: Layout, pair: Ints) -> tuple[Ints, int]:
    """Give the hub of each pair: numbered by what its row asks for, then by site."""
    asks: dict[tuple[str, tuple[str, ...], tuple[str, ...]], int] = {}
    ask = np.array(
        [asks.setdefault((r.route.model, r.requires, r.residency), len(asks)) for r in layout.rows], dtype=np.int64
    )
    sites = {site: i for i, site in enumerate(sorted({pool.site for pool in layout.pools}))}
    site = np.array([sites[pool.site] for pool in layout.pools], dtype=np.int64)
    key = ask[layout.pair_row[pair]] * len(sites) + site[layout.pair_pool[pair]]
    used = np.zeros(len(asks) * len(sites), dtype=np.bool_)
    used[key] = True
    number = np.cumsum(used) - 1
    return number[key], int(used.sum())
