"""A pool's flow -> the loads of its groups: the cheapest chords first, equal slopes in proportion to their width.

This is what the program's y columns say, made unique: a solver may break a tie inside a pool either way, this may not.
"""

import numpy as np
import numpy.typing as npt

from headrace.solver.core.program.layout import Layout, sums
from headrace.solver.core.program.plan import Curves

Floats = npt.NDArray[np.float64]


def split_by_slope(layout: Layout, curves: Curves, flow: Floats) -> Floats:
    """Give each group's load, (H,), for pair flows (P,); what exceeds a pool's capacity is spread by capacity."""
    pool_flow = layout.per_pool(flow)
    load = pool_flow[layout.group_pool].astype(np.float64)
    start = np.searchsorted(layout.group_pool, np.arange(len(layout.pools) + 1))
    for g in np.flatnonzero(np.diff(start) > 1):
        load[start[g] : start[g + 1]] = _fill(layout, curves, range(start[g], start[g + 1]), float(pool_flow[g]))
    return load


def _fill(layout: Layout, curves: Curves, groups: range, flow: float) -> Floats:
    chords = [curves.chords[layout.group_profile[h]] for h in groups]
    capacity = layout.group_capacity[groups.start : groups.stop]
    owner = np.concatenate([np.full(len(c.slopes), i) for i, c in enumerate(chords)])
    slope = np.concatenate([c.slopes for c in chords])
    width = np.concatenate([c.widths * capacity[i] for i, c in enumerate(chords)])
    load = np.zeros(len(groups))
    left = flow
    for level in np.unique(slope):
        room = np.where(slope == level, width, 0.0)
        total = float(room.sum())
        load += sums(owner, room * min(1.0, left / total), len(groups))
        left -= total
        if left <= 0.0:
            return load
    return load + capacity * (left / float(capacity.sum()))
