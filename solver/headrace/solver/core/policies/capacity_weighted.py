"""share = capacity / sum of capacities, over the engines a row may use; what is too much is shed, lowest tier first.

The last rung of the ladder, and a baseline. It never overloads an engine and never fails; it ignores the network and
what latency does under load, so it sends traffic across the world that could have stayed.
"""

import numpy as np

from headrace.schemas.weights import SnapshotStatus
from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.program.admission import cut_to_capacity
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Plan, normalised, split_by_capacity
from headrace.solver.settings import SolverSettings


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:  # noqa: ARG001 - a policy's signature
    """Spread each row over its engines by capacity."""
    even = normalised(layout, layout.pool_capacity[layout.pair_pool])
    flow, shed = cut_to_capacity(layout, even * layout.demand[layout.pair_row])
    served, refused_rps = normalised(layout, flow), float(layout.requests(shed).sum())
    return Plan(
        status=SnapshotStatus.PROPORTIONAL,
        rung="CAPACITY_WEIGHTED",
        sentence=f"{layout.sent_rps(flow):.1f} RPS spread in proportion to capacity, {refused_rps:.1f} RPS shed",
        flow=flow,
        shed=shed,
        load=split_by_capacity(layout, flow),
        share=np.where((layout.per_row(flow) > 0.0)[layout.pair_row], served, even),
        kept=np.zeros(len(layout.rows), dtype=np.bool_),
    )
