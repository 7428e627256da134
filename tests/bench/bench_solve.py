"""A whole tick of 100 clusters x 3,000 engines x 50 models, and the same programs by HiGHS and by a pywraplp monolith.

    python tests/bench/bench_solve.py [--clusters 100] [--engines 3000] [--models 50] [--sites 20] [--repeats 5]
    python tests/bench/bench_solve.py --coupled next|scattered [--whole-s 120]

`--coupled`: 30 % of the engines serve the next model too, or any other one: one component. Beside sifting, the whole
program by GLOP and the one with hubs by HiGHS, each for so many seconds at most; bar: proved optimal in 2 s.

One run, one machine, the same problem for all three. "whole tick" is problem to sealed snapshot: layout, programs,
GLOP, checks, weights, reasons, digest. The first tick writes every route; the next has 3 % noise on demand, as a live
one does. The peers get the reduced programs (pools, groups) that the layout makes; the last line is the program as one
would write it down, an engine at a time, object by object.
"""

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from ortools.linear_solver import pywraplp

sys.path.insert(0, str(Path(__file__).parents[1]))
from headrace.solver.core.linear import Failed, LinearProgram, Method, Solution
from headrace.solver.core.problem import Problem
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.hubs import Hubs, hubs_of
from headrace.solver.core.program.layout import Floats, Layout, lay_out
from headrace.solver.core.program.optimum import optimum, solve_all
from headrace.solver.core.program.price_guess import guess_prices, prices_before
from headrace.solver.core.program.program import components_of, costs_of
from headrace.solver.core.program.sifting import sift
from headrace.solver.core.program.verify import kkt_problem
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import coupled_fleet, engine, highs_objective, highs_within, problem, profile, row


def fleet(size: argparse.Namespace, dice: np.random.Generator) -> Problem:
    """Engines over sites and models at random, demand at 70 % of each model's capacity, four curves."""
    knots = tuple(np.linspace(0, 1, 11))
    curves = tuple(
        profile(
            f"p{i}",
            knots,
            tuple(0.05 / (1 - (0.6 + 0.1 * i) * np.array(knots))),
            tuple(0.008 + 0.006 * np.array(knots)),
        )
        for i in range(4)
    )
    engines = [
        engine(
            f"e{i:05}",
            f"s{i % size.sites}",
            float(dice.uniform(5, 40)),
            models=(f"m{(i // size.sites) % size.models}",),
            profile_id=f"p{i % 4}",
        )
        for i in range(size.engines)
    ]
    capacity = {f"m{k}": sum(e.capacity_rps for e in engines if e.models == (f"m{k}",)) for k in range(size.models)}
    rows = [
        row(f"c{c}", float(share) * 0.7 * capacity[f"m{k}"], f"m{k}")
        for k in range(size.models)
        for c, share in enumerate(dice.dirichlet(np.full(size.clusters, 0.7)))
    ]
    links = {(f"c{c}", f"s{s}"): float(dice.uniform(2, 200)) for c in range(size.clusters) for s in range(size.sites)}
    return problem(rows, engines, links, curves)


def noisy(p: Problem, dice: np.random.Generator) -> Problem:
    """The same with 3 % noise on demand."""
    return replace(p, rows=tuple(replace(r, demand_rps=r.demand_rps * dice.uniform(0.97, 1.03)) for r in p.rows))


def timed(repeats: int, work: Callable[[], object]) -> tuple[float, float]:
    """Median and best milliseconds."""
    took: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took), min(took)


