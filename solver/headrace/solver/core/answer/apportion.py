"""Fractions -> integers that add up to exactly 1,000,000: largest remainder (Hamilton), ties by engine id.

Every engine gets the whole part of its quota; what is left goes, one each, to the largest fractional parts.
"""

import numpy as np

from headrace.schemas.weights import PPM
from headrace.solver.core.program.layout import Entries, Floats, Ints, Layout, sums
from headrace.solver.core.program.plan import Plan

TIE_DIGITS = 6
"""Remainders that agree to this many digits of a ppm are a tie, so that the last bits of a sum decide nothing."""
STICKY_PPM = 2
"""A route whose weights all moved by no more than this keeps its old ones: that is rounding, not a decision."""


def apportion(row: Ints, weight: Floats, order: Ints, rows: int) -> Ints:
    """Give ppm for weights grouped by row; each row with a positive sum gets exactly 1,000,000.

    Args:
        row: (N,) rising.
        weight: (N,) at least 0, on any scale.
        order: (N,) who wins a tie: the lowest.
        rows: how many rows there are.
    """
    total = sums(row, weight, rows)
    scale = total[row]
    quota = np.divide(weight * PPM, scale, out=np.zeros_like(weight), where=scale > 0.0)
    whole = np.floor(quota + 10.0**-TIE_DIGITS).astype(np.int64)
    remainder: Floats = np.round(np.maximum(quota - whole, 0.0), TIE_DIGITS).astype(np.float64)
    given = sums(row, whole, rows).astype(np.int64)
    missing = np.where(total > 0.0, PPM - given, 0)
    by_rank = _ranked(row, remainder, order)
    start = np.searchsorted(row, np.arange(rows))
    rank = np.empty(len(row), dtype=np.int64)
    rank[by_rank] = np.arange(len(row)) - start[row[by_rank]]
    return whole + (rank < missing[row])


def _ranked(row: Ints, remainder: Floats, order: Ints) -> Ints:
    """Sort by row, then the largest remainder, then order."""
    parts, orders = 10**TIE_DIGITS + 1, int(order.max(initial=0)) + 1
    if (int(row.max(initial=0)) + 1) * parts * orders < np.iinfo(np.int64).max:
        # One whole number says it all, and sorts many times faster than three keys.
        size = np.rint(remainder * 10.0**TIE_DIGITS).astype(np.int64)
        return np.argsort((row * parts + (parts - 1 - size)) * orders + order, kind="stable")
    return np.lexsort((order, -remainder, row))


def weigh(layout: Layout, plan: Plan) -> Entries:
    """Give every weight above 0 of a plan, engine by engine: a pool's share goes by its engines' planned loads."""
    row, engine, weight = _expand(layout, plan)
    kept = plan.kept[layout.warm.row]
    row = np.concatenate((row, layout.warm.row[kept]))
    engine = np.concatenate((engine, layout.warm.engine[kept]))
    weight = np.concatenate((weight, layout.warm.ppm[kept].astype(np.float64)))
    order = np.argsort(row * max(len(layout.engines), 1) + engine, kind="stable")
    row, engine, weight = row[order], engine[order], weight[order]
    ppm = apportion(row, weight, engine, len(layout.rows))
    some = ppm > 0
    return _stick(layout, Entries(row[some], engine[some], ppm[some]))


def _expand(layout: Layout, plan: Plan) -> tuple[Ints, Ints, Floats]:
    pool_load = layout.pool_load(plan.load)
    pool, group, capacity = layout.engine_pool, layout.engine_group, layout.engine_capacity
    usable = pool >= 0
    part = np.zeros(len(pool))
    part[usable] = capacity[usable] / layout.pool_capacity[pool[usable]]
    loaded = usable & (pool_load[pool] > 0.0) if len(layout.pools) else usable
    in_group = capacity[loaded] / layout.group_capacity[group[loaded]]
    part[loaded] = in_group * plan.load[group[loaded]] / pool_load[pool[loaded]]
    if plan.split is not None:
        part = plan.split
    pairs = np.flatnonzero((plan.share > 0.0) & ~plan.kept[layout.pair_row])
    sizes = np.array([len(p.engines) for p in layout.pools], dtype=np.int64)
    members = np.array([e for p in layout.pools for e in p.engines], dtype=np.int64)
    count = sizes[layout.pair_pool[pairs]]
    first = (np.cumsum(sizes) - sizes)[layout.pair_pool[pairs]]
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    engine = members[np.repeat(first, count) + offset]
    return np.repeat(layout.pair_row[pairs], count), engine, np.repeat(plan.share[pairs], count) * part[engine]


def _stick(layout: Layout, new: Entries) -> Entries:
    """Keep the previous weights of every row in which none moved by more than `STICKY_PPM`."""
    warm, size = layout.warm, max(len(layout.engines), 1)
    new_key, old_key = new.row * size + new.engine, warm.row * size + warm.engine
    keys = _each_once(new_key, old_key)
    before, after = np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=np.int64)
    after[np.searchsorted(keys, new_key)] = new.ppm
    before[np.searchsorted(keys, old_key)] = warm.ppm
    row = (keys // size).astype(np.int64)
    moved = np.abs(after - before) > STICKY_PPM
    whole = sums(row, before, len(layout.rows)) == PPM
    still = (sums(row, moved, len(layout.rows)) == 0.0) & whole
    ppm = np.where(still[row], before, after)
    some = ppm > 0
    return Entries(row[some], (keys[some] % size).astype(np.int64), ppm[some])


def _each_once(one: Ints, other: Ints) -> Ints:
    """Give the numbers of two lists, rising; each of these rises too, so that sorting is merging."""
    both = np.sort(np.concatenate((one, other)), kind="stable")
    kept: Ints = both[np.append(np.True_, both[1:] != both[:-1])[: len(both)]]
    return kept


def moved_share(layout: Layout, new: Entries) -> Floats:
    """Give the share of each row's traffic that goes elsewhere than before, (R,); 0 for a row that is new.

    Before is by the last weights: what a failover has put elsewhere has moved, though `warm` has it there already.
    """
    rows, size, before = len(layout.rows), max(len(layout.engines), 1), layout.before
    there = before.engine >= 0
    old_key, old_ppm = before.row[there] * size + before.engine[there], before.ppm[there]
    both, i, j = np.intersect1d(new.row * size + new.engine, old_key, assume_unique=True, return_indices=True)
    same = sums(both // size, np.minimum(new.ppm[i], old_ppm[j]), rows)
    had, has = (sums(entries.row, entries.ppm, rows) > 0.0 for entries in (before, new))
    return np.where(had & has, 1.0 - same / PPM, 0.0)
