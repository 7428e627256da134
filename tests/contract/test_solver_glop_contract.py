"""OR-Tools' bulk sparse route does what it is used for: it is no documented API, so every promise is held here."""

from dataclasses import replace

import numpy as np
import pytest

from headrace.solver.core.linear import Failed, LinearProgram, Method, Solution
from headrace.solver.core.program.verify import kkt_problem, kkt_problems, reduced_costs
from headrace.solver.glop import Glop


def two_ways(demand: float = 5.0, third_upper: float = np.inf) -> LinearProgram:
    """Min x0 + 2 x1 + 9 x2, x0 + x1 + x2 = demand, x0 <= 2, x1 <= 3."""
    return LinearProgram(
        cost=np.array([1.0, 2.0, 9.0]),
        lower=np.zeros(3),
        upper=np.array([2.0, 3.0, third_upper]),
        rhs=np.array([demand]),
        row_start=np.array([0, 3], dtype=np.int32),
        columns=np.array([0, 1, 2], dtype=np.int32),
        coefficients=np.ones(3),
    )


@pytest.mark.parametrize("method", list(Method))
def test_values_duals_and_reduced_costs_come_back_with_their_signs(method: Method) -> None:
    (answer,) = Glop().solve([two_ways(4.0)], method)
    assert isinstance(answer, Solution)
    assert answer.values == pytest.approx([2, 2, 0])
    # One more unit of demand costs 2; x0 would save 1 per unit of room; x2 is 7 too dear.
    assert answer.duals == pytest.approx([2])
    assert answer.reduced_costs == pytest.approx([-1, 0, 7])
    assert answer.reduced_costs == pytest.approx(reduced_costs(two_ways(4.0), answer.duals))


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("near", [2.0, 2.0 + 1e-9, 1.7, 0.0, 50.0, -50.0])
def test_duals_to_begin_at_change_no_answer(near: float, method: Method) -> None:
    (answer,) = Glop().solve([replace(two_ways(4.0), near=np.array([near]))], method)
    assert isinstance(answer, Solution)
    assert answer.values == pytest.approx([2, 2, 0])
    assert answer.duals == pytest.approx([2])
    assert answer.reduced_costs == pytest.approx([-1, 0, 7])
    assert kkt_problem(two_ways(4.0), answer) is None


def test_what_cannot_be_solved_is_an_outcome() -> None:
    (answer,) = Glop().solve([two_ways(9.0, third_upper=1.0)], Method.DUAL)
    assert isinstance(answer, Failed)
    assert answer.reason.startswith("GLOP_")


def test_answers_come_in_the_order_of_the_questions_whatever_the_threads() -> None:
    programs = [two_ways(float(d)) for d in range(1, 40)]
    one, many = Glop(threads=1).solve(programs, Method.DUAL), Glop(threads=4).solve(programs, Method.DUAL)
    for a, b, demand in zip(one, many, range(1, 40), strict=True):
        assert isinstance(a, Solution)
        assert isinstance(b, Solution)
        assert a.values.tobytes() == b.values.tobytes()
        assert a.duals.tobytes() == b.duals.tobytes()
        assert a.values.sum() == pytest.approx(demand)


def test_the_check_finds_each_condition_that_an_answer_breaks() -> None:
    program = two_ways(4.0)
    (good,) = Glop().solve([program], Method.DUAL)
    assert isinstance(good, Solution)
    assert kkt_problem(program, good) is None

    def broken(values: list[float], duals: list[float]) -> str:
        return kkt_problem(program, Solution(np.array(values), np.array(duals), np.zeros(3))) or ""

    assert broken([2, 2], [2]).startswith("answer has (2,) values")
    assert broken([2, np.nan, 0], [2]) == "answer is not finite"
    assert broken([2, 1, 0], [2]).startswith("flow is off by 1 RPS")
    assert broken([3, 1, 0], [2]).startswith("a bound is broken by 1 RPS")
    assert broken([2, 2, 0], [10]).startswith("a reduced cost is -1 ms")
    assert broken([2, 0, 2], [2]).startswith("primal 20 and dual 6 are apart")
    no = np.zeros(0)
    empty = LinearProgram(no, no, no, no, np.zeros(1, np.int32), np.zeros(0, np.int32), no)
    assert kkt_problem(empty, Solution(np.zeros(0), np.zeros(0), np.zeros(0))) is None


def test_of_many_answers_each_is_told_what_it_would_be_told_alone() -> None:
    no = np.zeros(0)
    empty = LinearProgram(no, no, no, no, np.zeros(1, np.int32), np.zeros(0, np.int32), no)
    programs = [two_ways(4.0), two_ways(3.0, third_upper=7.0), empty, two_ways(1.0), two_ways(2.5)] * 3
    solved = Glop(1).solve([program for program in programs if program is not empty], Method.DUAL)
    rest = iter([answer for answer in solved if isinstance(answer, Solution)])
    answers = [Solution(no, no, no) if program is empty else next(rest) for program in programs]
    assert kkt_problems(programs, answers) == [None] * len(programs)
    assert kkt_problems([], []) == []
    wrong = {0: [2, 1, 0], 4: [np.nan, 0, 0], 6: [2, 1], 8: [0, 1, 0], 13: [1 + 2e-6, 0, 0]}
    for i, values in wrong.items():
        answers[i] = Solution(np.array(values, dtype=np.float64), answers[i].duals, answers[i].reduced_costs)
    told = kkt_problems(programs, answers)
    assert told == [kkt_problem(program, answer) for program, answer in zip(programs, answers, strict=True)]
    assert [i for i, problem in enumerate(told) if problem is not None] == sorted(wrong)


@pytest.mark.parametrize("method", list(Method))
def test_programs_solved_together_are_solved_as_each_alone(method: Method) -> None:
    starts = [None, np.array([1.7]), np.array([2.0]), None, np.array([-50.0])]
    programs = [replace(two_ways(4.0 - i / 2), near=near) for i, near in enumerate(starts)]
    together = Glop(1).solve(programs, method)
    for program, answer in zip(programs, together, strict=True):
        (alone,) = Glop(1).solve([program], method)
        assert isinstance(answer, Solution)
        assert isinstance(alone, Solution)
        assert answer.values.tobytes() == alone.values.tobytes()
        assert answer.duals.tobytes() == alone.duals.tobytes()
