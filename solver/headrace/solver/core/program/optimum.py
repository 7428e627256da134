"""The best answer to a layout's program, proved: by one program per component, or by sifting where it is large.

Every answer is checked against the optimality conditions before it is believed. A program whose answer fails is solved
again by the next method: dual simplex, primal, without scaling. One that fails all of them fails the whole; a large
one that cannot be sifted is solved as a whole first.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.solver.core.linear import Failed, LinearProgram, LinearSolver, Method, Solution
from headrace.solver.core.program.hub_flow import Share, put_together, read_back
from headrace.solver.core.program.hubs import Hubs, hubs_of
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.parts import Part, parts_of, stretches_of
from headrace.solver.core.program.plan import Curves, Effort, Prices
from headrace.solver.core.program.price_guess import guess_prices, prices_before
from headrace.solver.core.program.program import Component, Costs, components_of
from headrace.solver.core.program.sifting import sift
from headrace.solver.core.program.verify import kkt_problems, network_problem

_METHODS = tuple(Method)
SIFTED = "SIFTED"


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Flow of the pairs (P,), what is shed of the rows (R,), their prices, and which parts do not meet.

    `rung` is the deepest rung of the ladder that was needed; `value` the program's own objective, on chords.
    """

    flow: Floats
    shed: Floats
    prices: Prices
    parts: Sequence[Part]
    rung: str
    value: float
    effort: Effort


def optimum(layout: Layout, curves: Curves, costs: Costs, lp: LinearSolver, sift_above: int) -> Optimum | Failed:
    """Solve; programs of more than `sift_above` pairs of row and pool are sifted."""
    # What is sifted has no bounds on single pairs: a program with pins or steps is solved as a whole.
    if len(layout.pair_row) > sift_above and not layout.problem.pins and not costs.steps.any:
        sifted = _by_sifting(layout, curves, costs, lp)
        if isinstance(sifted, Optimum):
            return sifted
    return _by_components(layout, curves, costs, lp)


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """The proved answer to a stretch of the layout, what it cost, how large its network was, and the deepest method."""

    share: Share
    value: float
    arcs: int
    nodes: int
    method: Method


def _by_sifting(layout: Layout, curves: Curves, costs: Costs, lp: LinearSolver) -> Optimum | Failed:
    parts = parts_of(layout)
    if not parts:
        return Failed("NOTHING_TO_SIFT")
    before = prices_before(layout)

    def sifting(stretch: Sequence[Part]) -> Callable[[LinearSolver], _Stretch | Failed]:
        return lambda solver: _sifted(layout, hubs_of(layout, curves, costs, stretch), before, solver)

    found: list[_Stretch] = []
    for outcome in lp.each([sifting(stretch) for stretch in stretches_of(parts)]):
        if isinstance(outcome, Failed):
            return outcome
        found.append(outcome)
    flow, shed, prices = put_together(layout, costs, [each.share for each in found])
    deepest = max((each.method for each in found), key=_METHODS.index)
    rung = SIFTED if deepest is _METHODS[0] else f"{SIFTED}_{deepest.value}"
    columns, rows = sum(each.arcs for each in found), sum(each.nodes for each in found)
    effort = Effort(columns=columns, rows=rows, components=len(parts), iterations=None)
    return Optimum(flow, shed, prices, parts, rung, sum(each.value for each in found), effort)


def _sifted(layout: Layout, hubs: Hubs, before: Floats, lp: LinearSolver) -> _Stretch | Failed:
    """Sift a network, from the prices that the layout's pools had before, (G,)."""
    deepest = _METHODS[0]

    def solve(programs: Sequence[LinearProgram]) -> Sequence[Solution] | Failed:
        nonlocal deepest
        outcome = solve_all(programs, lp)
        if isinstance(outcome, Failed):
            return outcome
        deepest = max(deepest, outcome[1], key=_METHODS.index)
        return outcome[0]

    sifted = sift(hubs, guess_prices(hubs, before[hubs.pools], lp.pause), solve)
    if isinstance(sifted, Failed):
        return sifted
    arcs = hubs.arcs
    problem = network_problem(arcs, sifted.values, sifted.prices)
    if problem is not None:
        return Failed(f"SIFTED_WRONG: {problem}")
    value = float(np.sum(arcs.cost * sifted.values))
    return _Stretch(read_back(layout, hubs, sifted), value, len(arcs.tail), len(arcs.supply), deepest)


