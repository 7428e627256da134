"""Steps in the program, on any problem: the optimum is HiGHS', its bound holds, and no step costs no more than one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.solver.core.linear import Failed
from headrace.solver.core.problem import Problem
from headrace.solver.core.program.bound import lower_bound, true_cost
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.optimum import optimum
from headrace.solver.core.program.pool_split import split_by_slope
from headrace.solver.core.program.program import Component, costs_of
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import highs_objective, problems

LP = Glop(1)
SETTINGS = SolverSettings(stay_within=0.0)


@given(
    p=problems(), step=st.sampled_from([0.01, 0.1, 0.5]), price=st.sampled_from([1.0, 50.0, 5_000.0]), data=st.data()
)
def test_a_program_with_steps_is_solved_to_the_optimum_and_its_bound_holds(
    p: Problem, step: float, price: float, data: st.DataObject
) -> None:
    before = solve_tick(p, None, SETTINGS, LP, TickStamp(1, 1, 1_000)).snapshot
    factor = st.sampled_from([0.0, 0.5, 1.0, 1.7])
    later = replace(p, rows=tuple(replace(r, demand_rps=r.demand_rps * data.draw(factor)) for r in p.rows))
    layout = lay_out(later, before)
    curves = curves_of(layout, SETTINGS)
    costs = costs_of(layout, curves, SETTINGS.move_price_ms, step, price)
    found = optimum(layout, curves, costs, LP, 1_000_000)
    assert not isinstance(found, Failed)
    theirs = sum(highs_objective(part.program) for part in found.parts if isinstance(part, Component))
    assert found.value == pytest.approx(theirs, rel=1e-9, abs=1e-6)
    assert (layout.per_row(found.flow) + found.shed) == pytest.approx(layout.demand, rel=1e-6, abs=1e-6)
    load = np.minimum(split_by_slope(layout, curves, found.flow), layout.group_capacity)
    upper = true_cost(layout, curves, costs, found.flow, found.shed, load)
    assert lower_bound(layout, curves, costs, found.prices) <= upper + 1e-6 * (1.0 + abs(upper))
    plain = costs_of(layout, curves, SETTINGS.move_price_ms)
    free = optimum(layout, curves, plain, LP, 1_000_000)
    assert not isinstance(free, Failed)
    moved, kept = (costs.steps.beyond(flow, layout.pair_warm).sum() for flow in (free.flow, found.flow))
    if costs.steps.any and float(costs.shed.max(initial=0.0)) == float(plain.shed.max(initial=0.0)):
        assert kept <= moved + 1e-6 * (1.0 + moved)
