"""How far from the best any plan could be: a certified gap on the true convex cost, not on its chords.

    upper = cost of the plan on the exact curves
    lower = row prices x demand + sum over columns of min over its bounds of reduced cost x
          + sum over groups of capacity x min over load of (L(load) - price load)               (Lagrange, weak duality)
    gap   = (upper - lower) / upper

Any row and pool prices give a valid lower bound; those of the program's duals give a tight one. At very low load the
chords' slopes say too much, and pricing every engine as idle is the better bound.
"""

import numpy as np
import numpy.typing as npt

from headrace.solver.core.program.dot import dot
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.pins import column_bounds
from headrace.solver.core.program.plan import Curves, Prices
from headrace.solver.core.program.program import Costs

Floats = npt.NDArray[np.float64]


def true_cost(layout: Layout, curves: Curves, costs: Costs, flow: Floats, shed: Floats, load: Floats) -> float:
    """Give network + move + engine + shedding cost of a plan, ms x RPS, on the exact curves."""
    kept = layout.pair_warm
    network = dot(layout.pair_network, flow) + dot(costs.move, np.maximum(flow - kept, 0.0))
    network += costs.steps.cost(flow, kept)
    refused = dot(costs.shed, shed) + dot(costs.shed_move, np.maximum(shed - layout.row_warm_shed, 0.0))
    return network + engine_cost(layout, curves, load) + refused


def engine_cost(layout: Layout, curves: Curves, load: Floats) -> float:
    """Give the sum over groups of capacity x L(load / capacity), ms x RPS."""
    total = 0.0
    for profile_id, groups in _by_profile(layout).items():
        capacity = layout.group_capacity[groups]
        total += dot(capacity, curves.exact[profile_id].value(load[groups] / capacity))
    return total


def lower_bound(layout: Layout, curves: Curves, costs: Costs, prices: Prices) -> float:
    """Give a value that no plan's true cost can be below, ms x RPS: the better of two bounds."""
    return max(_by_prices(layout, curves, costs, prices), _by_idle_engines(layout, curves, costs))


def _by_idle_engines(layout: Layout, curves: Curves, costs: Costs) -> float:
    """Price every request as if its engine were idle: tight where prices are not, at loads far below the first knot."""
    least = {profile_id: curves.exact[profile_id].least_latency() for profile_id in set(layout.group_profile)}
    idle = np.array([least[profile_id] for profile_id in layout.group_profile])
    of_pool = np.full(len(layout.pools), np.inf)
    np.minimum.at(of_pool, layout.group_pool, idle)
    cheapest = costs.shed.copy()
    np.minimum.at(cheapest, layout.pair_row, layout.pair_network + of_pool[layout.pair_pool])
    return dot(cheapest, layout.demand)


def _by_prices(layout: Layout, curves: Curves, costs: Costs, prices: Prices) -> float:
    demand, bounds = layout.demand[layout.pair_row], column_bounds(layout)
    toll = layout.pair_network + prices.pool[layout.pair_pool] - prices.row[layout.pair_row]
    total = dot(prices.row, layout.demand)
    steps = costs.steps
    most_new = np.minimum(np.minimum(bounds.new_upper, demand), steps.gain)
    total += dot(np.minimum(toll, 0.0), bounds.keep_upper - steps.core)
    total += dot(np.minimum(toll + costs.move, 0.0), most_new)
    if steps.any:
        far = np.isfinite(steps.gain)
        total += dot(np.minimum(toll + costs.move + steps.price, 0.0)[far], demand[far])
        total += dot(np.minimum(toll - steps.price, 0.0) + steps.price, steps.core)
    total += dot(np.maximum(toll, 0.0), bounds.keep_lower) + dot(np.maximum(toll + costs.move, 0.0), bounds.new_lower)
    refusal = costs.shed - prices.row
    total += dot(np.minimum(refusal, 0.0), layout.row_warm_shed)
    total += dot(np.minimum(refusal + costs.shed_move, 0.0), layout.demand)
    for profile_id, groups in _by_profile(layout).items():
        curve = curves.exact[profile_id]
        group_price = prices.pool[layout.group_pool[groups]]
        total += float(np.sum(curve.least_of(group_price) * layout.group_capacity[groups]))
    return total


def _by_profile(layout: Layout) -> dict[str, npt.NDArray[np.int64]]:
    members: dict[str, list[int]] = {}
    for h, profile_id in enumerate(layout.group_profile):
        members.setdefault(profile_id, []).append(h)
    return {profile_id: np.array(groups, dtype=np.int64) for profile_id, groups in sorted(members.items())}
