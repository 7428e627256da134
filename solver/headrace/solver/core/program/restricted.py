"""A network with most of its arcs fixed at a bound, solved: what remains open is a small program.

    a row with one open arc sends all it has there, and is no part of the program
    chords that are not open are joined into two: one that may give back what is held below the open ones, and one that
    may hold more above them; a pool may also take in more than it holds, and a row be shed

So no small program is infeasible. Where a joined chord is used, the pool's other chords are not where they were thought
to be: it is `stretched`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headrace.solver.core.linear import Failed, LinearProgram, Solution
from headrace.solver.core.program.hubs import OUT, Arcs, Bools, Hubs
from headrace.solver.core.program.layout import Floats, Ints, sums
from headrace.solver.core.program.sparse import component_labels

Solve = Callable[[Sequence[LinearProgram]], Sequence[Solution] | Failed]

WHOLE, BATCH = 10_000, 4000
"""A program of so many arcs is solved as it is; of a longer one small components together, some `BATCH` at a time."""
SOME = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """Which arcs are open, (A,); of those that are not, which are at their upper bound. Links are always open."""

    arcs: Bools
    full: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Flow of the arcs, (A,), prices of the nodes, (N,), and which pools would go beyond their open chords, (G,)."""

    values: Floats
    prices: Floats
    stretched: Bools


def restricted(hubs: Hubs, open_: Open, near: Floats, solve: Solve) -> Answer | Failed:
    """Solve the network with what is not open fixed at its bound; `near` are prices of nodes to begin at, (N,)."""
    values, loose, only = _sent(hubs, open_)
    arcs, (_, _, _, chords, sheds, _, _) = hubs.arcs, hubs.bounds
    column, joined = np.flatnonzero(loose), _joined(hubs, open_)
    fixed = np.flatnonzero(values != 0.0)
    inner = fixed[arcs.head[fixed] != OUT]
    nodes = len(arcs.supply)
    supply = arcs.supply - sums(arcs.tail[fixed], values[fixed], nodes) + sums(arcs.head[inner], values[inner], nodes)
    small = Arcs(
        np.concatenate((arcs.tail[column], joined.tail)),
        np.concatenate((arcs.head[column], np.full(len(joined.tail), OUT))),
        np.concatenate((arcs.cost[column], joined.cost)),
        np.concatenate((arcs.upper[column], joined.upper)),
        supply,
    )
    solved = _solve_parts(small, near, solve)
    if isinstance(solved, Failed):
        return solved
    found, prices = solved
    values[column] = found[: len(column)]
    chord = slice(chords, sheds)
    values[chord] = np.where(open_.full[chord] & ~open_.arcs[chord], arcs.upper[chord], values[chord])
    _price(hubs, prices, values, only)
    return Answer(values, prices, _stretched(hubs, joined, found[len(column) :]))


def hub_prices(hubs: Hubs, pool: Floats) -> Floats:
    """Give the price of each hub, (H,): that of its cheapest pool."""
    _, _, links, chords, *_ = hubs.bounds
    price, link = np.full(hubs.sizes[0], np.inf), slice(links, chords)
    np.minimum.at(price, hubs.arcs.tail[link] - hubs.first_hub, pool[hubs.arcs.head[link] - hubs.first_pool])
    return price


def _sent(hubs: Hubs, open_: Open) -> tuple[Floats, Bools, Ints]:
    """Give the flow of fixed arcs but chords, (A,); which arcs stay open, (A,); and the only ones of their rows."""
    arcs, rows, (_, _, links, _, sheds, _, _) = hubs.arcs, len(hubs.rows), hubs.bounds
    of_row = np.ones(len(arcs.tail), dtype=np.bool_)
    of_row[links:sheds] = False
    values = np.where(open_.full & of_row, arcs.upper, 0.0)
    full = np.flatnonzero(values != 0.0)
    beyond = sums(arcs.tail[full], values[full], rows) > arcs.supply[:rows]
    undone = full[beyond[arcs.tail[full]]]
    values[undone] = 0.0
    loose = open_.arcs.copy()
    loose[undone] = True
    full = np.flatnonzero(values != 0.0)
    left = arcs.supply[:rows] - sums(arcs.tail[full], values[full], rows)
    may = np.flatnonzero(loose & of_row)
    room = np.zeros(rows)
    room[arcs.tail[may]] = arcs.upper[may]
    alone = (np.bincount(arcs.tail[may], minlength=rows) == 1) & (room >= left)
    only = may[alone[arcs.tail[may]]]
    values[only] = left[arcs.tail[only]]
    loose[only] = False
    contested = np.flatnonzero(~alone)
    values[sheds + contested] = 0.0
    loose[sheds + contested] = True
    return values, loose, only


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """Joined chords of pools: (J,) nodes, costs and widths; `low` and `high` of them are what their names say."""

    tail: Ints
    cost: Floats
    upper: Floats
    low: int
    high: int


