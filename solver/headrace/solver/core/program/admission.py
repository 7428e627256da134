"""Flows that exceed a pool's capacity are cut there, lowest tier first, and within a tier in equal proportion.

For policies that do not know capacity: what they would overload is shed instead. The linear program never needs this.
"""

import numpy as np
import numpy.typing as npt

from headrace.solver.core.program.layout import Layout

Floats = npt.NDArray[np.float64]


def cut_to_capacity(layout: Layout, flow: Floats) -> tuple[Floats, Floats]:
    """Give the flows (P,) that fit, and what is shed of each row (R,)."""
    tiers = np.array([row.tier for row in layout.rows], dtype=np.int64)[layout.pair_row]
    left = layout.pool_capacity.copy()
    fitting = np.zeros_like(flow)
    for tier in np.unique(tiers):
        of_tier = np.where(tiers == tier, flow, 0.0)
        asked = layout.per_pool(of_tier)
        ratio = np.divide(left, asked, out=np.ones_like(asked), where=asked > left)
        taken = of_tier * ratio[layout.pair_pool]
        fitting += taken
        left = np.maximum(left - layout.per_pool(taken), 0.0)
    return fitting, np.maximum(layout.demand - layout.per_row(fitting), 0.0)
