"""A network's flow -> flow of rows to pools: what a hub takes in is handed out to its links in order.

The first row fills the first pool, what is left of it goes to the second, and so on (north-west corner): as few pools
per row as there can be, and of many answers that cost the same always the same one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What a network says of its layout: flow of pairs that have any, shedding and prices of rows, prices of pools."""

    pairs: Ints
    flow: Floats
    rows: Ints
    shed: Floats
    row_price: Floats
    pools: Ints
    pool_price: Floats


def read_back(layout: Layout, hubs: "Hubs", sifted: "Sifted") -> Share:
    """Read a network's answer: its numbers of pairs, rows and pools are the layout's."""
    ways, keeps, links, chords, sheds, shed_keeps, _ = hubs.bounds
    arcs, values = hubs.arcs, sifted.values
    way, pool, amount = hand_out(
        arcs.head[ways:keeps] - hubs.first_hub,
        values[ways:keeps],
        arcs.tail[links:chords] - hubs.first_hub,
        values[links:chords],
    )
    row, of_pool = hubs.rows[arcs.tail[way]], hubs.pools[(arcs.head[links:chords] - hubs.first_pool)[pool]]
    moved = np.searchsorted(layout.pair_key, row * len(layout.pools) + of_pool)
    stayed = np.flatnonzero(values[keeps:links])
    pairs, at = np.unique(np.concatenate((moved, hubs.keep_pair[stayed])), return_inverse=True)
    flow = sums(at, np.concatenate((amount, values[keeps:links][stayed])), len(pairs))
    shed = values[sheds:shed_keeps].copy()
    shed[hubs.shed_keep] += values[shed_keeps:]
    prices = sifted.prices
    return Share(
        pairs=pairs,
        flow=flow,
        rows=hubs.rows,
        shed=shed,
        row_price=prices[: len(hubs.rows)].copy(),
        pools=hubs.pools,
        pool_price=prices[hubs.first_pool :].copy(),
    )


def put_together(layout: Layout, costs: "Costs", shares: Sequence[Share]) -> tuple[Floats, Floats, Prices]:
    """Give flow (P,), shedding (R,) and prices of a layout; rows that are in no network are shed."""
    flow, shed, row_price = np.zeros(len(layout.pair_row)), layout.demand.copy(), costs.shed.copy()
    pool_price = np.zeros(len(layout.pools))
    for share in shares:
        flow[share.pairs] = share.flow
        shed[share.rows], row_price[share.rows] = share.shed, share.row_price
        pool_price[share.pools] = share.pool_price
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
