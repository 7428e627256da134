"""Answers are optimal and prices are what they say: the short version of `bench_exact`, which runs hundreds of each."""

import pytest

from headrace.solver.core.linear import Method, Solution
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.program import Component
from headrace.solver.core.program.verify import kkt_problem
from solver_exact import LP, SIFT, WHOLE, best, broken_even, differs_from_min_cost_flow, mixed_fleet
from solver_problems import highs_objective


@pytest.mark.parametrize("seed", range(10))
def test_plain_overloaded_tied_holed_and_masked_fleets_cost_what_highs_says_whole_and_sifted(seed: int) -> None:
    layout = lay_out(mixed_fleet(seed), None)
    whole, sifted = best(layout, WHOLE), best(layout, SIFT)
    programs = [part.program for part in whole.parts if isinstance(part, Component)]
    for program, answer in zip(programs, LP.solve(programs, Method.DUAL), strict=True):
        assert isinstance(answer, Solution)
        assert kkt_problem(program, answer) is None
    assert whole.value == pytest.approx(sum(highs_objective(program) for program in programs), rel=1e-9)
    assert sifted.value == pytest.approx(whole.value, rel=1e-9)


def test_whole_numbers_cost_what_min_cost_flow_says() -> None:
    assert not any(differs_from_min_cost_flow(seed) for seed in range(5))


def test_a_way_is_used_from_its_break_even_on_and_duals_lie_within_one_sided_differences() -> None:
    tried, wrong, outside = broken_even(seed=1, most=5)
    assert (tried, wrong, outside) == (5, 0, 0)
