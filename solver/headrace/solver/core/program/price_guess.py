"""Prices of all pools at once, nearly right: where the program of a large fleet is worth looking at closely.

Ascent of the smoothed dual. At prices p every row spreads its demand over its ways by exp(-cost / temperature) (a keep
stays by the logistic of what leaving it would cost, demand is shed where that is cheaper), every pool is as loaded as
its chords say at p, and p moves by what a pool is asked for above that, over the slope of both (Jacobi, damped). The
temperature falls from 30 ms to 1. A matter of numpy over 10^5 ways, a few milliseconds a step; prices come out right to
some milliseconds, relative to each other, which is all that `sifting` asks of them.

Entropic smoothing of transport: Cuturi 2013, "Sinkhorn distances"; here with convex costs of the sinks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from headrace.solver.core.program.hubs import Hubs
from headrace.solver.core.program.layout import Floats, Ints, Layout, sums

COLD = (30.0,) * 4 + (15.0,) * 4 + (8.0,) * 5 + (4.0,) * 6 + (2.0,) * 8 + (1.0,) * 12
"""Temperatures of the steps, ms, where nothing is known."""
WARM = (8.0,) * 3 + (4.0,) * 4 + (2.0,) * 5 + (1.0,) * 8
"""The same where the last tick's prices are."""
DAMPING = 0.8
SMOOTHING = 0.15
"""How far a chord's slope is smeared, relative to it: a supply without steps, or prices would never settle."""
FAR = 12.0
"""Ways dearer than a row's cheapest by this many temperatures carry nothing that counts."""
SLACK = 40.0
"""They are still looked at where they are within this many ms more: prices are on their way."""
STEEP = 40.0
"""Exponents are cut here."""


def prices_before(layout: Layout) -> Floats:
    """Give each pool's price in the newest of the previous records that name one, (G,); NaN where none does."""
    pool_of = {e.engine_id: g for e, g in zip(layout.engines, layout.engine_pool.tolist(), strict=True) if g >= 0}
    known = [
        (route, work)
        for key, work in zip(layout.row_key, layout.row_work.tolist(), strict=True)
        if (route := layout.previous.get(key)) is not None
    ]
    # The last of equals wins, and all of one version agree.
    known.sort(key=lambda each: each[0].version)
    newest = {
        t.engine_id: (i, ms / work)
        for i, (route, work) in enumerate(known)
        for t in route.targets
        if (ms := t.engine_price_ms) is not None
    }
    told = [(i, ms, g) for name, (i, ms) in newest.items() if (g := pool_of.get(name)) is not None]
    price = np.full(len(layout.pools), np.nan)
    for _, ms, g in sorted(told, key=itemgetter(0)):
        price[g] = ms
    return price


def guess_prices(hubs: Hubs, before: Floats) -> Floats:
    """Give a price for each pool, ms, (G,); `before` are last tick's, NaN where there is none."""
    known = np.isfinite(before)
    level = _level(hubs)
    if not known.any():
        return _ascend(hubs, np.full(len(before), level), COLD)
    return _ascend(hubs, np.where(known, before, np.minimum(level, float(np.median(before[known])))), WARM)


def _level(hubs: Hubs) -> float:
    """Give the price at which all chords together hold all demand."""
    _, _, _, chords, _, _, _ = hubs.bounds
    slope, width = (values[chords : chords + hubs.sizes[5]] for values in (hubs.arcs.cost, hubs.arcs.upper))
    if not len(slope):
        return 0.0
    order = np.argsort(slope, kind="stable")
    held = np.cumsum(width[order])
    at = int(np.searchsorted(held, min(float(hubs.arcs.supply.sum()), 0.98 * float(held[-1]))))
    return float(slope[order][min(at, len(slope) - 1)])


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The network's arcs by kind, with nodes as indices of their kind."""

    way_row: Ints
    way_hub: Ints
    way_cost: Floats
    way_start: Ints
    link_hub: Ints
    link_pool: Ints
    keep_row: Ints
    keep_pool: Ints
    keep_cost: Floats
    keep_room: Floats
    chord_pool: Ints
    slope: Floats
    width: Floats
    demand: Floats
    refusal: Floats

    def near(self, gap: Floats, most: float) -> "_Parts":
        """Give the same without ways that are dearer than their row's cheapest by more."""
        near = gap <= most
        row = self.way_row[near]
        return replace(
            self,
            way_row=row,
            way_hub=self.way_hub[near],
            way_cost=self.way_cost[near],
            way_start=np.searchsorted(row, np.arange(len(self.demand))),
        )


