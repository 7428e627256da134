"""The least expected end-to-end latency of all traffic within hard capacity: one linear program per component.

Every answer is checked against the optimality conditions before it is believed. A component whose answer fails is
solved again by the next method: dual simplex, primal, without scaling. One that fails all of them fails the policy.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import SnapshotStatus
from headrace.solver.core.answer.refused import everything_refused
from headrace.solver.core.linear import Failed, LinearSolver, Method, Solution
from headrace.solver.core.program.bound import lower_bound, true_cost
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Curves, Effort, Plan, Prices, normalised
from headrace.solver.core.program.pool_split import split_by_slope
from headrace.solver.core.program.program import Component, Costs, components_of, costs_of
from headrace.solver.core.program.stay import staying
from headrace.solver.core.program.verify import kkt_problem
from headrace.solver.settings import SolverSettings

Bools = npt.NDArray[np.bool_]

_METHODS = tuple(Method)


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:
    """Solve, check, and read back flows and prices."""
    curves = curves_of(layout, settings)
    costs = costs_of(layout, curves, settings.move_price_ms)
    components = components_of(layout, curves, costs)
    solved = _solve(components, lp)
    if isinstance(solved, Failed):
        return solved
    solutions, method = solved
    flow, shed, prices = _read_back(layout, costs, components, solutions)
    best = flow
    stays = staying(layout, curves, components, (best, shed), settings.stay_within)
    stood = layout.pair_previous * (layout.demand - shed)[layout.pair_row]
    flow = np.where(stays.rows[layout.pair_row], stood, flow)
    # What is above capacity here is within the program's tolerance; of a small engine it is a multiple.
    load = np.minimum(split_by_slope(layout, curves, flow), layout.group_capacity)
    upper = true_cost(layout, curves, costs, flow, shed, load) + stays.uneven
    lower = lower_bound(layout, curves, costs, prices)
    gap = max((upper - lower) / upper, 0.0) if upper > 0.0 else 0.0
    # Prices are those of the best answer, also where the weights stay: a pool that it leaves idle is priced as such.
    prices = _canonical(layout, curves, prices, best)
    share, kept = _shares(layout, flow, prices)
    kept |= stays.rows
    return Plan(
        status=SnapshotStatus.OPTIMAL,
        rung=method.value,
        sentence=_sentence(layout, shed, gap),
        flow=flow,
        shed=shed,
        load=load,
        share=share,
        kept=kept,
        prices=prices,
        objective=upper,
        gap=gap,
        effort=Effort(
            columns=sum(c.program.size[1] for c in components),
            rows=sum(c.program.size[0] for c in components),
            components=len(components),
            iterations=_total(s.iterations for s in solutions),
        ),
    )


def _solve(components: tuple[Component, ...], lp: LinearSolver) -> tuple[tuple[Solution, ...], Method] | Failed:
    """Go down the ladder's first three rungs; the deepest one that was needed is given back."""
    answers: dict[int, Solution] = {}
    reasons: list[str] = []
    for method in _METHODS:
        open_ = [i for i in range(len(components)) if i not in answers]
        reasons = []
        outcomes = lp.solve([components[i].program for i in open_], method)
        for i, outcome in zip(open_, outcomes, strict=True):
            problem = outcome.reason if isinstance(outcome, Failed) else kkt_problem(components[i].program, outcome)
            if problem is None and isinstance(outcome, Solution):
                answers[i] = outcome
            else:
                reasons.append(f"component {i}: {problem}")
        if not reasons:
            return tuple(answers[i] for i in range(len(components))), method
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
        refused = values[len(values) - n_row - len(component.shed_keep) :]
        shed[component.rows] = refused[:n_row]
        shed[component.shed_keep] += refused[n_row:]
        row_price[component.rows] = solution.duals[:n_row]
        pool_price[component.pools] = 0.0 - solution.duals[n_row:]
    return flow, shed, Prices(row_price, pool_price)


def _canonical(layout: Layout, curves: Curves, prices: Prices, flow: Floats) -> Prices:
    """Price idle pools at what their first request would cost, and rows without demand at their cheapest way.

    Both are optimal duals too; a solver is free to report anything lower for an idle pool.
    """
    first = np.array([float(curves.chords[profile_id].slopes[0]) for profile_id in layout.group_profile])
    idle_price = np.full(len(layout.pools), np.inf)
    np.minimum.at(idle_price, layout.group_pool, first)
    pool = np.where(layout.per_pool(flow) > 0.0, prices.pool, idle_price)
    cheapest = np.full(len(layout.rows), np.inf)
    np.minimum.at(cheapest, layout.pair_row, layout.pair_network + pool[layout.pair_pool])
    idle_row = (layout.demand <= 0.0) & np.isfinite(cheapest)
    return Prices(np.where(idle_row, cheapest, prices.row), pool)


def _shares(layout: Layout, flow: Floats, prices: Prices) -> tuple[Floats, Bools]:
    """Give shares of served traffic; a row without demand keeps its weights, or else gets its cheapest pool."""
    share = normalised(layout, flow)
    idle = layout.per_row(flow) <= 0.0
    warm = layout.per_row(layout.pair_previous) > 0.0
    kept = idle & warm & (layout.demand <= 0.0)
    previous = normalised(layout, layout.pair_previous)
    price = layout.pair_network + prices.pool[layout.pair_pool]
    for row in np.flatnonzero(idle).tolist():
        pairs = layout.pairs_of(row)
        if kept[row]:
            share[pairs] = previous[pairs]
        elif pairs.stop > pairs.start:
            share[pairs.start + int(np.argmin(price[pairs]))] = 1.0
    return share, kept


def _sentence(layout: Layout, shed: Floats, gap: float) -> str:
    demand, refused = float(layout.demand.sum()), float(shed.sum())
    if 0.0 < demand <= refused * (1.0 + 1e-9):
        return everything_refused(demand, layout.exclusions, "full" if len(layout.pair_row) else "open to no route")
    routed = f"{demand - refused:.1f} of {demand:.1f} RPS routed at least expected latency, certified within {gap:.2%}"
    if refused > 1e-6:
        tiers = sorted({layout.rows[i].tier for i in np.flatnonzero(shed > 1e-6)}, reverse=True)
        return f"{routed}; {refused:.1f} RPS shed, of tier {', '.join(map(str, tiers))}"
    return routed


def _total(iterations: Iterable[int | None]) -> int | None:
    known = list(iterations)
    return None if None in known else sum(n for n in known if n is not None)
