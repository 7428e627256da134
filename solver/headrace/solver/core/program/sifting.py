"""A large program solved exactly by looking at few of its columns: sifting, with arcs fixed by their reduced costs.

    1  prices of the pools, nearly right                                              `price_guess`
    2  arcs whose reduced cost at these prices is far from 0 are fixed at a bound; a row left with one open arc sends
       all it has there; what remains open is a small program, solved by GLOP
    3  its duals price every arc of the whole network: those that are fixed at the wrong bound are opened; back to 2

It ends when no arc is at the wrong bound: then the answer is the optimum of the whole program, and the caller proves it
by the optimality conditions of the whole. Nothing depends on the guess but how long it takes, and which of several
equally good answers is found. Bixby et al. 1992, "Very large-scale linear programming", call it sifting.
"""

from dataclasses import dataclass

import numpy as np

from headrace.solver.core.linear import Failed
from headrace.solver.core.program.hubs import Arcs, Bools, Hubs
from headrace.solver.core.program.layout import Floats, Ints, sums
from headrace.solver.core.program.restricted import Answer, Open, Solve, hub_prices, restricted

CONTESTED = 0.3
"""Share of the rows that are left open between ways at first: those for which the second best is nearest."""
NARROWER = 0.25
"""How much closer to the price an arc must be from the second program on, when the prices are those of a program."""
FEW = 0.03
"""Share of rows with an arc at the wrong bound, above which the windows are not narrowed yet."""
NARROW_ROUNDS = 3
"""From then on arcs are only opened, so that it ends."""
MAX_ROUNDS = 20
EXACT = 1e-7
"""A reduced cost this far on the wrong side is rounding, ms."""


CLOSE = 0.1
"""Chords whose slope is within this share of their pool's price are open."""


@dataclass(frozen=True, slots=True, eq=False)
class Sifted:
    """The optimum of a network: (A,) flow of its arcs, (N,) prices of its nodes; and how many programs it took."""

    values: Floats
    prices: Floats
    rounds: int


def sift(hubs: Hubs, pool_prices: Floats, solve: Solve) -> Sifted | Failed:
    """Solve the whole network, beginning with these prices of its pools."""
    arcs, stays = hubs.arcs, stays_of(hubs)
    prices = node_prices(hubs, stays, pool_prices)
    cost = reduced(arcs, prices)
    window = _window(hubs, prices, cost)
    open_ = _opened(hubs, prices, cost, window)
    for round_ in range(1, MAX_ROUNDS + 1):
        answer = restricted(hubs, open_, prices, solve)
        if isinstance(answer, Failed):
            return answer
        cost = reduced(arcs, answer.prices)
        below, above = (cost < -EXACT) & (answer.values < arcs.upper), (cost > EXACT) & (answer.values > 0.0)
        wrong = (below | above) & ~open_.arcs
        if not (wrong.any() or answer.stretched.any()):
            return Sifted(answer.values, answer.prices, round_)
        open_ = _next(hubs, open_, answer, cost, (wrong, window, round_))
        # Where the first program had to shed, its prices say how narrow it was, and the guess is nearer.
        if round_ > 1 or not _sheds(hubs, answer):
            # From these the next program's simplex has no arc below its price, and little left to do.
            prices = node_prices(hubs, stays, answer.prices[hubs.first_pool :])
    return Failed(f"SIFTING_UNFINISHED after {MAX_ROUNDS} programs")


def reduced(arcs: Arcs, prices: Floats) -> Floats:
    """Give the reduced cost of each arc, (A,): what a unit more of it would cost at these prices."""
    cost: Floats = prices.take(arcs.tail)
    np.subtract(arcs.cost, cost, out=cost)
    cost += np.append(prices, 0.0).take(arcs.head)
    return cost


@dataclass(frozen=True, slots=True, eq=False)
class Stays:
    """Arcs on which something stays where it was, sent or shed: (B,), with the row and the room of each.

    `enough` (R,) are rows that they can hold whole. `many` are those of the B that are not the only one of their row.
    """

    arcs: Ints
    row: Ints
    room: Floats
    enough: Bools
    many: Ints


def stays_of(hubs: Hubs) -> Stays:
    """Find what may stay of a network: once, since neither rooms nor demand change while it is sifted."""
    _, keeps, links, _, _, shed_keeps, end = hubs.bounds
    arcs, rows = hubs.arcs, len(hubs.rows)
    bounded = np.concatenate((np.arange(keeps, links), np.arange(shed_keeps, end)))
    row, room = arcs.tail[bounded], arcs.upper[bounded]
    enough = sums(row, room, rows) >= arcs.supply[:rows]
    return Stays(bounded, row, room, enough, np.flatnonzero(np.bincount(row, minlength=rows)[row] > 1))


