"""The dual of a large program, smoothed: what pools are asked for at given prices, and how that bends with the prices.

    a row spreads over its ways as      (what the hub's pools hold) exp(-cost / t)
    a hub over its pools as             (what the pool holds) exp(-price / t)
    a keep stays by the logistic of     what leaving it would cost / t
    a chord is filled by the logistic of (price - slope) / (t + smoothing slope)

At temperature t = 0 and without smoothing these are the choices of the program itself. Weighed by what they hold, many
small pools draw no more than one large one of the same price. Entropic smoothing of transport: Cuturi 2013, "Sinkhorn
distances"; here with convex costs of the sinks.
"""

from dataclasses import dataclass, replace

import numpy as np

from headrace.solver.core.program.hubs import Hubs
from headrace.solver.core.program.layout import Floats, Ints, sums
from headrace.solver.core.program.sparse import Matrix, matrix

STEEP = 40.0
"""Exponents are cut here."""
THIN = 1e-3
"""Shares of a row below this bend nothing that counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The network's arcs by kind, nodes as indices of it; `weight` (L,) is the log of what a link's pool can hold."""

    way_row: Ints
    way_hub: Ints
    way_cost: Floats
    way_start: Ints
    link_hub: Ints
    link_pool: Ints
    weight: Floats
    keep_row: Ints
    keep_pool: Ints
    keep_cost: Floats
    keep_room: Floats
    chord_pool: Ints
    slope: Floats
    width: Floats
    demand: Floats
    refusal: Floats
    hubs: int
    pools: int

    def near(self, prices: Floats, most: float) -> "Parts":
        """Give the same without ways that are dearer at these prices than their row's cheapest by more."""
        lowest = np.full(self.hubs, np.inf)
        np.minimum.at(lowest, self.link_hub, prices[self.link_pool])
        near = self.ways(lowest)[1] <= most
        row = self.way_row[near]
        return replace(
            self,
            way_row=row,
            way_hub=self.way_hub[near],
            way_cost=self.way_cost[near],
            way_start=np.searchsorted(row, np.arange(len(self.demand))),
        )

    def ways(self, hub_price: Floats) -> tuple[Floats, Floats]:
        """Give each row's cheapest way, (R,), and how much dearer each way is, (W,)."""
        cost = self.way_cost + hub_price[self.way_hub]
        least = np.minimum.reduceat(cost, self.way_start)
        return least, cost - least[self.way_row]


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """The smoothed dual's slope and bend at some prices.

    `excess` (G,) is what pools are asked for above what they hold, RPS; `steep` (G,) how quickly a pool's own price
    changes that, RPS per ms. `times` gives how a change of all prices does: by a matrix that is symmetric and positive.
    """

    excess: Floats
    steep: Floats
    own: Floats
    bend: tuple[Matrix, Matrix] | None
    temperature: float

    def times(self, change: Floats) -> Floats:
        """Give how much less is asked for, RPS, if prices change by this, ms, (G,)."""
        if self.bend is None:
            return self.own * change
        together, spread = self.bend
        hub = together @ (spread @ change)
        return np.asarray(self.own * change - (spread.T @ hub) / self.temperature, dtype=np.float64)


def parts_of_network(hubs: Hubs) -> Parts:
    """Take a network apart."""
    ways, keeps, links, chords, sheds, _, _ = hubs.bounds
    arcs = hubs.arcs
    way, keep, link, chord = slice(ways, keeps), slice(keeps, links), slice(links, chords), slice(chords, sheds)
    link_pool, chord_pool = arcs.head[link] - hubs.first_pool, arcs.tail[chord] - hubs.first_pool
    held = sums(chord_pool, arcs.upper[chord], hubs.sizes[1])[link_pool]
    mean = float(held.sum()) / max(hubs.sizes[0], 1)
    return Parts(
        way_row=arcs.tail[way],
        way_hub=arcs.head[way] - hubs.first_hub,
        way_cost=arcs.cost[way],
        way_start=hubs.way_start[:-1],
        link_hub=arcs.tail[link] - hubs.first_hub,
        link_pool=link_pool,
        weight=np.log(np.maximum(held, 1e-9) / max(mean, 1e-9)),
        keep_row=arcs.tail[keep],
        keep_pool=arcs.head[keep] - hubs.first_pool,
        keep_cost=arcs.cost[keep],
        keep_room=arcs.upper[keep],
        chord_pool=chord_pool,
        slope=arcs.cost[chord],
        width=arcs.upper[chord],
        demand=arcs.supply[: len(hubs.rows)],
        refusal=arcs.cost[sheds : sheds + len(hubs.rows)],
        hubs=hubs.sizes[0],
        pools=hubs.sizes[1],
    )


