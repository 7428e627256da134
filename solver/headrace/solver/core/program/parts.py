"""The parts of a layout that hang together, and stretches of whole parts.

    part     rows that ask for something and pools, connected by pairs with each other and with no others
    stretch  some parts, one after the other, of about `PAIRS` pairs: what is sifted at a time

Parts have nothing to do with each other, so stretches may be solved beside each other, and the arrays of one are short
enough to stay near the processor. Each depends on nothing but its own rows and pools.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.solver.core.program.layout import Ints, Layout
from headrace.solver.core.program.sparse import component_labels

PAIRS = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows, pools and pairs of a layout that are connected with each other, and with no others; each rising."""

    rows: Ints
    pools: Ints
    pairs: Ints


def parts_of(layout: Layout) -> tuple[Part, ...]:
    """Give the parts of all rows with demand and at least one pool, in the order of their first row."""
    rows = np.flatnonzero((layout.demand > 0.0) & (np.diff(layout.row_start) > 0))
    if not len(rows):
        return ()
    of_row, of_pool = _labels(layout, rows)
    rows = rows[np.argsort(of_row[rows], kind="stable")]
    pools = np.flatnonzero(of_pool >= 0)
    pools = pools[np.argsort(of_pool[pools], kind="stable")]
    pairs = pairs_of_rows(layout, rows)
    row_ends = np.flatnonzero(np.diff(of_row[rows])) + 1
    pool_ends = np.flatnonzero(np.diff(of_pool[pools])) + 1
    pair_ends = np.cumsum(np.diff(layout.row_start)[rows])[row_ends - 1]
    return tuple(map(Part, np.split(rows, row_ends), np.split(pools, pool_ends), np.split(pairs, pair_ends)))


def stretches_of(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    """Put parts together, in their order, up to `PAIRS` pairs and the part that is the first to go beyond."""
    ends = np.cumsum([len(part.pairs) for part in parts])
    begin = 0
    while begin < len(parts):
        before = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, before + PAIRS)) + 1
        yield parts[begin:end]
        begin = end


def pairs_of_rows(layout: Layout, rows: Ints) -> Ints:
    """Give the pairs of rows, in the order of these."""
    start, count = layout.row_start[rows], np.diff(layout.row_start)[rows]
    before: Ints = np.cumsum(count) - count
    return np.arange(int(count.sum()), dtype=np.int64) + np.repeat(start - before, count)


def _labels(layout: Layout, rows: Ints) -> tuple[Ints, Ints]:
    """Number the parts by their first row; give the number of each row (R,) and pool (G,), -1 where they are in none.

    The pools of a row hang together by what lies between neighbours, which is the same for most rows: few edges say it.
    """
    size, first = len(layout.rows), layout.row_start[rows]
    pool = layout.pair_pool.astype(np.int32)
    asks = np.zeros(size, dtype=np.bool_)
    asks[rows] = True
    # Of two pairs, one after the other, the second begins no row and is of one that asks.
    asked = np.repeat(asks, np.diff(layout.row_start))
    asked[first] = False
    inner = np.flatnonzero(asked[1:])
    own, gap = pool.take(inner), np.diff(pool).take(inner)
    size_of = int(gap.max(initial=0)) + 1
    after = np.zeros(len(layout.pools) * size_of, dtype=np.bool_)
    after[own.astype(np.int64) * size_of + gap] = True
    one, apart = np.divmod(np.flatnonzero(after), size_of)
    label = component_labels(
        np.concatenate((rows, size + one)),
        np.concatenate((size + layout.pair_pool[first], size + one + apart)),
        size + len(layout.pools),
    )
    _, begins = np.unique(label[rows], return_index=True)
    number = np.full(int(label.max()) + 1, -1, dtype=np.int64)
    number[label[rows[np.sort(begins)]]] = np.arange(len(begins))
    return number[label[:size]], number[label[size:]]
