"""A network's flow -> flow of rows to pools: what a hub takes in is handed out to its links in order.

The first row fills the first pool, what is left of it goes to the second, and so on (north-west corner): as few pools
per row as there can be, and of many answers that cost the same always the same one.
"""

from typing import TYPE_CHECKING

import numpy as np

from headrace.solver.core.program.layout import Floats, Ints, Layout, sums
from headrace.solver.core.program.plan import Prices

if TYPE_CHECKING:
    from headrace.solver.core.program.hubs import Hubs
    from headrace.solver.core.program.program import Costs
    from headrace.solver.core.program.sifting import Sifted

SLIVER = 1e-12
"""A match shorter than this share of its hub is rounding."""


def read_back(layout: Layout, costs: "Costs", hubs: "Hubs", sifted: "Sifted") -> tuple[Floats, Floats, Prices]:
    """Give flow (P,), shedding (R,) and prices of a layout; rows outside the network are shed."""
    ways, keeps, links, chords, sheds, shed_keeps, _ = hubs.bounds
    arcs, values = hubs.arcs, sifted.values
    way, pool, amount = hand_out(
        arcs.head[ways:keeps] - hubs.first_hub,
        values[ways:keeps],
        arcs.tail[links:chords] - hubs.first_hub,
        values[links:chords],
    )
    key = hubs.pair_way.astype(np.int64)
    key *= len(layout.pools)
    key += layout.pair_pool
    order = np.argsort(key, kind="stable")
    wanted = way * len(layout.pools) + (arcs.head[links:chords] - hubs.first_pool)[pool]
    pair = order[np.searchsorted(key[order], wanted)]
    flow = sums(pair, amount, len(layout.pair_row))
    flow[hubs.keep_pair] += values[keeps:links]
    shed, row_price, pool_price = layout.demand.copy(), costs.shed.copy(), np.zeros(len(layout.pools))
    shed[hubs.rows] = values[sheds:shed_keeps]
    shed[hubs.rows[hubs.shed_keep]] += values[shed_keeps:]
    row_price[hubs.rows] = sifted.prices[: len(hubs.rows)]
    pool_price[:] = sifted.prices[hubs.first_pool :]
    return flow, shed, Prices(row_price, pool_price)


def hand_out(source_hub: Ints, sent: Floats, sink_hub: Ints, taken: Floats) -> tuple[Ints, Ints, Floats]:
    """Match what sources send with what sinks take, hub by hub, each in their order.

    Args:
        source_hub: (S,) in any order.
        sent: (S,) RPS.
        sink_hub: (T,) rising.
        taken: (T,) RPS; of each hub what is sent, but for rounding.

    Returns:
        source, sink and amount of each match, amounts above 0; they add up to what is sent.
    """
    size = int(max(source_hub.max(initial=-1), sink_hub.max(initial=-1))) + 1
    sinks = np.flatnonzero(taken > 0.0)
    out = sums(sink_hub[sinks], taken[sinks], size)
    sources = np.flatnonzero((sent > 0.0) & (out[source_hub] > 0.0))
    sources = sources[np.argsort(source_hub[sources], kind="stable")]
    into = sums(source_hub[sources], sent[sources], size)
    sinks = sinks[into[sink_hub[sinks]] > 0.0]
    if not len(sources):
        return sources, sinks[:0], np.zeros(0)
    # Every hub is a stretch of length 1, so that its small rows do not drown in the sum of all hubs.
    end_sent = _ends(source_hub[sources], sent[sources], into)
    end_taken = _ends(sink_hub[sinks], taken[sinks], out)
    cuts = np.union1d(end_sent, end_taken)
    length = np.diff(cuts, prepend=0.0)
    middle = cuts - length / 2.0
    i, j = np.searchsorted(end_sent, middle), np.searchsorted(end_taken, middle)
    real = length > SLIVER
    i, j, length = i[real], j[real], length[real]
    return sources[i], sinks[j], length * into[source_hub[sources[i]]]


def _ends(hub: Ints, amount: Floats, total: Floats) -> Floats:
    """Give where each amount ends: hubs that have any lie behind each other, each of them 1 long."""
    running = np.cumsum(amount / total[hub])
    last = np.append(hub[1:] != hub[:-1], np.True_)
    stretch = np.cumsum(np.append(0, last[:-1]))
    # Exactly 1 at the end of each, whatever the sum rounds to.
    before = np.append(0.0, running[last])[stretch]
    return np.where(last, stretch + 1.0, np.minimum(stretch + (running - before), stretch + 1.0))