def _by_components(layout: Layout, curves: Curves, costs: Costs, lp: LinearSolver) -> Optimum | Failed:
    components = components_of(layout, curves, costs)
    solved = solve_all([component.program for component in components], lp)
    if isinstance(solved, Failed):
        return solved
    solutions, method = solved
    flow, shed, prices = _read_back(layout, costs, components, solutions)
    effort = _effort([c.program for c in components], len(components), _total(s.iterations for s in solutions))
    value = sum(float(np.sum(c.program.cost * s.values)) for c, s in zip(components, solutions, strict=True))
    return Optimum(flow, shed, prices, components, method.value, value, effort)


def solve_all(programs: Sequence[LinearProgram], lp: LinearSolver) -> tuple[tuple[Solution, ...], Method] | Failed:
    """Go down the ladder's first three rungs; the deepest one that was needed is given back."""
    answers: dict[int, Solution] = {}
    reasons: list[str] = []
    for method in _METHODS:
        open_ = [i for i in range(len(programs)) if i not in answers]
        reasons = []
        outcomes = lp.solve([programs[i] for i in open_], method)
        given = dict(zip(open_, outcomes, strict=True))
        found = {i: outcome for i, outcome in given.items() if isinstance(outcome, Solution)}
        problems = kkt_problems([programs[i] for i in found], list(found.values()))
        wrong = {i: problem for i, problem in zip(found, problems, strict=True) if problem is not None}
        wrong |= {i: outcome.reason for i, outcome in given.items() if isinstance(outcome, Failed)}
        answers |= {i: outcome for i, outcome in found.items() if i not in wrong}
        reasons = [f"component {i}: {why}" for i, why in sorted(wrong.items())]
        if not reasons:
            return tuple(answers[i] for i in range(len(programs))), method
    return Failed(f"LP_UNSOLVED after {', '.join(_METHODS)}: {'; '.join(reasons)[:300]}")


def _read_back(
    layout: Layout, costs: Costs, components: tuple[Component, ...], solutions: tuple[Solution, ...]
) -> tuple[Floats, Floats, Prices]:
    flow = np.zeros(len(layout.pair_row))
    shed = layout.demand.copy()
    row_price = costs.shed.copy()
    pool_price = np.zeros(len(layout.pools))
    for component, solution in zip(components, solutions, strict=True):
        n_new, n_keep, n_row = len(component.pairs), len(component.keep), len(component.rows)
        # A vertex is exact but for the last bits of a division: what is below zero by those is zero.
        values = np.clip(solution.values, component.program.lower, component.program.upper)
        flow[component.pairs] += values[:n_new]
        flow[component.keep] += values[n_new : n_new + n_keep]
        n_beyond = len(component.far) + len(component.core)
        flow[component.far] += values[len(values) - n_beyond : len(values) - len(component.core)]
        flow[component.core] += values[len(values) - len(component.core) :]
        refused = values[len(values) - n_beyond - n_row - len(component.shed_keep) : len(values) - n_beyond]
        shed[component.rows] = refused[:n_row]
        shed[component.shed_keep] += refused[n_row:]
        row_price[component.rows] = solution.duals[:n_row]
        pool_price[component.pools] = 0.0 - solution.duals[n_row:]
    return flow, shed, Prices(row_price, pool_price)


def _effort(programs: Sequence[LinearProgram], components: int, iterations: int | None) -> Effort:
    return Effort(
        columns=sum(program.size[1] for program in programs),
        rows=sum(program.size[0] for program in programs),
        components=components,
        iterations=iterations,
    )


def _total(iterations: Iterable[int | None]) -> int | None:
    known = list(iterations)
    return None if None in known else sum(n for n in known if n is not None)
