"""Pairs of row and pool: where every engine of the pool may serve the row, and a round trip to its site is known."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from headrace.solver.core.problem import Engine, Problem, Row
from headrace.solver.core.profile.load_cost import MS
from headrace.solver.core.program.asked import Asked
from headrace.solver.core.program.eligibility import row_exclusion
from headrace.solver.core.program.pool import Pool

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def find_pairs(
    problem: Problem, asked: Asked, rows: Sequence[Row], engines: Sequence[Engine], pools: Sequence[Pool]
) -> tuple[Ints, Ints, Floats]:
    """Give row, pool and round trip (ms) of each pair, (P,), by row, then pool.

    Found one block a wish, and put where they belong: a row has all its pairs in one block.
    """
    sites = sorted({pool.site for pool in pools})
    links = [[problem.network_s.get((cluster, site)) for site in sites] for cluster in asked.clusters]
    network = np.array([[math.nan if rtt is None else rtt * MS for rtt in line] for line in links]).reshape(
        len(asked.clusters), len(sites)
    )
    number_of = {site: i for i, site in enumerate(sites)}
    site_of = np.array([number_of[pool.site] for pool in pools], dtype=np.int64)
    blocks = list(_blocks(asked, rows, engines, pools))
    reached = [~np.isnan(network[np.ix_(asked.cluster[members], site_of[able])]) for members, able in blocks]
    count = np.zeros(len(rows) + 1, dtype=np.int64)
    for (members, _), there in zip(blocks, reached, strict=True):
        count[members + 1] = there.sum(axis=1)
    start = np.cumsum(count)
    pair_row = np.repeat(np.arange(len(rows)), count[1:])
    pair_pool, pair_ms = np.empty(len(pair_row), dtype=np.int64), np.empty(len(pair_row))
    for (members, able), there in zip(blocks, reached, strict=True):
        r, p = np.nonzero(there)
        row, pool = members[r], able[p]
        # Pools rise within a row.
        first = np.cumsum(count[members + 1]) - count[members + 1]
        at = start[row] + np.arange(len(r)) - first[r]
        pair_pool[at], pair_ms[at] = pool, network[asked.cluster[row], site_of[pool]]
    return pair_row, pair_pool, pair_ms


def _blocks(
    asked: Asked, rows: Sequence[Row], engines: Sequence[Engine], pools: Sequence[Pool]
) -> Iterator[tuple[Ints, Ints]]:
    """Give the rows of each wish, and the pools that may serve them, network aside, rising."""
    serving: dict[str, list[int]] = {}
    for g, pool in enumerate(pools):
        for model in pool.models:
            serving.setdefault(model, []).append(g)
    by_wish = np.argsort(asked.wish, kind="stable")
    ends = np.cumsum(np.bincount(asked.wish, minlength=len(asked.wishes)))
    for wish, members in zip(asked.wishes, np.split(by_wish, ends[:-1]), strict=False):
        first = rows[int(members[0])]
        able = [g for g in serving.get(wish.model, []) if row_exclusion(first, engines[pools[g].engines[0]]) is None]
        yield members, np.array(able, dtype=np.int64)
