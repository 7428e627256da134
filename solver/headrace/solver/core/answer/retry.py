"""Retry budget: r_max clip((u_hi - u) / (u_hi - u_lo), 0, 1), u = utilisation after the solve of what a row may use.

Retries are load too: a fleet that is nearly full may not be asked twice.
"""

import numpy as np

from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.settings import SolverSettings

DIGITS = 3


def retry_ratios(layout: Layout, plan: Plan, settings: SolverSettings) -> Floats:
    """Give each row's retries allowed per first attempt, (R,), to three digits; 0 where no engine may serve it."""
    pool_load = layout.pool_load(plan.load)
    load = layout.per_row(pool_load[layout.pair_pool])
    capacity = layout.per_row(layout.pool_capacity[layout.pair_pool])
    used = np.divide(load, capacity, out=np.ones_like(load), where=capacity > 0.0)
    low, high = settings.retry_load_low, settings.retry_load_high
    left = (high - used) / (high - low) if high > low else np.where(used < high, 1.0, 0.0)
    ratio = np.where(capacity > 0.0, settings.retry_ratio_max * np.clip(left, 0.0, 1.0), 0.0)
    return np.round(ratio, DIGITS).astype(np.float64)
