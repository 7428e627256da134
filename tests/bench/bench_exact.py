"""Is every answer the optimum? Against HiGHS, against min-cost flow in whole numbers, and on badly scaled problems.

python tests/bench/bench_exact.py [--instances 200] [--fuzz 10000] [--breakeven 200]

mixed        random fleets: overload, ties, zero capacity, shared engines, masks; the whole program and the sifted
             one beside HiGHS: relative difference of the objectives, bar 1e-9; the own KKT check passes on all
whole        transport in whole numbers beside OR-Tools' min-cost flow: the same to the last digit
badly scaled latency 1e-3 .. 1e5 ms, demand 1e-6 .. 1e6 RPS: none may fall below the dual simplex's rung
break-even   a way that is not used is made cheaper by just less, and by just more, than its reduced cost: it must
             stay unused, and become used; and each route's dual must lie within its one-sided differences
"""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

sys.path.insert(0, str(Path(__file__).parents[1]))
from headrace.solver.core.linear import Failed, Method, Solution
from headrace.solver.core.problem import Problem
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import Layout, lay_out
from headrace.solver.core.program.optimum import Optimum, optimum
from headrace.solver.core.program.program import Component, components_of, costs_of
from headrace.solver.core.program.verify import kkt_problem
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import coupled_fleet, engine, highs_objective, problem, profile, row

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


def mixed(count: int) -> None:
    worst = {"whole": 0.0, "sifted": 0.0}
    unproved, rungs = 0, Counter[str]()
    for seed in range(count):
        layout = lay_out(mixed_fleet(seed), None)
        whole, sifted = best(layout, WHOLE), best(layout, SIFT)
        programs = [part.program for part in whole.parts if isinstance(part, Component)]
        theirs = sum(highs_objective(q) for q in programs)
        unproved += sum(
            kkt_problem(q, a) is not None
            for q, a in zip(programs, LP.solve(programs, Method.DUAL), strict=True)
            if isinstance(a, Solution)
        )
        rungs[sifted.rung] += 1
        for name, found in (("whole", whole), ("sifted", sifted)):
            worst[name] = max(worst[name], abs(found.value - theirs) / max(1.0, abs(theirs)))
    off = f"whole off HiGHS by {worst['whole']:.1e} at most, sifted by {worst['sifted']:.1e}"
    print(f"mixed        {count} instances: {off}")
    verdict = "met" if max(worst.values()) <= 1e-9 else "MISSED"
    print(f"             bar 1e-9: {verdict}; {unproved} unproved; rungs {dict(rungs)}")


def whole_numbers(count: int) -> None:
    off = 0
    for seed in range(count):
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
        off += any(round(best(layout, above, settings).value, 6) != flow.optimal_cost() for above in (WHOLE, SIFT))
    print(f"whole        {count} instances: {off} differ from min-cost flow, bar 0")


def badly_scaled(count: int) -> None:
    rungs, failed = Counter[str](), 0
    for seed in range(count):
        dice = np.random.default_rng(seed)
        clusters, sites = int(dice.integers(1, 6)), int(dice.integers(1, 6))

        def any_of(low: float, high: float, dice: np.random.Generator = dice) -> float:
            return float(10.0 ** dice.uniform(low, high))

        links: dict[tuple[str, str], float | None] = {
            (f"c{i}", f"s{j}"): any_of(-3, 5) for i in range(clusters) for j in range(sites)
        }
        curves = tuple(
            profile(f"p{k}", (0.0, 0.6, 1.0), tuple(np.cumsum([any_of(-6, 2) for _ in range(3)]))) for k in range(2)
        )
        engines = [
            engine(f"e{j}", f"s{j % sites}", any_of(-6, 6), profile_id=f"p{j % 2}")
            for j in range(int(dice.integers(1, 9)))
        ]
        p = problem(
            [row(f"c{i}", any_of(-6, 6), tier=int(dice.integers(3))) for i in range(clusters)], engines, links, curves
        )
        layout = lay_out(p, None)
        curve = curves_of(layout, SETTINGS)
        found = optimum(layout, curve, costs_of(layout, curve, MOVE_MS), LP, WHOLE)
        if isinstance(found, Failed):
            failed += 1
        else:
            rungs[found.rung] += 1
        programs = [c.program for c in components_of(layout, curve, costs_of(layout, curve, MOVE_MS))]
        abnormal = [a for a in LP.solve(programs, Method.DUAL) if isinstance(a, Failed)]
        rungs["ABNORMAL"] += len(abnormal)
    print(f"badly scaled {count} problems: {failed} unsolved, {rungs['ABNORMAL']} ABNORMAL, bar 0; rungs {dict(rungs)}")


def break_even(count: int) -> None:
    wrong = tried = outside = 0
    seed = 0
    while tried < count:
        seed += 1
        p = coupled_fleet(6, 24, 3, seed=seed)
        layout = lay_out(p, None)
        found = best(layout, WHOLE)
        gap = layout.pair_network + found.prices.pool[layout.pair_pool] - found.prices.row[layout.pair_row]
        open_ = np.flatnonzero((found.flow <= 0.0) & (gap > 1.0) & (gap < layout.pair_network))
        for pair in np.random.default_rng(seed).permutation(open_)[:5].tolist():
            used = [changed(layout, pair, float(gap[pair]) + by) for by in (-1e-3, 1e-3)]
            wrong += used != [False, True]
            tried += 1
        for r in range(0, len(layout.rows), 5):
            step = 1e-4 * float(layout.demand[r])
            up, down = (best(more(p, layout, r, by), WHOLE).value for by in (step, -step))
            low, high = (found.value - down) / step, (up - found.value) / step
            price = float(found.prices.row[r])
            outside += not low - 1e-4 * price <= price <= high + 1e-4 * price
    print(
        f"break-even   {tried} ways: {wrong} wrong, bar 0; {outside} duals outside their one-sided differences, bar 0"
    )


def changed(layout: Layout, pair: int, cheaper_ms: float) -> bool:
    """Say whether a pair is used when its network alone is this much cheaper."""
    network = layout.pair_network.copy()
    network[pair] -= cheaper_ms
    return bool(best(replace(layout, pair_network=network), WHOLE).flow[pair] > 0.0)


def more(p: Problem, layout: Layout, r: int, by: float) -> Layout:
    route = layout.rows[r].route
    rows = tuple(replace(x, demand_rps=x.demand_rps + by) if x.route == route else x for x in p.rows)
    return lay_out(replace(p, rows=rows), None)


def main() -> None:
    """Print a line each."""
    parser = argparse.ArgumentParser()
    for name, default in (("instances", 200), ("fuzz", 10_000), ("breakeven", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    mixed(asked.instances)
    whole_numbers(asked.instances)
    break_even(asked.breakeven)
    badly_scaled(asked.fuzz)


if __name__ == "__main__":
    main()