def slope_at(parts: Parts, prices: Floats, t: float, smoothing: float, *, bend: bool) -> Slope:
    """Give slope and bend at prices (G,) ms and temperature t ms; without `bend`, `times` knows only own prices."""
    drawn = parts.weight - prices[parts.link_pool] / t
    most = np.full(parts.hubs, -np.inf)
    np.maximum.at(most, parts.link_hub, drawn)
    part = np.exp(np.maximum(drawn - most[parts.link_hub], -STEEP))
    of_hub = sums(parts.link_hub, part, parts.hubs)
    part /= of_hub[parts.link_hub]
    least, gap = parts.ways(-t * (most + np.log(of_hub)))
    share = np.exp(np.maximum(-gap / t, -STEEP))
    total = np.add.reduceat(share, parts.way_start) + np.exp(np.clip((least - parts.refusal) / t, -STEEP, STEEP))
    share /= total[parts.way_row]
    kept, leaving = _kept(parts, prices, least - t * np.log(total), t)
    left = parts.demand - sums(parts.keep_row, kept, len(parts.demand))
    flow = share * np.maximum(left, 0.0)[parts.way_row]
    into = sums(parts.way_hub, flow, parts.hubs)[parts.link_hub] * part
    asked = sums(parts.link_pool, into, parts.pools) + sums(parts.keep_pool, kept, parts.pools)
    held, rise = _held(parts, prices, t, smoothing)
    squared = sums(parts.way_hub, flow * share, parts.hubs)[parts.link_hub] * part * part
    rest = leaving / t + rise + 1e-9
    asking = sums(parts.link_pool, into, parts.pools) / t
    own = asking + rest
    # A row that has one way asks for the same at any price: what is left of it is rounding, and may be less than none.
    steep = rest + np.maximum(asking - sums(parts.link_pool, squared, parts.pools) / t, 0.0)
    return Slope(asked - held, steep, own, _bend(parts, part, share, flow) if bend else None, t)


def _bend(parts: Parts, part: Floats, share: Floats, flow: Floats) -> tuple[Matrix, Matrix]:
    """Give how ways of one row change together, (H, H), and how hubs are spread over pools, (H, G)."""
    counts = np.flatnonzero(share > THIN)
    row, hub, size = parts.way_row[counts], parts.way_hub[counts], (len(parts.demand), parts.hubs)
    together = matrix(row, hub, flow[counts], size).T @ matrix(row, hub, share[counts], size)
    return together, matrix(parts.link_hub, parts.link_pool, part, (parts.hubs, parts.pools))


def _held(parts: Parts, prices: Floats, t: float, smoothing: float) -> tuple[Floats, Floats]:
    """Give what pools hold at these prices, RPS, and how much more per ms."""
    width = t + smoothing * parts.slope
    filled = 1.0 / (1.0 + np.exp(-np.clip((prices[parts.chord_pool] - parts.slope) / width, -STEEP, STEEP)))
    rise = parts.width * filled * (1.0 - filled) / width
    return sums(parts.chord_pool, parts.width * filled, parts.pools), sums(parts.chord_pool, rise, parts.pools)


def _kept(parts: Parts, prices: Floats, open_: Floats, t: float) -> tuple[Floats, Floats]:
    """Give what stays where it was, (K,) RPS, and how much of it is about to leave pools, (G,) RPS."""
    saved = open_[parts.keep_row] - parts.keep_cost - prices[parts.keep_pool]
    stays = 1.0 / (1.0 + np.exp(-np.clip(saved / t, -STEEP, STEEP)))
    room = sums(parts.keep_row, parts.keep_room, len(parts.demand))
    fits = np.divide(parts.demand, room, out=np.ones_like(room), where=room > parts.demand)
    kept = parts.keep_room * fits[parts.keep_row] * stays
    return kept, sums(parts.keep_pool, kept * (1.0 - stays), parts.pools)
