"""Invariants of a tick over random problems: feasible, optimal, exact, free of order, still when nothing changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.snapshot_file import dump_snapshot
from headrace.schemas.weights import PPM, SnapshotStatus
from headrace.solver.core.linear import Method, Solution
from headrace.solver.core.policies import policy_names
from headrace.solver.core.problem import Problem
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.eligibility import exclusion
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.optimum import Optimum, optimum
from headrace.solver.core.program.program import components_of, costs_of
from headrace.solver.core.program.verify import kkt_problem
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.core.why.explain import explain
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import highs_objective, problems

GLOP = Glop(threads=1)
SETTINGS = SolverSettings()


def tick_of(problem: Problem, **changes: object) -> Tick:
    return solve_tick(problem, None, replace(SETTINGS, **changes), GLOP, TickStamp(1, 1, 1000))  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(problems())
def test_every_answer_is_the_optimum_by_our_own_check_and_by_highs(problem: Problem) -> None:
    layout = lay_out(problem, None)
    curves = curves_of(layout, SETTINGS)
    components = components_of(layout, curves, costs_of(layout, curves, 30.0))
    for method in Method:
        for component, answer in zip(components, GLOP.solve([c.program for c in components], method), strict=True):
            assert isinstance(answer, Solution)
            assert kkt_problem(component.program, answer) is None
            assert component.program.cost @ answer.values == pytest.approx(
                highs_objective(component.program), rel=1e-9, abs=1e-9
            )


@settings(max_examples=100, deadline=None)
@given(problems(), problems())
def test_sifting_finds_what_the_whole_program_finds(first: Problem, second: Problem) -> None:
    before = tick_of(first, sift_above=10**6).snapshot
    for problem, previous in ((first, None), (second, before)):
        layout = lay_out(problem, previous)
        curves = curves_of(layout, SETTINGS)
        costs = costs_of(layout, curves, 30.0)
        whole, sifted = (optimum(layout, curves, costs, GLOP, above) for above in (10**6, -1))
        assert isinstance(whole, Optimum)
        assert isinstance(sifted, Optimum)
        assert sifted.rung == "SIFTED" or not whole.parts
        assert layout.per_row(sifted.flow) + sifted.shed == pytest.approx(layout.demand, abs=1e-6)
        assert sifted.value == pytest.approx(whole.value, rel=1e-9, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(problems(), st.sampled_from(["convex", "none"]), st.sampled_from([0.0, 1e5]))
def test_demand_is_routed_or_shed_and_no_engine_is_above_its_capacity(
    problem: Problem, engine_cost: str, headroom: float
) -> None:
    tick = tick_of(problem, engine_cost=engine_cost, headroom_price_ms=headroom)
    assert check_snapshot(tick.snapshot) == ()
    assert tick.snapshot.commit.status is SnapshotStatus.OPTIMAL
    load = {e.engine_id: 0.0 for e in problem.engines}
    asked = {r.route: r for r in problem.rows}
    for route in tick.snapshot.routes:
        assert sum(t.weight_ppm for t in route.targets) in (0, PPM)
        for target in route.targets:
            load[target.engine_id] += route.demand_rps * (1 - route.shed_ratio) * target.weight_ppm / PPM
            engine = next(e for e in problem.engines if e.engine_id == target.engine_id)
            assert exclusion(problem, asked[route.route], engine) is None
    total = sum(r.demand_rps for r in problem.rows)
    for engine in problem.engines:
        # A weight is rounded to 1 ppm of its route's demand.
        assert load[engine.engine_id] <= engine.capacity_rps + 2e-6 * total + 1e-9
    assert tick.record.gap is not None
    assert 0.0 <= tick.record.gap <= 1.0


@settings(max_examples=100, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_and_the_number_of_threads_do_not_matter(problem: Problem, dice: object) -> None:
    def shuffled(items: tuple[object, ...]) -> tuple[object, ...]:
        order = list(items)
        dice.shuffle(order)  # type: ignore[attr-defined]
        return tuple(order)

    other = Problem(
        shuffled(problem.rows),  # type: ignore[arg-type]
        shuffled(problem.engines),  # type: ignore[arg-type]
        dict(shuffled(tuple(problem.network_s.items()))),  # type: ignore[arg-type]
        dict(shuffled(tuple(problem.profiles.items()))),  # type: ignore[arg-type]
    )
    one = solve_tick(problem, None, SETTINGS, Glop(threads=1), TickStamp(1, 1, 1000))
    two = solve_tick(other, None, SETTINGS, Glop(threads=4), TickStamp(1, 1, 1000))
    assert dump_snapshot(one.snapshot) == dump_snapshot(two.snapshot)
    assert one.record == two.record


@settings(max_examples=150, deadline=None)
@given(problems())
def test_the_same_input_again_moves_nothing_and_writes_nothing(problem: Problem) -> None:
    first = tick_of(problem)
    second = solve_tick(problem, first.snapshot, SETTINGS, GLOP, TickStamp(1, 2, 1500))
    assert second.changed == frozenset()
    assert second.removed == frozenset()
    assert second.snapshot.routes == first.snapshot.routes
    assert second.record.moved_rps == pytest.approx(0.0, abs=1e-9)
    assert check_snapshot(second.snapshot) == ()


@settings(max_examples=100, deadline=None)
@given(problems(), problems())
def test_a_chain_of_ticks_stays_sound_and_says_what_changed(first: Problem, second: Problem) -> None:
    before = tick_of(first)
    after = solve_tick(second, before.snapshot, SETTINGS, GLOP, TickStamp(1, 2, 1500))
    assert check_snapshot(after.snapshot) == ()
    old = {r.key: r for r in before.snapshot.routes}
    new = {r.key: r for r in after.snapshot.routes}
    assert after.changed == {key for key, route in new.items() if old.get(key) != route}
    assert after.removed == old.keys() - new.keys()
    assert all(new[key].version == 2 for key in after.changed)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_ids_renamed_in_the_same_order_give_the_same_weights(problem: Problem) -> None:
    renamed = replace(problem, engines=tuple(replace(e, engine_id=f"zone-9/{e.engine_id}") for e in problem.engines))
    one, two = tick_of(problem), tick_of(renamed)
    for a, b in zip(one.snapshot.routes, two.snapshot.routes, strict=True):
        assert [(f"zone-9/{t.engine_id}", t.weight_ppm) for t in a.targets] == [
            (t.engine_id, t.weight_ppm) for t in b.targets
        ]


@settings(max_examples=100, deadline=None)
@given(problems(), problems(), st.sampled_from(policy_names()))
def test_every_policy_gives_a_sound_snapshot(first: Problem, second: Problem, policy: str) -> None:
    chosen = replace(SETTINGS, policy=policy)
    before = solve_tick(first, None, chosen, GLOP, TickStamp(1, 1, 1000))
    assert check_snapshot(before.snapshot) == ()
    after = solve_tick(second, before.snapshot, chosen, GLOP, TickStamp(1, 2, 2000))
    assert check_snapshot(after.snapshot) == ()


# Four problems in a hundred have so many ways that shrinking one takes minutes: an example is told as it was found.
@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(problems(), problems())
def test_the_parts_of_a_price_add_up_to_the_dual_of_every_engine_in_use(first: Problem, second: Problem) -> None:
    before = tick_of(first)
    tick = solve_tick(second, before.snapshot, SETTINGS, GLOP, TickStamp(1, 2, 2000))
    assert tick.decision is not None
    layout, plan = tick.decision.layout, tick.decision.plan
    for route in tick.snapshot.routes:
        for engine in layout.engines:
            found = explain(tick, route.cluster, engine.engine_id, route.model, route.request_class)
            assert len(found.sentences) == 3 + bool(found.protections)
            assert (found.terms is None) == (found.excluded is not None)
            if found.terms is None:
                continue
            t = found.terms
            parts = t.network_ms + t.engine_ms + t.congestion_ms + t.scarcity_ms + t.move_ms
            assert parts == pytest.approx(t.marginal_ms, abs=1e-6, rel=1e-9)
            row = [r.route for r in layout.rows].index(route.route)
            place = [e.engine_id for e in layout.engines].index(engine.engine_id)
            pool = layout.engine_pool[place]
            pair = np.flatnonzero((layout.pair_row == row) & (layout.pair_pool == pool))[0]
            # A pool in use may leave its dearer engines idle, and those cost more than the row's dual.
            if plan.flow[pair] > 1e-6 and plan.load[layout.engine_group[place]] > 1e-6:
                assert found.route_marginal_ms is not None
                if plan.kept[row]:
                    # Where weights stand though a slightly better answer is known, they may be on the dearer way.
                    assert t.marginal_ms >= found.route_marginal_ms - 1e-6
                else:
                    assert t.marginal_ms == pytest.approx(found.route_marginal_ms, abs=1e-6, rel=1e-9)
                assert -1e-6 <= t.move_ms <= SETTINGS.move_price_ms + 1e-6
            assert all(a.gap_ms >= -1e-5 for a in found.alternatives) or layout.demand[row] == 0.0