def node_prices(hubs: Hubs, stays: Stays, pool: Floats) -> Floats:
    """Give the prices of all nodes where pools cost this: a hub its cheapest link, a row its last RPS."""
    ways, keeps, _, _, sheds, shed_keeps, _ = hubs.bounds
    arcs, rows = hubs.arcs, len(hubs.rows)
    prices = np.concatenate((np.zeros(rows), hub_prices(hubs, pool), pool))
    way = prices.take(arcs.head[ways:keeps])
    way += arcs.cost[ways:keeps]
    cheapest = np.minimum(np.minimum.reduceat(way, hubs.way_start[:-1]), arcs.cost[sheds:shed_keeps])
    # What was there before goes first, the cheapest first; the dearest of it that is needed makes the price.
    cost = arcs.cost[stays.arcs] + np.append(prices, 0.0)[arcs.head[stays.arcs]]
    dearest = np.full(rows, -np.inf)
    dearest[stays.row] = cost
    many = stays.many[np.lexsort((cost[stays.many], stays.row[stays.many]))]
    row, room = stays.row[many], stays.room[many]
    dearest[row] = -np.inf
    before = np.cumsum(room) - room
    needed = before - before[np.searchsorted(row, row)] < arcs.supply[row]
    np.maximum.at(dearest, row[needed], cost[many][needed])
    prices[:rows] = np.where(stays.enough, np.minimum(cheapest, dearest), cheapest)
    return prices


def _window(hubs: Hubs, prices: Floats, cost: Floats) -> float:
    """Give the gap within which a way is open: such that `CONTESTED` of the rows have a second one there.

    `cost` are the reduced costs at these prices, (A,), here and below.
    """
    ways, keeps, *_ = hubs.bounds
    gap = cost[ways:keeps]
    scale = 1e-6 * (1.0 + float(np.abs(prices).max(initial=0.0)))
    second = np.minimum.reduceat(np.where(gap > scale, gap, np.inf), hubs.way_start[:-1])
    contested = float(np.quantile(np.minimum(second, np.finfo(np.float64).max / 4), CONTESTED))
    return min(max(contested, scale), 1e3 * scale + float(hubs.way_network.max(initial=0.0)))


def _opened(hubs: Hubs, prices: Floats, cost: Floats, window: float) -> Open:
    """Open what is near its price, and fill what is far below it."""
    _, _, links, chords, sheds, _, _ = hubs.bounds
    arcs = hubs.arcs
    open_ = np.abs(cost) <= window
    open_[links:chords] = True
    price = prices[arcs.tail[chords:sheds]]
    open_[chords:sheds] = np.abs(cost[chords:sheds]) <= CLOSE * np.abs(price) + 4.0 * window
    return Open(open_, (cost < 0.0) & ~open_ & np.isfinite(arcs.upper))


def _sheds(hubs: Hubs, answer: Answer) -> bool:
    return float(answer.values[hubs.bounds[4] :].sum()) > EXACT * float(hubs.arcs.supply.sum())


def _best(hubs: Hubs, cost: Floats, window: float) -> Bools:
    """Say of ways whether they are among the cheapest of their row, (A,), of other arcs yes.

    Of a row that had to be shed every way looks too cheap, at a price that no better program gives.
    """
    ways, keeps, *_ = hubs.bounds
    best = np.ones(len(hubs.arcs.tail), dtype=np.bool_)
    cost = cost[ways:keeps]
    least = np.minimum.reduceat(cost, hubs.way_start[:-1])
    best[ways:keeps] = cost <= least[hubs.arcs.tail[ways:keeps]] + window
    return best


def _next(hubs: Hubs, open_: Open, answer: Answer, cost: Floats, found: tuple[Bools, float, int]) -> Open:
    """Open what is at the wrong bound; and close again what these better prices show to be far.

    `found` is what is wrong, (A,), the window, and of which round that is.
    """
    (wrong, window, round_), arcs, rows = found, hubs.arcs, len(hubs.rows)
    _, _, _, chords, sheds, _, _ = hubs.bounds
    row_wrong = np.zeros(len(arcs.supply), dtype=np.bool_)
    row_wrong[arcs.tail[wrong]] = True
    if round_ <= NARROW_ROUNDS and int(row_wrong[:rows].sum()) <= FEW * rows:
        near = _opened(hubs, answer.prices, cost, NARROWER * window)
        between = (answer.values > 0.0) & (answer.values < arcs.upper)
        wider = near.arcs | between
    else:
        wider = open_.arcs | ((np.abs(cost) <= NARROWER * window) & row_wrong[arcs.tail])
        wrong = wrong & _best(hubs, cost, window)
        wider[chords:sheds] |= _opened(hubs, answer.prices, cost, NARROWER * window).arcs[chords:sheds]
    wider |= wrong
    wider[chords:sheds] |= answer.stretched[arcs.tail[chords:sheds] - hubs.first_pool]
    at_top = (answer.values >= arcs.upper) & np.isfinite(arcs.upper)
    return Open(wider, at_top & ~wider)