def monolith(layout: Layout, settings: SolverSettings) -> float:
    """The program as one writes it down: a variable per row and engine, segments per engine, object by object."""
    curves = curves_of(layout, settings)
    costs = costs_of(layout, curves, settings.move_price_ms)
    solver = pywraplp.Solver.CreateSolver("GLOP")
    objective = solver.Objective()
    flow_of_engine = []
    for e, spec in enumerate(layout.engines):
        constraint = solver.Constraint(0.0, 0.0)
        flow_of_engine.append(constraint)
        chords = curves.chords[spec.profile_id]
        for slope, width in zip(chords.slopes.tolist(), chords.widths.tolist(), strict=True):
            y = solver.NumVar(0.0, width * float(layout.engine_capacity[e]), "")
            objective.SetCoefficient(y, slope)
            constraint.SetCoefficient(y, -1.0)
    rows = [solver.Constraint(d, d) for d in layout.demand.tolist()]
    for r, constraint in enumerate(rows):
        z = solver.NumVar(0.0, float(layout.demand[r]), "")
        objective.SetCoefficient(z, float(costs.shed[r]))
        constraint.SetCoefficient(z, 1.0)
    for r, g, ms in zip(layout.pair_row.tolist(), layout.pair_pool.tolist(), layout.pair_network.tolist(), strict=True):
        for e in layout.pools[g].engines:
            x = solver.NumVar(0.0, solver.infinity(), "")
            objective.SetCoefficient(x, ms)
            rows[r].SetCoefficient(x, 1.0)
            flow_of_engine[e].SetCoefficient(x, 1.0)
    objective.SetMinimization()
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        raise SystemExit("the monolith is not optimal")
    print(f"    {solver.NumVariables()} columns, {solver.NumConstraints()} rows")
    return objective.Value()