def _parts(hubs: Hubs) -> _Parts:
    ways, keeps, links, chords, sheds, _, _ = hubs.bounds
    arcs = hubs.arcs
    way, keep, link, chord = slice(ways, keeps), slice(keeps, links), slice(links, chords), slice(chords, sheds)
    return _Parts(
        way_row=arcs.tail[way],
        way_hub=arcs.head[way] - hubs.first_hub,
        way_cost=arcs.cost[way],
        way_start=hubs.way_start[:-1],
        link_hub=arcs.tail[link] - hubs.first_hub,
        link_pool=arcs.head[link] - hubs.first_pool,
        keep_row=arcs.tail[keep],
        keep_pool=arcs.head[keep] - hubs.first_pool,
        keep_cost=arcs.cost[keep],
        keep_room=arcs.upper[keep],
        chord_pool=arcs.tail[chord] - hubs.first_pool,
        slope=arcs.cost[chord],
        width=arcs.upper[chord],
        demand=arcs.supply[: len(hubs.rows)],
        refusal=arcs.cost[sheds : sheds + len(hubs.rows)],
    )


def _ascend(hubs: Hubs, prices: Floats, temperatures: Sequence[float]) -> Floats:
    parts, last = _parts(hubs), np.inf
    for temperature in temperatures:
        if temperature < last:
            gap = _way_costs(parts, _hub_prices(hubs, parts, prices))[1]
            parts, last = parts.near(gap, FAR * temperature + SLACK), temperature
        prices = prices + _step(hubs, parts, prices, temperature)
    return prices


def _hub_prices(hubs: Hubs, parts: _Parts, prices: Floats) -> Floats:
    price = np.full(hubs.sizes[0], np.inf)
    np.minimum.at(price, parts.link_hub, prices[parts.link_pool])
    return price


def _way_costs(parts: _Parts, hub_price: Floats) -> tuple[Floats, Floats]:
    """Give each row's cheapest way, and how much dearer each way is."""
    cost = parts.way_cost + hub_price[parts.way_hub]
    least = np.minimum.reduceat(cost, parts.way_start)
    return least, cost - least[parts.way_row]


def _step(hubs: Hubs, parts: _Parts, prices: Floats, t: float) -> Floats:
    hub_count, pool_count = hubs.sizes[0], hubs.sizes[1]
    lowest = _hub_prices(hubs, parts, prices)
    weight = np.exp(np.maximum((lowest[parts.link_hub] - prices[parts.link_pool]) / t, -STEEP))
    of_hub = sums(parts.link_hub, weight, hub_count)
    part = weight / of_hub[parts.link_hub]
    least, gap = _way_costs(parts, lowest - t * np.log(of_hub))
    share = np.exp(np.maximum(-gap / t, -STEEP))
    refused = np.exp(np.clip((least - parts.refusal) / t, -STEEP, STEEP))
    total = np.add.reduceat(share, parts.way_start) + refused
    share /= total[parts.way_row]
    open_ = least - t * np.log(total)
    kept, stays = _kept(parts, prices, open_, t)
    left = parts.demand - sums(parts.keep_row, kept, len(parts.demand))
    flow = share * np.maximum(left, 0.0)[parts.way_row]
    into = sums(parts.way_hub, flow, hub_count)
    squared = sums(parts.way_hub, flow * share, hub_count)
    asked = sums(parts.link_pool, into[parts.link_hub] * part, pool_count) + sums(parts.keep_pool, kept, pool_count)
    bend = sums(parts.link_pool, into[parts.link_hub] * part - squared[parts.link_hub] * part * part, pool_count)
    bend += sums(parts.keep_pool, kept * (1.0 - stays), pool_count)
    width = t + SMOOTHING * parts.slope
    filled = 1.0 / (1.0 + np.exp(-np.clip((prices[parts.chord_pool] - parts.slope) / width, -STEEP, STEEP)))
    held = sums(parts.chord_pool, parts.width * filled, pool_count)
    rise = sums(parts.chord_pool, parts.width * filled * (1.0 - filled) / width, pool_count)
    step = DAMPING * (asked - held) / (bend / t + rise + 1e-9)
    longest = np.maximum(3.0 * t, 0.2 * np.abs(prices)) if t >= COLD[0] else 3.0 * t
    return np.clip(step, -longest, longest)


def _kept(parts: _Parts, prices: Floats, open_: Floats, t: float) -> tuple[Floats, Floats]:
    """Give what stays where it was, RPS, and the share of it that does."""
    saved = open_[parts.keep_row] - parts.keep_cost - prices[parts.keep_pool]
    stays = 1.0 / (1.0 + np.exp(-np.clip(saved / t, -STEEP, STEEP)))
    room = sums(parts.keep_row, parts.keep_room, len(parts.demand))
    fits = np.divide(parts.demand, room, out=np.ones_like(room), where=room > parts.demand)
    return parts.keep_room * fits[parts.keep_row] * stays, stays
