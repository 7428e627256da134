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
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from headrace.solver.core.linear import Failed, Method, Solution
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.optimum import optimum
from headrace.solver.core.program.program import Component, components_of, costs_of
from headrace.solver.core.program.verify import kkt_problem
from solver_exact import LP, MOVE_MS, SETTINGS, SIFT, WHOLE, best, broken_even, differs_from_min_cost_flow, mixed_fleet
from solver_problems import engine, highs_objective, problem, profile, row


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
    off = sum(differs_from_min_cost_flow(seed) for seed in range(count))
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
    tried = wrong = outside = seed = 0
    while tried < count:
        seed += 1
        found = broken_even(seed, 5)
        tried, wrong, outside = tried + found[0], wrong + found[1], outside + found[2]
    print(
        f"break-even   {tried} ways: {wrong} wrong, bar 0; {outside} duals outside their one-sided differences, bar 0"
    )


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