def bar(name: str, ratio: float, least: float) -> None:
    """Print a ratio beside what it has to be."""
    print(f"    {name}: {ratio:.2f} times, bar {least:g}: {'met' if ratio >= least else 'MISSED'}")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    for name, default in (("clusters", 100), ("engines", 3000), ("models", 50), ("sites", 20), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--no-monolith", action="store_true")
    parser.add_argument("--coupled", choices=("next", "scattered"), help="which second model engines serve")
    parser.add_argument("--whole-s", type=float, default=120.0, help="most seconds for the whole coupled program")
    size = parser.parse_args()
    if size.coupled:
        coupled(size)
        return
    settings, glop = SolverSettings(), Glop()
    p = fleet(size, np.random.default_rng(7))
    first = solve_tick(p, None, settings, glop, TickStamp(1, 1, 0))
    record = first.record
    print(f"{record.columns} columns, {record.rows} rows, {record.components} components, gap {record.gap:.3%}")
    line(
        "whole tick, first: every route written",
        *timed(2, lambda: solve_tick(p, None, settings, glop, TickStamp(1, 1, 0))),
    )
    dice = np.random.default_rng(8)
    later = [noisy(p, dice) for _ in range(size.repeats)]
    queue = iter(later)
    line(
        "whole tick, later: 3 % noise",
        *timed(size.repeats, lambda: solve_tick(next(queue), first.snapshot, settings, glop, TickStamp(1, 2, 0))),
    )
    line(
        "whole tick, later: nothing new",
        *timed(size.repeats, lambda: solve_tick(p, first.snapshot, settings, glop, TickStamp(1, 2, 0))),
    )
    beat = TickStamp(1, 2, 0, elapsed_us=lambda: int(time.perf_counter() * 1e6))
    phases = solve_tick(later[0], first.snapshot, settings, glop, beat)
    r = phases.record
    print(
        f"    layout {r.build_us / 1000:.0f} ms, policy {r.solve_us / 1000:.0f} ms, "
        f"weights and seal {r.check_us / 1000:.0f} ms; "
        f"{len(phases.changed)} of {len(phases.snapshot.routes)} routes changed"
    )
    layout = lay_out(p, None)
    curves = curves_of(layout, settings)
    programs = [c.program for c in components_of(layout, curves, costs_of(layout, curves, settings.move_price_ms))]
    two = timed(size.repeats, lambda: glop.solve(programs, Method.DUAL))
    one = timed(size.repeats, lambda: Glop(1).solve(programs, Method.DUAL))
    highs = timed(min(size.repeats, 2), lambda: [highs_objective(q) for q in programs])
    line("GLOP, reduced, bulk sparse, 2 threads", *two)
    line("GLOP, reduced, bulk sparse, 1 thread", *one)
    line("HiGHS, reduced, 1 thread", *highs)
    bar("2 threads over 1, best", one[1] / two[1], 1.5)
    bar("HiGHS over GLOP on one thread, best", highs[1] / one[1], 1.0)
    costs = costs_of(layout, curves, settings.move_price_ms)
    plan = timed(size.repeats, lambda: optimum(layout, curves, costs, glop, settings.sift_above))
    line("this solver, programs built, solved and proved", *plan)
    ours = objective(glop, programs)
    theirs = sum(highs_objective(q) for q in programs)
    print(f"    objectives {ours:.6f} and {theirs:.6f}: apart by {abs(ours / theirs - 1):.1e}")
    if not size.no_monolith:
        values: list[float] = []
        slow = timed(1, lambda: values.append(monolith(layout, settings)))
        line("pywraplp, engine by engine, object by object", *slow)
        print(f"    objectives {ours:.6f} and {values[0]:.6f}: apart by {abs(ours / values[0] - 1):.1e}")
        bar("monolith over this solver, best", slow[1] / plan[1], 40.0)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, of everything above")


def coupled(size: argparse.Namespace) -> None:
    """Print the table of the coupled fleet."""
    p = coupled_fleet(
        size.clusters, size.engines, size.models, seed=7, sites=size.sites, scattered=size.coupled == "scattered"
    )
    settings, glop = SolverSettings(), Glop(1, limit_s=900.0)
    layout = lay_out(p, None)
    curves = curves_of(layout, settings)
    costs = costs_of(layout, curves, settings.move_price_ms)
    start = time.process_time()
    hubs = hubs_of(layout, curves, costs)
    took, value = sifted(hubs, prices_before(layout), glop, start, "sifted, cold")
    first = solve_tick(p, None, settings, glop, TickStamp(1, 1, 0))
    later = lay_out(noisy(p, np.random.default_rng(8)), first.snapshot)
    start = time.process_time()
    sifted(
        hubs_of(later, curves, costs_of(later, curves, settings.move_price_ms)),
        prices_before(later),
        glop,
        start,
        "sifted, 3 % noise",
    )
    (component,) = components_of(layout, curves, costs)
    print(
        f"{component.program.size[1]} columns, {component.program.size[0]} rows, {len(hubs.arcs.tail)} arcs with hubs"
    )
    start = time.process_time()
    (answer,) = Glop(1, limit_s=size.whole_s).solve([component.program], Method.DUAL)
    whole = time.process_time() - start
    theirs = float(component.program.cost @ answer.values) if isinstance(answer, Solution) else None
    peer("GLOP, the whole program", whole, theirs, value)
    start = time.process_time()
    theirs = highs_within(hubs.arcs.program(), size.whole_s)
    highs = time.process_time() - start
    peer("HiGHS, the program with hubs", highs, theirs, value)
    print(f"sifting takes {took:.2f} s of CPU: {whole / took:.0f} times less than GLOP, {highs / took:.0f} than HiGHS")
    bar("2 s over this solver, cold", 2.0 / took, 1.0)


def peer(name: str, took_s: float, objective: float | None, ours: float) -> None:
    """Print what another solver took, and found."""
    found = "not solved in that time" if objective is None else f"apart by {abs(objective / ours - 1):.1e}"
    print(f"{name:48} {took_s * 1000:9.0f} ms CPU, {found}", flush=True)


def sifted(hubs: Hubs, before: Floats, glop: Glop, start: float, name: str) -> tuple[float, float]:
    """Sift, and print when the first answer was there and how good it was; gives CPU seconds and the objective."""
    found: list[float] = []

    def solve(programs: Sequence[LinearProgram]) -> Sequence[Solution] | Failed:
        outcome = solve_all(programs, glop)
        found.append(time.process_time() - start)
        return outcome if isinstance(outcome, Failed) else outcome[0]

    answer = sift(hubs, guess_prices(hubs, before), solve)
    if isinstance(answer, Failed):
        raise SystemExit(answer.reason)
    problem = kkt_problem(hubs.arcs.program(), Solution(answer.values, answer.prices, answer.values))
    took = time.process_time() - start
    value = float(np.sum(hubs.arcs.cost * answer.values))
    print(
        f"{name:48} {took * 1000:9.0f} ms CPU, objective {value:.6f}, {answer.rounds} programs, "
        f"the first after {found[0] * 1000:.0f} ms; {'proved' if problem is None else problem}"
    )
    return took, value


def objective(glop: Glop, programs: list[LinearProgram]) -> float:
    """Sum of the optima."""
    total = 0.0
    for program, answer in zip(programs, glop.solve(programs, Method.DUAL), strict=True):
        if not isinstance(answer, Solution):
            raise SystemExit(answer.reason)
        total += float(program.cost @ answer.values)
    return total


def line(name: str, median_ms: float, best_ms: float) -> None:
    """Print one row."""
    print(f"{name:48} {median_ms:9.0f} ms median {best_ms:9.0f} ms best", flush=True)


if __name__ == "__main__":
    main()
