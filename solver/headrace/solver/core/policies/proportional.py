"""w_i <- w_i (1 + k dt (1 - score_i / average)), clipped, renormalised: the old loop, a P controller on measured score.

    score    = round trip + smoothed latency of the pool's engines, as they measured it themselves, in queues and all
    average  = of the row's pools, by weight
    k        = proportional_gain, per second; dt = period

A pool without traffic has no score; it keeps its weight. None falls below `FLOOR` of its share by capacity, or it could
never show that it has recovered. A pool that a row had no weight on begins at its share by capacity. Nothing is ever
shed: capacity is not known here.

Oscillates when the signal is delayed: what is watched is what is steered. At a small gain it is calm, and as slow to
answer a change.
"""

import numpy as np

from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.program.feedback import errors, pool_latency_ms, previous_shares, stepped
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Plan, by_shares
from headrace.solver.settings import SolverSettings

MS = 1000.0
STEERS_BY_LATENCY = True


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:  # noqa: ARG001 - a policy's signature
    """Push each weight by its error."""
    before = previous_shares(layout)
    error = errors(layout, before, pool_latency_ms(layout))
    step = settings.proportional_gain * settings.period_ms / MS * np.nan_to_num(error)
    return by_shares(layout, "PROPORTIONAL", stepped(layout, before, step), "by measured latency against the average")
