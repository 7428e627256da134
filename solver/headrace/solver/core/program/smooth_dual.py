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
from headrace.solver.core.program.sparse import Matrix, rising_matrix

STEEP = 40.0
"""Exponents are cut here."""
THIN = 1e-3
"""Shares of a row below this bend nothing that counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The network's arcs by kind, nodes as indices of it.

    `weight` (L,) is the log of what a link's pool can hold; `keep_most` (K,) what can stay of what was there: of a row
    no more than its demand.
    """

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
    keep_most: Floats
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
        # Picking by number is several times quicker than by mask.
        near = np.flatnonzero(self.ways(lowest)[1] <= most)
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
        cost = hub_price.take(self.way_hub)
        cost += self.way_cost
        least = np.minimum.reduceat(cost, self.way_start)
        cost -= least.take(self.way_row)
        return least, cost


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
        keep_most=_keep_most(arcs.tail[keep], arcs.upper[keep], arcs.supply[: len(hubs.rows)]),
        chord_pool=chord_pool,
        slope=arcs.cost[chord],
        width=arcs.upper[chord],
        demand=arcs.supply[: len(hubs.rows)],
        refusal=arcs.cost[sheds : sheds + len(hubs.rows)],
        hubs=hubs.sizes[0],
        pools=hubs.sizes[1],
    )


def _keep_most(row: Ints, room: Floats, demand: Floats) -> Floats:
    of_row = sums(row, room, len(demand))
    return room * np.divide(demand, of_row, out=np.ones_like(of_row), where=of_row > demand)[row]


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What is asked for at some prices.

    Of each link the share of its hub's flow, (L,); of each way that of its row's, and the flow, (W,); what is kept, and
    its share of what may stay, (K,); what links draw, (L,), and pools are asked for, (G,).
    """

    part: Floats
    share: Floats
    flow: Floats
    kept: Floats
    stays: Floats
    into: Floats
    of_pools: Floats


def excess_at(parts: Parts, prices: Floats, t: float, smoothing: float) -> Floats:
    """Give what pools are asked for above what they hold, (G,) RPS, at prices (G,) ms and temperature t ms."""
    filled, _ = _filled(parts, prices, t, smoothing)
    held = sums(parts.chord_pool, parts.width * filled, parts.pools)
    return _asked(parts, prices, t).of_pools - held


def slope_at(parts: Parts, prices: Floats, t: float, smoothing: float, *, bend: bool) -> Slope:
    """Give slope and bend at prices (G,) ms and temperature t ms; without `bend`, `times` knows only own prices."""
    asked = _asked(parts, prices, t)
    filled, width = _filled(parts, prices, t, smoothing)
    held = sums(parts.chord_pool, parts.width * filled, parts.pools)
    rise = sums(parts.chord_pool, parts.width * filled * (1.0 - filled) / width, parts.pools)
    leaving = sums(parts.keep_pool, asked.kept * (1.0 - asked.stays), parts.pools)
    squared = sums(parts.way_hub, asked.flow * asked.share, parts.hubs).take(parts.link_hub) * asked.part * asked.part
    rest = leaving / t + rise + 1e-9
    asking = sums(parts.link_pool, asked.into, parts.pools) / t
    own = asking + rest
    # A row that has one way asks for the same at any price: what is left of it is rounding, and may be less than none.
    steep = rest + np.maximum(asking - sums(parts.link_pool, squared, parts.pools) / t, 0.0)
    both = _bend(parts, asked.part, asked.share, asked.flow) if bend else None
    return Slope(asked.of_pools - held, steep, own, both, t)


def _asked(parts: Parts, prices: Floats, t: float) -> _Asked:
    drawn = parts.weight - prices.take(parts.link_pool) / t
    most = np.full(parts.hubs, -np.inf)
    np.maximum.at(most, parts.link_hub, drawn)
    part = np.exp(np.maximum(drawn - most.take(parts.link_hub), -STEEP))
    of_hub = sums(parts.link_hub, part, parts.hubs)
    part /= of_hub.take(parts.link_hub)
    least, share = parts.ways(-t * (most + np.log(of_hub)))
    # In place, since there are many ways: each gap becomes a share.
    share /= -t
    np.exp(np.maximum(share, -STEEP, out=share), out=share)
    total = np.add.reduceat(share, parts.way_start) + np.exp(np.clip((least - parts.refusal) / t, -STEEP, STEEP))
    share /= total.take(parts.way_row)
    kept, stays = _kept(parts, prices, least - t * np.log(total), t)
    left = parts.demand - sums(parts.keep_row, kept, len(parts.demand))
    flow = np.maximum(left, 0.0).take(parts.way_row)
    flow *= share
    into = sums(parts.way_hub, flow, parts.hubs).take(parts.link_hub) * part
    of_pools = sums(parts.link_pool, into, parts.pools) + sums(parts.keep_pool, kept, parts.pools)
    return _Asked(part, share, flow, kept, stays, into, of_pools)


def _bend(parts: Parts, part: Floats, share: Floats, flow: Floats) -> tuple[Matrix, Matrix]:
    """Give how ways of one row change together, (H, H), and how hubs are spread over pools, (H, G)."""
    counts = np.flatnonzero(share > THIN)
    row, hub, size = parts.way_row[counts], parts.way_hub[counts], (len(parts.demand), parts.hubs)
    together = rising_matrix(row, hub, flow[counts], size).T @ rising_matrix(row, hub, share[counts], size)
    return together, rising_matrix(parts.link_hub, parts.link_pool, part, (parts.hubs, parts.pools))


def _filled(parts: Parts, prices: Floats, t: float, smoothing: float) -> tuple[Floats, Floats]:
    """Give the share of each chord that is filled at these prices, (Y,), and over how many ms it fills."""
    width = t + smoothing * parts.slope
    above = prices.take(parts.chord_pool)
    above -= parts.slope
    above /= width
    return _logistic(above), width


def _kept(parts: Parts, prices: Floats, open_: Floats, t: float) -> tuple[Floats, Floats]:
    """Give what stays where it was, RPS, and its share of what may, (K,)."""
    saved = open_.take(parts.keep_row) - parts.keep_cost - prices.take(parts.keep_pool)
    stays = _logistic(saved / t)
    return parts.keep_most * stays, stays


def _logistic(x: Floats) -> Floats:
    """Give 1 / (1 + exp(-x)), in the place of x."""
    np.clip(x, -STEEP, STEEP, out=x)
    np.exp(np.negative(x, out=x), out=x)
    x += 1.0
    return np.divide(1.0, x, out=x)
