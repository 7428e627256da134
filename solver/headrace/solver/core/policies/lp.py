"""The least expected end-to-end latency of all traffic within hard capacity: one linear program per component.

How it is solved and proved is `optimum`'s; here its answer becomes a plan: weights that may stand do (`stay`), the gap
to a bound that no plan can be below is certified, and prices are made canonical.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import SnapshotStatus
from headrace.solver.core.answer.refused import everything_refused
from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.program.bound import lower_bound, true_cost
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.optimum import Optimum, optimum
from headrace.solver.core.program.pins import pairs_at_nothing
from headrace.solver.core.program.plan import Curves, Plan, Prices, normalised
from headrace.solver.core.program.pool_split import split_by_slope
from headrace.solver.core.program.program import Costs, costs_of
from headrace.solver.core.program.refine import HELPS, MOST, refined
from headrace.solver.core.program.stay import FOLLOW_MS, Stay, staying
from headrace.solver.settings import SolverSettings

Bools = npt.NDArray[np.bool_]
SOME = 1e-6
"""Share of a route's demand below which a difference is rounding."""


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:
    """Solve, check, and read back flows and prices."""
    solved = _solved(layout, settings, lp, curves_of(layout, settings))
    if isinstance(solved, Failed):
        return solved
    as_asked = solved.curves
    solved, bound = _refined(layout, settings, lp, solved)
    curves, costs, found = solved.curves, solved.costs, solved.found
    best, shed, prices = found.flow, found.shed, found.prices
    stays = staying(layout, curves, found.parts, (best, shed), settings.stay_within)
    flow = _steered(layout, (best, shed), stays, min(settings.period_ms / FOLLOW_MS, 1.0))
    # What is above capacity here is within the program's tolerance; of a small engine it is a multiple.
    load = np.minimum(split_by_slope(layout, curves, flow), layout.group_capacity)
    upper = true_cost(layout, curves, costs, flow, shed, load) + stays.uneven
    gap = _gap(upper, bound)
    # Prices are those of the best answer, also where the weights stay: a pool that it leaves idle is priced as such.
    prices = _canonical(layout, curves, costs, prices, best)
    share, kept = _shares(layout, flow, prices)
    made = Plan(
        status=SnapshotStatus.OPTIMAL,
        rung=found.rung,
        sentence="; ".join(filter(None, (_sentence(layout, shed, gap), _stepped(layout, costs, best, settings)))),
        flow=flow,
        shed=shed,
        load=load,
        share=share,
        kept=kept,
        prices=prices,
        objective=upper,
        gap=gap,
        effort=found.effort,
        curves=None if curves is as_asked else curves,
    )
    if not (stays.rows | stays.slow).any():
        return made
    # Within a pool it is split as the weights that stand are: it is told, and nobody is routed by it.
    answer = replace(made, share=_shares(layout, best, prices)[0])
    return replace(made, kept=kept | stays.rows, answer=answer)


def _steered(layout: Layout, answer: tuple[Floats, Floats], stays: Stay, follow: float) -> Floats:
    """Give the flow, (P,), of rows that stay, that follow an answer slowly, and that take it."""
    best, shed = answer
    if not (stays.rows | stays.slow).any():
        return best
    stood = layout.pair_previous * (layout.demand - shed)[layout.pair_row]
    flow = np.where(stays.slow[layout.pair_row], stood + follow * (best - stood), best) if stays.slow.any() else best
    return np.where(stays.rows[layout.pair_row], stood, flow)


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """The optimum on some chords, a bound below every plan, and its true cost; the bound where nobody cuts chords."""

    curves: Curves
    costs: Costs
    found: Optimum
    lower: float
    upper: float


def _solved(layout: Layout, settings: SolverSettings, lp: LinearSolver, curves: Curves) -> _Solved | Failed:
    costs = costs_of(layout, curves, settings.move_price_ms, settings.max_step, settings.step_price_ms)
    found = optimum(layout, curves, costs, lp, settings.sift_above)
    if isinstance(found, Failed):
        return found
    lower = lower_bound(layout, curves, costs, found.prices)
    if len(layout.pair_row) > settings.sift_above or settings.refine_above >= 1.0:
        return _Solved(curves, costs, found, lower, lower)
    load = np.minimum(split_by_slope(layout, curves, found.flow), layout.group_capacity)
    upper = true_cost(layout, curves, costs, found.flow, found.shed, load)
    return _Solved(curves, costs, found, lower, upper)


def _gap(upper: float, lower: float) -> float:
    return max((upper - lower) / upper, 0.0) if upper > 0.0 else 0.0


