"""By how much a route may send an engine more than planned before the engine is full: what a surge is held against.

    headroom = (surge_load x capacity - load) / what the route sends it,   0 to `MOST`

A data plane sees at once that more arrives than the weights know of; the solver hears of it as late as the signals are.
Until then what is above the headroom goes where the failover has room. All of an engine's room is told to each of its
routes, so two that surge at once are each believed to have it. As of when the route was written.
"""

import numpy as np

from headrace.schemas.weights import PPM
from headrace.solver.core.answer.targets import Listed
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Plan

MOST = 10.0
DIGITS = 3


def headrooms(layout: Layout, plan: Plan, listed: Listed, load: Floats, surge_load: float) -> list[float | None]:
    """Give the headroom of each listed engine in its route, (T,); None where the route sends it nothing.

    Args:
        layout: of the problem.
        plan: what was decided.
        listed: the engines.
        load: (E,) planned, all routes together.
        surge_load: share of capacity that counts as full; 0 tells none.
    """
    served = np.maximum(layout.demand - plan.shed, 0.0)
    sent = served[listed.row] * listed.weight / PPM
    room = np.maximum(surge_load * layout.engine_capacity[listed.engine] - load[listed.engine], 0.0)
    told = np.minimum(np.divide(room, sent, out=np.full(len(sent), MOST), where=sent * MOST > room), MOST)
    there: list[bool] = ((sent > 0.0) & (surge_load > 0.0)).tolist()
    rows = zip(np.round(told, DIGITS).tolist(), there, strict=True)
    return [share if known else None for share, known in rows]
