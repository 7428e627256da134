"""Whatever is pinned, the program stays feasible and proved, nobody is overloaded, and no bound is broken."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.weights import PPM, SnapshotStatus
from headrace.solver.core.problem import Pin, Problem
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.optimum import Optimum, optimum
from headrace.solver.core.program.pins import pins_of
from headrace.solver.core.program.program import components_of, costs_of
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import highs_objective, problems


@st.composite
def pinned_problems(draw: st.DrawFn) -> Problem:
    made = draw(problems())
    clusters = sorted({row.route.cluster for row in made.rows}) or ["c0"]
    names = [engine.engine_id for engine in made.engines] or ["nobody"]
    several = st.tuples(st.sampled_from(clusters), st.sampled_from(names))
    where = draw(st.sets(several, min_size=1, max_size=4))
    pins: list[Pin] = []
    for cluster, engine_id in sorted(where, key=lambda at: (at[1], at[0])):
        least, most = sorted(draw(st.tuples(st.integers(0, 10), st.integers(0, 10))))
        pins.append(Pin(cluster, engine_id, least / 10, most / 10, "pinned by ann"))
    return replace(made, pins=tuple(pins))


@given(pinned_problems(), problems())
def test_every_tick_keeps_to_the_pins_that_can_be_held_is_proved_and_overloads_nobody(
    made: Problem, first: Problem
) -> None:
    settings, lp = SolverSettings(), Glop()
    before = solve_tick(first, None, settings, lp, TickStamp(1, 1, 1_000)).snapshot
    tick = solve_tick(made, before, settings, lp, TickStamp(1, 2, 1_500))
    assert check_snapshot(tick.snapshot) == ()
    assert tick.decision is not None
    layout, plan = tick.decision.layout, tick.decision.plan
    assert plan.status is SnapshotStatus.OPTIMAL
    assert plan.gap is not None
    assert plan.objective is not None
    assert (plan.load <= layout.group_capacity * (1 + 1e-9)).all()
    pins = pins_of(layout)
    asked = layout.demand[layout.pair_row[pins.pair]]
    slack = 1e-6 * (1.0 + float(layout.demand.max(initial=0.0)))
    assert (plan.flow[pins.pair] >= pins.least * asked - slack).all()
    assert (plan.flow[pins.pair] <= pins.most * asked + slack).all()
    for pair, least, most in zip(pins.pair.tolist(), pins.least.tolist(), pins.most.tolist(), strict=True):
        row = int(layout.pair_row[pair])
        (engine,) = layout.pools[layout.pair_pool[pair]].engines
        route = tick.snapshot.routes[row]
        ppm = next(t.weight_ppm for t in route.targets if t.engine_id == layout.engines[engine].engine_id)
        share = ppm / PPM * (1.0 - route.shed_ratio)
        if any(t.weight_ppm for t in route.targets) and route.demand_rps > 0.0:
            assert least - 1e-3 <= share <= most + 1e-3


@given(pinned_problems())
def test_the_program_with_pins_has_the_same_optimum_by_another_solver(made: Problem) -> None:
    settings = SolverSettings()
    layout = lay_out(made, None)
    curves = curves_of(layout, settings)
    costs = costs_of(layout, curves, settings.move_price_ms)
    found = optimum(layout, curves, costs, Glop(), settings.sift_above)
    assert isinstance(found, Optimum)
    by_highs = sum(highs_objective(c.program) for c in components_of(layout, curves, costs))
    assert found.value == pytest.approx(by_highs, rel=1e-6, abs=1e-6)
