"""Requests of unlike work: engines are loaded with work, requests travel and are refused as requests, prices add up."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.weights import PPM, Snapshot
from headrace.solver.core.linear import Failed, Method, Solution
from headrace.solver.core.problem import Problem
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import Layout, lay_out
from headrace.solver.core.program.optimum import Optimum, optimum
from headrace.solver.core.program.program import components_of, costs_of
from headrace.solver.core.program.verify import kkt_problem
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.core.why.explain import explain
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import highs_objective, problems

LP = Glop(threads=1)
SETTINGS = SolverSettings()
EXACT = replace(SETTINGS, stay_within=0.0, segments=64, refine_above=1.0)
WORKS = st.sampled_from([0.25, 1.0, 1.0, 3.0, 8.0])


@st.composite
def mixed(draw: st.DrawFn) -> Problem:
    """Any problem, with rows of unlike work."""
    p = draw(problems())
    return replace(p, rows=tuple(replace(r, work=draw(WORKS)) for r in p.rows))


def tick_of(p: Problem, rules: SolverSettings = SETTINGS, previous: Snapshot | None = None, version: int = 1) -> Tick:
    return solve_tick(p, previous, rules, LP, TickStamp(1, version, 500 * version))


def layout_of(tick: Tick) -> Layout:
    assert tick.decision is not None
    return tick.decision.layout


@settings(max_examples=150, deadline=None)
@given(mixed(), mixed())
def test_every_answer_is_the_optimum_by_our_own_check_by_highs_and_by_sifting(first: Problem, second: Problem) -> None:
    before = tick_of(first).snapshot
    layout = lay_out(second, before)
    curves = curves_of(layout, SETTINGS)
    costs = costs_of(layout, curves, 30.0, 0.1, 200.0)
    components = components_of(layout, curves, costs)
    for component, answer in zip(components, LP.solve([c.program for c in components], Method.DUAL), strict=True):
        assert isinstance(answer, Solution)
        assert kkt_problem(component.program, answer) is None
        expected = highs_objective(component.program)
        assert component.program.cost @ answer.values == pytest.approx(expected, rel=1e-9, abs=1e-9)
    costs = costs_of(layout, curves, 30.0)
    whole, sifted = (optimum(layout, curves, costs, LP, above) for above in (10**6, -1))
    assert isinstance(whole, Optimum)
    assert isinstance(sifted, Optimum)
    assert sifted.value == pytest.approx(whole.value, rel=1e-9, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(mixed(), st.sampled_from(["lp", "waterfall", "capacity_weighted"]))
def test_no_engine_is_given_more_work_than_its_capacity_and_the_record_tells_requests(p: Problem, policy: str) -> None:
    tick = tick_of(p, replace(SETTINGS, policy=policy))
    assert check_snapshot(tick.snapshot) == ()
    work = {r.route: r.work for r in p.rows}
    load = {e.engine_id: 0.0 for e in p.engines}
    for route in tick.snapshot.routes:
        for target in route.targets:
            served = route.demand_rps * (1 - route.shed_ratio) * work[route.route]
            load[target.engine_id] += served * target.weight_ppm / PPM
    total = sum(r.demand_work for r in p.rows)
    for engine in p.engines:
        assert load[engine.engine_id] <= engine.capacity_rps + 2e-6 * total + 1e-9
    shed = sum(route.shed_ratio * route.demand_rps for route in tick.snapshot.routes)
    assert tick.record.demand_rps == pytest.approx(sum(r.demand_rps for r in p.rows))
    assert tick.record.shed_rps == pytest.approx(shed, abs=1e-6 * (1.0 + tick.record.demand_rps))
    if tick.record.gap is not None:
        assert 0.0 <= tick.record.gap <= 1.0


@settings(max_examples=100, deadline=None)
@given(mixed())
def test_where_the_network_is_free_work_w_at_demand_d_is_demand_w_d_of_work_1(p: Problem) -> None:
    free = replace(p, network_s=dict.fromkeys(p.network_s, 0.0))
    plain = replace(free, rows=tuple(replace(r, demand_rps=r.demand_rps * r.work, work=1.0) for r in free.rows))
    for one, two in zip(tick_of(free).snapshot.routes, tick_of(plain).snapshot.routes, strict=True):
        assert one.shed_ratio == two.shed_ratio
        assert [(t.engine_id, t.weight_ppm, t.utilisation) for t in one.targets] == [
            (t.engine_id, t.weight_ppm, t.utilisation) for t in two.targets
        ]


@settings(max_examples=100, deadline=None)
@given(problems(), st.lists(WORKS, min_size=4, max_size=4))
def test_a_cluster_of_work_w_is_one_of_work_1_that_is_w_times_as_large_and_as_much_nearer(
    p: Problem, works: list[float]
) -> None:
    of = dict(zip([f"c{i}" for i in range(4)], works, strict=True))
    heavy = replace(p, rows=tuple(replace(r, work=of[r.route.cluster]) for r in p.rows))
    plain = replace(
        p,
        rows=tuple(replace(r, demand_rps=r.demand_rps * of[r.route.cluster]) for r in p.rows),
        network_s={(c, s): None if rtt is None else rtt / of[c] for (c, s), rtt in p.network_s.items()},
    )
    rules = replace(EXACT, move_price_ms=0.0)
    one, two = tick_of(heavy, rules), tick_of(plain, rules)
    assert one.record.objective == pytest.approx(two.record.objective, rel=1e-6, abs=1e-6)
    used, expected = (tick.record.utilisation or 0.0 for tick in (one, two))
    assert used == pytest.approx(expected, rel=1e-6, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(mixed())
def test_the_work_that_is_shed_is_the_least_of_the_most_important_tier_then_of_the_next(p: Problem) -> None:
    tick = tick_of(p)
    layout = layout_of(tick)
    assert tick.decision is not None
    found = [
        float(tick.decision.plan.shed[[r.tier == tier for r in layout.rows]].sum())
        for tier in sorted({r.tier for r in layout.rows})
    ]
    assert found == pytest.approx(least_shed(layout), abs=1e-5 * (1.0 + float(layout.demand.sum())))


def least_shed(layout: Layout) -> list[float]:
    """Lexicographic: the least of a tier, with what was found for those before it held; by HiGHS, from the arrays."""
    rows, pairs = len(layout.rows), len(layout.pair_row)
    if not pairs:
        return [float(sum(layout.demand[i] for i in range(rows) if layout.rows[i].tier == t)) for t in tiers(layout)]
    equal = np.zeros((rows, pairs + rows))
    equal[layout.pair_row, np.arange(pairs)] = 1.0
    equal[np.arange(rows), pairs + np.arange(rows)] = 1.0
    most = np.zeros((len(layout.pools), pairs + rows))
    most[layout.pair_pool, np.arange(pairs)] = 1.0
    limit, found = layout.pool_capacity.tolist(), list[float]()
    for tier in tiers(layout):
        cost = np.concatenate((np.zeros(pairs), [float(r.tier == tier) for r in layout.rows]))
        answer = linprog(cost, most, limit, equal, layout.demand, method="highs")
        found.append(float(answer.fun))
        most, limit = np.vstack((most, cost)), [*limit, float(answer.fun) + 1e-9]
    return found


def tiers(layout: Layout) -> list[int]:
    return sorted({r.tier for r in layout.rows})


@settings(max_examples=100, deadline=None)
@given(mixed(), mixed())
def test_the_terms_of_every_way_add_up_to_what_a_request_of_its_route_costs(first: Problem, second: Problem) -> None:
    before = tick_of(first, EXACT)
    for found in (before, tick_of(second, EXACT, before.snapshot, 2)):
        layout = layout_of(found)
        assert found.decision is not None
        plan = found.decision.plan
        assert plan.prices is not None
        for pair in range(len(layout.pair_row)):
            row, pool = int(layout.pair_row[pair]), layout.pools[layout.pair_pool[pair]]
            asked, spec = layout.rows[row], layout.engines[pool.engines[0]]
            told = explain(found, asked.route.cluster, spec.engine_id, asked.route.model, asked.route.request_class)
            terms = told.terms
            assert terms is not None
            parts = terms.network_ms + terms.engine_ms + terms.congestion_ms + terms.scarcity_ms + terms.move_ms
            assert parts == pytest.approx(terms.marginal_ms, rel=1e-6, abs=1e-6)
            rtt_s = second.network_s if found is not before else first.network_s
            assert terms.network_ms == pytest.approx(1000 * (rtt_s[asked.route.cluster, spec.site] or 0.0))
            # A pool in use may leave its dearer engines idle, and those cost more than the row's dual.
            in_use = float(plan.load[layout.engine_group[pool.engines[0]]]) > 0.0
            if in_use and float(plan.flow[pair]) > 1e-6 * float(layout.demand[row]):
                assert terms.marginal_ms == pytest.approx(told.route_marginal_ms, rel=1e-6, abs=1e-4)
            record = found.snapshot.routes[row]
            for target in record.targets:
                if target.engine_id == spec.engine_id and record.version == found.snapshot.commit.version:
                    price = float(plan.prices.pool[layout.pair_pool[pair]])
                    assert target.engine_price_ms == pytest.approx(asked.work * price)


@settings(max_examples=60, deadline=None)
@given(mixed(), st.data())
def test_a_sliver_more_of_a_route_costs_its_dual_within_the_one_sided_differences(
    p: Problem, data: st.DataObject
) -> None:
    found = tick_of(p, EXACT)
    layout = layout_of(found)
    asked = [row for row in sorted(set(layout.pair_row.tolist())) if layout.demand[row] >= 1.0]
    if not asked:
        return
    row = data.draw(st.sampled_from(asked))
    route, step = layout.rows[row].route, 1e-3
    dual = found.snapshot.routes[row].marginal_ms
    assert dual is not None

    def at(change_rps: float) -> float:
        rows = tuple(replace(r, demand_rps=r.demand_rps + change_rps) if r.route == route else r for r in p.rows)
        return value(replace(p, rows=rows))

    here = value(p)
    left, right = (here - at(-step)) / step, (at(step) - here) / step
    slack = 1e-4 * (1.0 + abs(dual)) + 1e-8 * abs(here) / step
    assert left - slack <= dual <= right + slack


def value(p: Problem) -> float:
    """The optimum on chords: its slopes are the duals, those of the true cost are not."""
    layout = lay_out(p, None)
    curves = curves_of(layout, EXACT)
    solved = optimum(layout, curves, costs_of(layout, curves, EXACT.move_price_ms), LP, 1_000_000)
    assert not isinstance(solved, Failed)
    return solved.value


@settings(max_examples=100, deadline=None)
@given(mixed())
def test_the_same_input_again_moves_nothing_and_writes_nothing(p: Problem) -> None:
    first = tick_of(p)
    second = tick_of(p, SETTINGS, first.snapshot, 2)
    assert second.changed == frozenset()
    assert second.record.moved_rps == pytest.approx(0.0, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(mixed(), st.sampled_from(["nearest", "round_robin", "proportional", "pid"]))
def test_policies_that_know_no_work_send_the_shares_that_they_would_send_of_work_1(p: Problem, policy: str) -> None:
    plain = replace(p, rows=tuple(replace(r, work=1.0) for r in p.rows))
    one, two = (tick_of(q, replace(SETTINGS, policy=policy)).snapshot.routes for q in (p, plain))
    assert [[t.weight_ppm for t in r.targets] for r in one] == [[t.weight_ppm for t in r.targets] for r in two]
