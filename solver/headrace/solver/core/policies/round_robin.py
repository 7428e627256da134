"""share = 1 / number of engines a row may use: every engine in its turn, whatever it is.

A baseline. It knows neither distance, nor capacity, nor load: a small engine gets as much as a large one, and breaks.
"""

import numpy as np

from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.program.layout import Layout, sums
from headrace.solver.core.program.plan import Plan, by_shares, normalised
from headrace.solver.settings import SolverSettings


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:  # noqa: ARG001 - a policy's signature
    """Give every engine the same."""
    usable = layout.engine_pool >= 0
    engines = sums(layout.engine_pool[usable], np.ones(int(usable.sum())), len(layout.pools))
    of_group = sums(layout.engine_group[usable], np.ones(int(usable.sum())), len(layout.group_pool))
    split = np.zeros(len(layout.engines))
    split[usable] = 1.0 / engines[layout.engine_pool[usable]]
    made = by_shares(layout, "ROUND_ROBIN", normalised(layout, engines[layout.pair_pool]), "to every engine in turn")
    load = layout.per_pool(made.flow)[layout.group_pool] * of_group / engines[layout.group_pool]
    return made.with_split(load, split)
