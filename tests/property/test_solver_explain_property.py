"""What an explanation promises, held against the program solved again: replicas that are added, demand that changes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.solver.core.linear import Failed
from headrace.solver.core.problem import Problem
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.optimum import optimum
from headrace.solver.core.program.program import costs_of
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.core.why.explain import explain
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, problems
from solver_problems import row as asks

LP = Glop(1)
SETTINGS = SolverSettings(stay_within=0.0, segments=64, refine_above=1.0)


def tick(p: Problem) -> Tick:
    return solve_tick(p, None, SETTINGS, LP, TickStamp(1, 1, 1_000))


def ways(found: Tick) -> list[tuple[int, int]]:
    """(row, engine) of every engine that a route may use."""
    assert found.decision is not None
    layout = found.decision.layout
    rows: list[int] = layout.pair_row.tolist()
    pools: list[int] = layout.pair_pool.tolist()
    return [(row, e) for row, pool in zip(rows, pools, strict=True) for e in layout.pools[pool].engines]


@st.composite
def mixed(draw: st.DrawFn) -> Problem:
    """Any problem, with rows of unlike work."""
    p = draw(problems())
    return replace(p, rows=tuple(replace(r, work=draw(st.sampled_from([0.25, 1.0, 1.0, 8.0]))) for r in p.rows))


@given(p=mixed(), data=st.data())
def test_one_more_replica_serves_what_was_promised_of_what_is_shed(p: Problem, data: st.DataObject) -> None:
    found = tick(p)
    usable = ways(found)
    if not usable:
        return
    row, e = data.draw(st.sampled_from(usable))
    assert found.decision is not None
    layout = found.decision.layout
    route, engine = layout.rows[row].route, layout.engines[e]
    told = explain(found, route.cluster, engine.engine_id, route.model, route.request_class)
    assert told.replica_worth_rps is not None
    grown = replace(engine, ready_replicas=engine.ready_replicas + 1)
    after = tick(replace(p, engines=tuple(grown if x.engine_id == engine.engine_id else x for x in p.engines)))
    assert after.decision is not None
    served = float(found.decision.plan.shed.sum() - after.decision.plan.shed.sum())
    scale = 1e-6 * (1.0 + float(layout.demand.sum()))
    assert told.replica_worth_rps <= served + scale
    assert served <= engine.capacity_rps_per_replica * engine.factor + scale


@given(problems())
def test_the_price_of_an_engine_in_use_is_between_the_slopes_on_both_sides_of_its_load(p: Problem) -> None:
    found = tick(p)
    assert found.decision is not None
    layout, plan = found.decision.layout, found.decision.plan
    assert plan.prices is not None
    for row, e in ways(found):
        group = int(layout.engine_group[e])
        used = float(plan.load[group] / layout.group_capacity[group])
        if used <= 1e-5 or float(layout.group_capacity[group]) < 1e-3:
            continue
        route = layout.rows[row].route
        told = explain(found, route.cluster, layout.engines[e].engine_id, route.model, route.request_class)
        assert told.price_interval_ms is not None
        low, high = told.price_interval_ms
        price = float(plan.prices.pool[layout.engine_pool[e]])
        slack = 1e-5 * (1.0 + abs(price))
        assert low - slack <= price
        assert (high is None) == (used >= 1.0 - 1e-6)
        assert high is None or price <= high + slack


@given(p=problems(), data=st.data())
def test_a_sliver_more_of_a_route_costs_its_dual_within_the_one_sided_differences(
    p: Problem, data: st.DataObject
) -> None:
    found = tick(p)
    assert found.decision is not None
    layout, plan = found.decision.layout, found.decision.plan
    served = sorted({int(row) for row in layout.pair_row})
    asked = [row for row in served if layout.demand[row] >= 1.0]
    if not asked or plan.prices is None:
        return
    row = data.draw(st.sampled_from(asked))
    route, step = layout.rows[row].route, 1e-3

    def at(change: float) -> float:
        rows = tuple(replace(r, demand_rps=r.demand_rps + change) if r.route == route else r for r in p.rows)
        moved = tick(replace(p, rows=rows))
        assert moved.decision is not None
        return chord_value(moved)

    here = chord_value(found)
    left, right = (here - at(-step)) / step, (at(step) - here) / step
    dual = float(plan.prices.row[row])
    slack = 1e-4 * (1.0 + abs(dual)) + 1e-8 * abs(here) / step
    assert left - slack <= dual <= right + slack


def test_a_route_that_is_shed_whole_is_priced_at_what_shedding_costs() -> None:
    batch = asks("c", 1.0, model="a", request_class="batch", tier=1)
    found = tick(problem([batch, asks("c", 1.0)], [engine("e", capacity=0.3, models=("a", "m"))]))
    assert found.decision is not None
    plan = found.decision.plan
    assert plan.prices is not None
    assert plan.shed.tolist() == pytest.approx([1.0, 0.7])
    # Of two tiers the less important one's refusals cost half; a solver may say the other's price of it.
    less, default = plan.prices.row.tolist()
    assert less == pytest.approx(default / 2)


def chord_value(found: Tick) -> float:
    """The optimum on chords: its slopes are the duals, those of the true cost are not."""
    assert found.decision is not None
    layout = found.decision.layout
    curves = curves_of(layout, SETTINGS)
    solved = optimum(layout, curves, costs_of(layout, curves, SETTINGS.move_price_ms), LP, 1_000_000)
    assert not isinstance(solved, Failed)
    return solved.value
