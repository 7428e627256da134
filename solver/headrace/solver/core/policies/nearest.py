"""Everything goes to the pool with the shortest round trip; ties by pool name.

A baseline. It knows neither capacity nor latency under load: a busy site overloads its own engines beside idle ones,
which shows as a utilisation above 1.
"""

import numpy as np

from headrace.schemas.weights import SnapshotStatus
from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Plan, split_by_capacity
from headrace.solver.settings import SolverSettings


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:  # noqa: ARG001 - a policy's signature
    """Send each row to its nearest pool."""
    share = np.zeros(len(layout.pair_row))
    for row in range(len(layout.rows)):
        pairs = layout.pairs_of(row)
        if pairs.stop > pairs.start:
            share[pairs.start + int(np.argmin(layout.pair_network[pairs]))] = 1.0
    flow = share * layout.demand[layout.pair_row]
    return Plan(
        status=SnapshotStatus.PROPORTIONAL,
        rung="NEAREST",
        sentence=f"{layout.sent_rps(flow):.1f} RPS routed to the nearest engines, whatever their load",
        flow=flow,
        shed=np.maximum(layout.demand - layout.per_row(flow), 0.0),
        load=split_by_capacity(layout, flow),
        share=share,
        kept=np.zeros(len(layout.rows), dtype=np.bool_),
    )