def _refined(layout: Layout, settings: SolverSettings, lp: LinearSolver, first: _Solved) -> tuple[_Solved, float]:
    """Cut chords and solve again while that is worth it; give the answer of the least true cost, and the best bound.

    A bound on finer chords may be a worse one, and the answer better all the same: each is judged by itself, or the
    next tick, whose moves cost, would find a better answer to the same question.
    """
    best = again = first
    bound = first.lower
    for _ in range(MOST):
        gap = _gap(best.upper, bound)
        if gap <= settings.refine_above:
            break
        load = split_by_slope(layout, again.curves, again.found.flow)
        finer = _solved(layout, settings, lp, refined(layout, settings, again.curves, load))
        if isinstance(finer, Failed):
            break
        again, bound = finer, max(bound, finer.lower)
        best = again if again.upper < best.upper else best
        if _gap(best.upper, bound) > HELPS * gap:
            break
    return best, bound


def _canonical(layout: Layout, curves: Curves, costs: Costs, prices: Prices, flow: Floats) -> Prices:
    """Price idle pools at what their first request would cost, and rows without demand at their cheapest way.

    Both are optimal duals too; a solver is free to report anything lower for an idle pool. One request more can be
    shed: where all of a row is, a solver may report more than that costs, since it takes the row's demand for a bound.
    """
    first = np.array([float(curves.chords[profile_id].slopes[0]) for profile_id in layout.profiles])
    idle_price = np.full(len(layout.pools), np.inf)
    np.minimum.at(idle_price, layout.group_pool, first[layout.group_number])
    pool = np.where(layout.per_pool(flow) > 0.0, prices.pool, idle_price)
    row = np.minimum(prices.row, costs.shed + costs.shed_move)
    idle = layout.demand <= 0.0
    if idle.any():
        cheapest = layout.least_per_row(layout.pair_network + pool[layout.pair_pool])
        row = np.where(idle & np.isfinite(cheapest), cheapest, row)
    return Prices(row, pool)


def _shares(layout: Layout, flow: Floats, prices: Prices) -> tuple[Floats, Bools]:
    """Give shares of served traffic; a row without demand keeps its weights, or else gets its cheapest pool."""
    share = normalised(layout, flow)
    idle = layout.per_row(flow) <= 0.0
    warm = layout.per_row(layout.pair_previous) > 0.0
    kept = idle & warm & (layout.demand <= 0.0)
    for row in np.flatnonzero(idle).tolist():
        pairs = layout.pairs_of(row)
        if kept[row]:
            share[pairs] = layout.pair_previous[pairs] / layout.pair_previous[pairs].sum()
        elif pairs.stop > pairs.start:
            price = layout.pair_network[pairs] + prices.pool[layout.pair_pool[pairs]]
            share[pairs.start + int(np.argmin(price))] = 1.0
    return share, kept


def _stepped(layout: Layout, costs: Costs, flow: Floats, settings: SolverSettings) -> str:
    """Say how many routes the bound on a tick's step holds back, and how many go beyond it."""
    steps = costs.steps
    if not steps.any:
        return ""
    moved = np.abs(flow - layout.pair_warm)
    far = layout.per_row(steps.beyond(flow, layout.pair_warm)) > SOME * layout.demand
    at_step = np.isfinite(steps.gain) & (np.abs(moved - steps.gain) <= SOME * layout.demand[layout.pair_row])
    at_step |= (steps.core > 0.0) & (np.abs(flow - steps.core) <= SOME * layout.demand[layout.pair_row])
    held = (layout.per_row(at_step.astype(np.float64)) > 0.0) & ~far & (layout.demand > 0.0)
    if not (held.any() or far.any()):
        return ""
    return f"steps of {settings.max_step:.0%}: {int(held.sum())} routes held back, {int(far.sum())} beyond"


def _sentence(layout: Layout, shed: Floats, gap: float) -> str:
    demand, refused = float(layout.requests(layout.demand).sum()), float(layout.requests(shed).sum())
    if 0.0 < demand <= refused * (1.0 + 1e-9):
        held = "held by pins" if pairs_at_nothing(layout).any() else "full"
        return everything_refused(demand, layout.exclusions, held if len(layout.pair_row) else "open to no route")
    routed = f"{demand - refused:.1f} of {demand:.1f} RPS routed at least expected latency, certified within {gap:.2%}"
    if refused > 1e-6:
        tiers = sorted({layout.rows[i].tier for i in np.flatnonzero(shed > 1e-6)}, reverse=True)
        return f"{routed}; {refused:.1f} RPS shed, of tier {', '.join(map(str, tiers))}"
    return routed
