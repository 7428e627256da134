"""Local greedy with spill: each row fills its nearest pool, what does not fit flows on to the next nearest.

    round k = 0, 1, ...: every row offers what it has left to its k-th nearest pool; a pool takes up to its fill,
                         of a lower tier only what the higher ones leave, in proportion where it is short
    first up to headroom_load of each pool; what then is left, up to capacity; what then is left is shed

A baseline, and a good one where sites are far apart. It fills the near engines to the brim, where they are slowest,
while an engine a few milliseconds further is idle; and it moves a step's whole surplus at once.
"""

import numpy as np

from headrace.schemas.weights import SnapshotStatus
from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.program.layout import Floats, Ints, Layout
from headrace.solver.core.program.plan import Plan, normalised, split_by_capacity
from headrace.solver.settings import SolverSettings


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:  # noqa: ARG001 - a policy's signature
    """Fill from near to far."""
    rank = _rank(layout)
    flow = np.zeros(len(layout.pair_row))
    for fill in (settings.headroom_load, 1.0):
        _pour(layout, rank, fill * layout.pool_capacity, flow)
    served = layout.per_row(flow)
    nearest = (rank == 0).astype(np.float64)
    return Plan(
        status=SnapshotStatus.PROPORTIONAL,
        rung="WATERFALL",
        sentence=f"{layout.sent_rps(flow):.1f} RPS to the nearest engines with room",
        flow=flow,
        shed=np.maximum(layout.demand - served, 0.0),
        load=split_by_capacity(layout, flow),
        share=np.where((served > 0.0)[layout.pair_row], normalised(layout, flow), nearest),
        kept=np.zeros(len(layout.rows), dtype=np.bool_),
    )


def _rank(layout: Layout) -> Ints:
    """Give each pair's place among its row's, nearest first, ties by pool, (P,)."""
    order = np.lexsort((layout.pair_pool, layout.pair_network, layout.pair_row))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - layout.row_start[layout.pair_row[order]]
    return rank


def _pour(layout: Layout, rank: Ints, level: Floats, flow: Floats) -> None:
    """Add to `flow`, in place, what the pools take up to `level`."""
    tiers = np.array([row.tier for row in layout.rows], dtype=np.int64)
    for tier in np.unique(tiers):
        for k in range(int(rank.max(initial=-1)) + 1):
            left = np.where(tiers == tier, np.maximum(layout.demand - layout.per_row(flow), 0.0), 0.0)
            offered = np.where(rank == k, left[layout.pair_row], 0.0)
            asked = layout.per_pool(offered)
            room = np.maximum(level - layout.per_pool(flow), 0.0)
            taken = np.divide(room, asked, out=np.ones_like(asked), where=asked > room)
            flow += offered * taken[layout.pair_pool]
