"""The previous weights, restricted to the engines each row may still use and scaled back up; new rows go by capacity.

The rung below the linear program: not knowing better is no reason to move traffic. It follows neither demand nor
latency; what a pool can no longer hold is shed, lowest tier first. Without a previous snapshot it fails.
"""

import numpy as np

from headrace.schemas.weights import SnapshotStatus
from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.program.admission import cut_to_capacity
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Plan, normalised, split_by_capacity
from headrace.solver.settings import SolverSettings


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:  # noqa: ARG001 - a policy's signature
    """Keep what stood."""
    if not layout.previous:
        return Failed("NO_PREVIOUS_SNAPSHOT")
    warm = layout.per_row(layout.pair_previous) > 0.0
    by_capacity = normalised(layout, layout.pool_capacity[layout.pair_pool])
    share = np.where(warm[layout.pair_row], normalised(layout, layout.pair_previous), by_capacity)
    flow, shed = cut_to_capacity(layout, share * layout.demand[layout.pair_row])
    refused_rps = float(layout.requests(shed).sum())
    return Plan(
        status=SnapshotStatus.HELD,
        rung="LAST_GOOD",
        sentence=f"the last good weights stand on the engines that are left, {refused_rps:.1f} RPS shed",
        flow=flow,
        shed=shed,
        load=split_by_capacity(layout, flow),
        share=share,
        kept=warm,
    )
