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
from headrace.solver.core.program.pins import ColumnBounds, column_bounds
from headrace.solver.core.program.plan import Curves, Prices
from headrace.solver.core.program.program import Costs

Floats = npt.NDArray[np.float64]
TOGETHER = 1 << 16
"""Pairs that are reckoned at once: what they take in the meantime is bounded."""


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
    least = np.array([curves.exact[profile_id].least_latency() for profile_id in layout.profiles])
    idle = least[layout.group_number]
    of_pool = np.full(len(layout.pools), np.inf)
    np.minimum.at(of_pool, layout.group_pool, idle)
    cheapest = layout.least_per_row(layout.pair_network + of_pool[layout.pair_pool])
    return dot(np.minimum(costs.shed, cheapest), layout.demand)


def _by_prices(layout: Layout, curves: Curves, costs: Costs, prices: Prices) -> float:
    total, bounds = dot(prices.row, layout.demand), column_bounds(layout)
    for begin in range(0, len(layout.pair_row), TOGETHER):
        total += _by_tolls(layout, costs, bounds, prices, slice(begin, begin + TOGETHER))
    refusal = costs.shed - prices.row
    total += dot(np.minimum(refusal, 0.0), layout.row_warm_shed)
    total += dot(np.minimum(refusal + costs.shed_move, 0.0), layout.demand)
    for profile_id, groups in _by_profile(layout).items():
        curve = curves.exact[profile_id]
        group_price = prices.pool[layout.group_pool[groups]]
        total += float(np.sum(curve.least_of(group_price) * layout.group_capacity[groups]))
    return total


def _by_tolls(layout: Layout, costs: Costs, bounds: ColumnBounds, prices: Prices, some: slice) -> float:
    """Give the part of some pairs: the least that their columns can make of their reduced costs."""
    row, steps, move = layout.pair_row[some], costs.steps, costs.move[some]
    toll = layout.pair_network[some] + prices.pool[layout.pair_pool[some]] - prices.row[row]
    demand, gain, core = layout.demand[row], steps.gain[some], steps.core[some]
    # Most ways are dearer than their row's price.
    keep, new = np.flatnonzero(toll < 0.0), np.flatnonzero(toll + move < 0.0)
    most_new = np.minimum(np.minimum(bounds.new_upper[some][new], demand[new]), gain[new])
    total = dot(toll[keep], bounds.keep_upper[some][keep] - core[keep])
    total += dot((toll + move)[new], most_new)
    if steps.any:
        far, price = np.isfinite(gain), steps.price[some]
        total += dot(np.minimum(toll + move + price, 0.0)[far], demand[far])
        total += dot(np.minimum(toll - price, 0.0) + price, core)
    if not layout.problem.pins:
        return total
    total += dot(np.maximum(toll, 0.0), bounds.keep_lower[some])
    return total + dot(np.maximum(toll + move, 0.0), bounds.new_lower[some])


def _by_profile(layout: Layout) -> dict[str, npt.NDArray[np.int64]]:
    return {name: np.flatnonzero(layout.group_number == number) for number, name in enumerate(layout.profiles)}
