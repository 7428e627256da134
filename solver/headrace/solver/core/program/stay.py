"""Whether moving is worth it: the previous shares stand where the best answer is better by less than `stay_within`.

    stay = true cost of a component's traffic with each row's previous shares, at today's demand
    best = true cost of the program's answer, the price of its moves not counted
    kept   where stay <= (1 + stay_within) best, nothing is shed either way, no pool is loaded above `FULLEST`, and
           every row's previous weights are all still usable

The cost is flat around its optimum, so small changes of demand move the optimum far for next to nothing, and every move
costs somebody a warm cache. What is given up is bounded by the setting, and is in the record's gap.
"""

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import PPM
from headrace.solver.core.program.bound import engine_cost
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Curves
from headrace.solver.core.program.pool_split import split_by_slope
from headrace.solver.core.program.program import Component

FULLEST = 0.95
"""Share of a pool's capacity above which its traffic is not left as it is: near the wall nothing is flat."""
WHOLE = 1.0 - 2.0 / PPM


def staying(
    layout: Layout, curves: Curves, components: tuple[Component, ...], answer: tuple[Floats, Floats], within: float
) -> npt.NDArray[np.bool_]:
    """Give the rows that keep their weights, (R,).

    Args:
        layout: of the problem.
        curves: of its profiles.
        components: what is judged together, or not at all.
        answer: the program's flow (P,) and shedding (R,).
        within: relative cost that staying may be above the best; 0 keeps nobody.
    """
    kept = np.zeros(len(layout.rows), dtype=np.bool_)
    if within <= 0.0 or not layout.previous:
        return kept
    flow, shed = answer
    stay = layout.pair_previous * layout.demand[layout.pair_row]
    whole = (layout.per_row(layout.pair_previous) >= WHOLE) & (shed <= 0.0) & (layout.row_warm_shed <= 0.0)
    fits = layout.per_pool(stay) <= FULLEST * layout.pool_capacity
    for component in components:
        if whole[component.rows].all() and fits[component.pools].all():
            best, now = (_cost(layout, curves, component, f) for f in (flow, stay))
            kept[component.rows] = now <= (1.0 + within) * best
    return kept


def _cost(layout: Layout, curves: Curves, component: Component, flow: Floats) -> float:
    alone = np.zeros_like(flow)
    alone[component.pairs] = flow[component.pairs]
    return float(layout.pair_network @ alone) + engine_cost(layout, curves, split_by_slope(layout, curves, alone))