def _joined(hubs: Hubs, open_: Open) -> _Joined:
    arcs, (_, _, _, chords, sheds, shed_keeps, _) = hubs.arcs, hubs.bounds
    chord = slice(chords, sheds)
    pool, slope, width = arcs.tail[chord] - hubs.first_pool, arcs.cost[chord], arcs.upper[chord]
    closed, full = ~open_.arcs[chord], open_.full[chord]
    pools = hubs.sizes[1]
    low, high = np.flatnonzero(closed & full), np.flatnonzero(closed & ~full)
    dearest, cheapest = np.full(pools, -np.inf), np.full(pools, np.inf)
    np.maximum.at(dearest, pool[low], slope[low])
    np.minimum.at(cheapest, pool[high], slope[high])
    below, above = np.flatnonzero(np.isfinite(dearest)), np.flatnonzero(np.isfinite(cheapest))
    # Dearer than any shedding, or the two would be a tie.
    refusal = 2.0 * float(arcs.cost[sheds:shed_keeps].max(initial=1.0))
    return _Joined(
        tail=hubs.first_pool + np.concatenate((below, above, np.arange(pools))),
        cost=np.concatenate((dearest[below], cheapest[above], np.full(pools, refusal))),
        upper=np.concatenate(
            (
                sums(pool[low], width[low], pools)[below],
                sums(pool[high], width[high], pools)[above],
                np.full(pools, np.inf),
            )
        ),
        low=len(below),
        high=len(above),
    )


def _stretched(hubs: Hubs, joined: _Joined, used: Floats) -> Bools:
    stretched = np.zeros(hubs.sizes[1], dtype=np.bool_)
    some = used > SOME * (1.0 + hubs.arcs.supply.max(initial=0.0))
    some[: joined.low] = used[: joined.low] < joined.upper[: joined.low] * (1.0 - SOME)
    stretched[joined.tail[some] - hubs.first_pool] = True
    return stretched


def _price(hubs: Hubs, prices: Floats, values: Floats, only: Ints) -> None:
    """Give nodes that are no part of the program, or at its edge, the prices that the network implies."""
    arcs, (_, _, _, chords, sheds, _, _) = hubs.arcs, hubs.bounds
    pool = slice(hubs.first_pool, None)
    # Of an idle pool a program may say anything below what its first request would cost.
    first = np.full(hubs.sizes[1], np.inf)
    np.minimum.at(first, arcs.tail[chords:sheds] - hubs.first_pool, arcs.cost[chords:sheds])
    used = sums(arcs.tail[chords:sheds] - hubs.first_pool, values[chords:sheds], hubs.sizes[1]) > 0.0
    prices[pool] = np.where(used, prices[pool], first)
    prices[hubs.first_hub : hubs.first_pool] = hub_prices(hubs, prices[pool])
    outside = np.append(prices, 0.0)
    prices[arcs.tail[only]] = arcs.cost[only] + outside[arcs.head[only]]


def _solve_parts(small: Arcs, near: Floats, solve: Solve) -> tuple[Floats, Floats] | Failed:
    """Solve a network, in parts where it is long; give flows and prices, 0 of nodes without arcs."""
    nodes, inner = len(small.supply), small.head != OUT
    if len(small.tail) <= WHOLE:
        part = np.zeros(nodes, dtype=np.int64)
    else:
        label = component_labels(small.tail[inner], small.head[inner], nodes)
        part = _batches(np.bincount(label[small.tail], minlength=int(label.max(initial=-1)) + 1))[label]
    used = np.zeros(nodes, dtype=np.bool_)
    used[small.tail] = True
    used[small.head[inner]] = True
    touched = np.flatnonzero(used)
    arcs, node = _by_batch(part[small.tail]), _by_batch(part[touched])
    node = _Batches(touched[node.order], node.start)
    programs = _programs(small, near, arcs, node)
    solved = solve(programs)
    if isinstance(solved, Failed):
        return solved
    values, prices = np.zeros(len(small.tail)), np.zeros(nodes)
    if programs:
        found = np.concatenate([solution.values for solution in solved])
        values[arcs.order] = np.clip(found, 0.0, small.upper[arcs.order])
        prices[node.order] = np.concatenate([solution.duals for solution in solved])
    return values, prices


@dataclass(frozen=True, slots=True, eq=False)
class _Batches:
    """Members of B batches, `order` by batch and rising in each; `start` (B + 1,) is where each one's begin."""

    order: Ints
    start: Ints


def _programs(small: Arcs, near: Floats, arcs: _Batches, node: _Batches) -> list[LinearProgram]:
    """Give the programs of batches of arcs and nodes: put together behind each other, and cut apart."""
    number = np.full(len(small.supply) + 1, OUT, dtype=np.int64)
    number[node.order] = np.arange(len(node.order))
    ordered = Arcs(
        number[small.tail[arcs.order]],
        number[small.head[arcs.order]],
        small.cost[arcs.order],
        small.upper[arcs.order],
        small.supply[node.order],
    )
    whole, begin = ordered.program(), near[node.order]
    made: list[LinearProgram] = []
    for (a, b), (m, n) in zip(pairwise(arcs.start.tolist()), pairwise(node.start.tolist()), strict=True):
        first, end = whole.row_start[m], whole.row_start[n]
        made.append(
            LinearProgram(
                whole.cost[a:b],
                whole.lower[a:b],
                whole.upper[a:b],
                whole.rhs[m:n],
                whole.row_start[m : n + 1] - first,
                whole.columns[first:end] - np.int32(a),
                whole.coefficients[first:end],
                begin[m:n],
            )
        )
    return made


def _batches(size: Ints) -> Ints:
    """Give the batch of each component, of that many arcs."""
    return (np.cumsum(size) - size) // BATCH


def _by_batch(label: Ints) -> _Batches:
    # Batches are few, and short numbers sort by their digits.
    order = np.argsort(label.astype(np.int16) if len(label) and int(label.max()) < 1 << 15 else label, kind="stable")
    ranked = label[order]
    first = np.append(np.True_, ranked[1:] != ranked[:-1])[: len(ranked)]
    return _Batches(order, np.append(np.flatnonzero(first), len(label)))
