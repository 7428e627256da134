"""Chords are cut where the answer is: eight are enough on measured curves, and only what is looked at is cut."""

from dataclasses import replace

import numpy as np
import pytest

from headrace.solver.core.policies.lp import plan
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.refine import refined
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.core.why.explain import explain
from headrace.solver.settings import SolverSettings
from measured_fleets import LP, best_cost, measured_fleet, measured_profiles, true_cost
from solver_problems import engine, problem, profile, row

EIGHT = SolverSettings(segments=8, stay_within=0.0, move_price_ms=0.0)
AS_PLACED = replace(EIGHT, refine_above=1.0)


def test_eight_chords_cost_at_most_a_percent_on_measured_curves_and_anchored_ones_a_fifth_of_that() -> None:
    fleets = [measured_fleet(seed, measured_profiles(30)) for seed in range(12)]
    best = [best_cost(fleet) for fleet in fleets]
    eight = [true_cost(fleet, 8)[0] / least - 1.0 for fleet, least in zip(fleets, best, strict=True)]
    anchored = [true_cost(fleet, 8, 4)[0] / least - 1.0 for fleet, least in zip(fleets, best, strict=True)]
    as_placed = [true_cost(fleet, 8, 0, 1.0)[0] / least - 1.0 for fleet, least in zip(fleets, best, strict=True)]
    assert max(eight) <= 0.01
    assert max(anchored) <= 0.002
    assert max(eight) < max(as_placed)


def test_only_chords_that_a_load_lies_on_are_cut() -> None:
    fleet = measured_fleet(0, measured_profiles(30))
    layout = lay_out(fleet, None)
    curves = curves_of(layout, AS_PLACED)
    load = layout.group_capacity * 0.5
    again = refined(layout, AS_PLACED, curves, load)
    for profile_id, before in curves.chords.items():
        after = again.chords[profile_id]
        assert set(before.knots.tolist()) <= set(after.knots.tolist())
        new = sorted(set(after.knots.tolist()) - set(before.knots.tolist()))
        touched = [(a, b) for a, b in zip(before.knots, before.knots[1:], strict=False) if a - 0.01 <= 0.5 <= b + 0.01]
        assert new
        assert all(any(a < knot < b for a, b in touched) for knot in new)
        assert (np.diff(after.slopes) > 0).all()


def test_a_gap_that_is_small_enough_is_left_and_the_plan_says_on_which_chords_it_was_made() -> None:
    layout = lay_out(measured_fleet(1, measured_profiles(30)), None)
    left, cut = plan(layout, AS_PLACED, LP), plan(layout, replace(EIGHT, refine_above=1e-4), LP)
    assert isinstance(left, Plan)
    assert isinstance(cut, Plan)
    assert left.curves is None
    assert cut.curves is not None
    assert left.gap is not None
    assert cut.gap is not None
    assert cut.gap < left.gap


def test_a_better_answer_on_finer_chords_is_taken_at_once_though_its_own_bound_is_worse() -> None:
    early = profile("p", (0.0, 0.09, 0.84, 1.0), (0.02, 0.42, 0.51, 0.51), (0.003, 0.0035, 0.0035, 0.0035), 131.0)
    engines = [engine(f"e{i}", capacity=capacity) for i, capacity in enumerate((15.0, 15.0, 75.0, 5.0))]
    fleet = problem([row("c1", 1.0)], [*engines, engine("e4", capacity=20.0, residency=("eu",))], 3.0, (early,))
    first = solve_tick(fleet, None, SolverSettings(), LP, TickStamp(1, 1, 0))
    second = solve_tick(fleet, first.snapshot, SolverSettings(), LP, TickStamp(1, 2, 500))
    assert second.changed == frozenset()


def test_terms_of_a_price_add_up_on_cut_chords_too() -> None:
    fleet = measured_fleet(1, measured_profiles(30))
    tick = solve_tick(fleet, None, replace(EIGHT, refine_above=1e-4), LP, TickStamp(1, 1, 0))
    for i in range(6):
        told = explain(tick, f"c{i}", f"e{i}")
        assert told.terms is not None
        t = told.terms
        parts = t.network_ms + t.engine_ms + t.congestion_ms + t.scarcity_ms + t.move_ms
        assert parts == pytest.approx(t.marginal_ms, abs=1e-6)
