"""Random fleets with the other opinion beside them: min-cost flow in whole numbers, and the same problem once more."""

from dataclasses import replace

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from headrace.solver.core.linear import Failed
from headrace.solver.core.problem import Problem
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import Layout, lay_out
from headrace.solver.core.program.optimum import Optimum, optimum
from headrace.solver.core.program.program import costs_of
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import coupled_fleet, engine, problem, row

SETTINGS, LP = SolverSettings(), Glop(1)
WHOLE, SIFT = 10**9, -1
MOVE_MS = 30.0


def best(layout: Layout, sift_above: int, settings: SolverSettings = SETTINGS) -> Optimum:
    curves = curves_of(layout, settings)
    found = optimum(layout, curves, costs_of(layout, curves, MOVE_MS), LP, sift_above)
    if isinstance(found, Failed):
        raise SystemExit(found.reason)
    return found


def mixed_fleet(seed: int) -> Problem:
    """A fleet of one of five kinds by its seed: plain, overloaded, tied, with holes, masked."""
    dice = np.random.default_rng(seed)
    kind, shared = seed % 5, float(dice.choice([0.0, 0.3, 0.6]))
    p = coupled_fleet(
        int(dice.integers(2, 12)),
        int(dice.integers(4, 60)),
        int(dice.integers(1, 6)),
        seed=seed,
        utilisation=float(dice.uniform(1.1, 1.6)) if kind == 1 else float(dice.uniform(0.2, 0.97)),
        shared=shared,
    )
    if kind == 2:
        p = replace(p, network_s={link: 0.01 * dice.integers(1, 3) for link in p.network_s})
    if kind == 3:
        p = replace(p, engines=tuple(replace(e, factor=float(dice.choice([0.0, 1e-3, 1.0]))) for e in p.engines))
    if kind == 4:
        marks = [("eu",), ("us",), ("eu", "us")]
        p = replace(
            p,
            engines=tuple(replace(e, residency=marks[int(dice.integers(3))]) for e in p.engines),
            rows=tuple(replace(r, tier=int(dice.integers(3)), residency=marks[int(dice.integers(3))]) for r in p.rows),
            network_s={k: None if dice.random() < 0.1 else v for k, v in p.network_s.items()},
        )
    return p


def differs_from_min_cost_flow(seed: int) -> bool:
    """Say whether a transport in whole numbers costs other than OR-Tools' min-cost flow says, whole or sifted."""
    dice = np.random.default_rng(seed)
    clusters, sites = int(dice.integers(2, 15)), int(dice.integers(2, 15))
    capacity, demand = dice.integers(1, 50, sites), dice.integers(0, 40, clusters)
    ms = dice.integers(0, 200, (clusters, sites))
    links: dict[tuple[str, str], float | None] = {
        (f"c{i:02}", f"s{j:02}"): float(ms[i, j]) for i in range(clusters) for j in range(sites)
    }
    engines = [engine(f"e{j:02}", f"s{j:02}", float(capacity[j])) for j in range(sites)]
    p = problem([row(f"c{i:02}", float(demand[i])) for i in range(clusters)], engines, links)
    layout, settings = lay_out(p, None), SolverSettings(engine_cost="none")
    price = costs_of(layout, curves_of(layout, settings), MOVE_MS).shed[0]
    flow = SimpleMinCostFlow()
    for i in range(clusters):
        flow.set_node_supply(i, int(demand[i]))
        flow.add_arc_with_capacity_and_unit_cost(i, clusters + sites, int(demand[i]), round(price))
        for j in range(sites):
            flow.add_arc_with_capacity_and_unit_cost(i, clusters + j, int(demand[i]), int(ms[i, j]))
    for j in range(sites):
        flow.add_arc_with_capacity_and_unit_cost(clusters + j, clusters + sites, int(capacity[j]), 0)
    flow.set_node_supply(clusters + sites, -int(demand.sum()))
    if flow.solve() != flow.OPTIMAL:
        raise SystemExit("min-cost flow is not optimal")
    return any(round(best(layout, above, settings).value, 6) != flow.optimal_cost() for above in (WHOLE, SIFT))


def broken_even(seed: int, most: int) -> tuple[int, int, int]:
    """Make unused ways of a fleet cheaper by just less and just more than their reduced costs; move demand a little.

    Returns:
        ways tried, of these how many did not answer as they should, duals outside their one-sided differences.
    """
    p = coupled_fleet(6, 24, 3, seed=seed)
    layout = lay_out(p, None)
    found = best(layout, WHOLE)
    gap = layout.pair_network + found.prices.pool[layout.pair_pool] - found.prices.row[layout.pair_row]
    open_ = np.flatnonzero((found.flow <= 0.0) & (gap > 1.0) & (gap < layout.pair_network))
    ways: list[int] = np.random.default_rng(seed).permutation(open_)[:most].tolist()
    wrong = sum([changed(layout, way, float(gap[way]) + by) for by in (-1e-3, 1e-3)] != [False, True] for way in ways)
    outside = 0
    for r in range(0, len(layout.rows), 5):
        step = 1e-4 * float(layout.demand[r])
        up, down = (best(more(p, layout, r, by), WHOLE).value for by in (step, -step))
        price = float(found.prices.row[r])
        slack = 1e-4 * price
        outside += not (found.value - down) / step - slack <= price <= (up - found.value) / step + slack
    return len(ways), wrong, outside


def changed(layout: Layout, pair: int, cheaper_ms: float) -> bool:
    """Say whether a pair is used when its network alone is this much cheaper."""
    network = layout.pair_network.copy()
    network[pair] -= cheaper_ms
    return bool(best(replace(layout, pair_network=network), WHOLE).flow[pair] > 0.0)


def more(p: Problem, layout: Layout, r: int, by: float) -> Layout:
    route = layout.rows[r].route
    rows = tuple(replace(x, demand_rps=x.demand_rps + by) if x.route == route else x for x in p.rows)
    return lay_out(replace(p, rows=rows), None)
