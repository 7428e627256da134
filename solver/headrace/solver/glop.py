"""GLOP through OR-Tools' bulk sparse route: the one module that knows OR-Tools.

`fill_model_from_sparse_data` takes whole arrays, 130 times faster than building a model object by object, and `solve`
releases the GIL, so programs run beside each other on threads. Every program is solved cold: an answer depends on
nothing but its own program. Duals that are nearly right are begun at without a basis: with costs less what they already
pay for (c - A^T near, the same optimum but for a constant), the dual simplex has only the rest of the way to go. The
route is not a documented API; a contract test holds it, and the version is pinned.

    task a   thinks │  GLOP  │ thinks │   GLOP   │ ...       of tasks, one has the turn to think at a time (`turn`);
    task b            thinks │  GLOP  │  thinks  │ ...       whoever waits for GLOP has given it away

Tasks think in numpy, on short arrays. A call of less than 0.1 ms is over before a thread that waits for the GIL has
woken up, so that two threads of them are no quicker than one, and burn a third more on waking each other.

The route does not tell simplex iterations; they are reported as not measured.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from ortools.linear_solver.python import model_builder_helper as mbh
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]  # scipy ships no types

from headrace.solver.core.linear import Failed, Floats, LinearProgram, LinearSolver, Made, Method, Solution
from headrace.solver.turn import Turn

_PARAMETERS = {
    Method.DUAL: "use_dual_simplex:true use_preprocessing:false",
    Method.PRIMAL: "use_dual_simplex:false use_preprocessing:false",
    Method.UNSCALED: "use_dual_simplex:false use_preprocessing:false use_scaling:false",
}

ROUNDING = 1e-13
"""A difference of costs below this share of them is none."""
_Asked = tuple[LinearProgram, Floats, Floats | None]
"""A program, the costs that its near duals leave to pay, and these."""


class Glop:
    """Solves independent linear programs with GLOP, on at most `threads` threads, each within `limit_s`.

    `turn` is had by the caller, and given away while programs are solved.
    """

    def __init__(self, threads: int = 2, limit_s: float = 10.0, turn: Turn | None = None) -> None:
        self._threads = max(1, threads)
        self._limit_s = limit_s
        self._turn = turn

    def solve(self, programs: Sequence[LinearProgram], method: Method) -> tuple[Solution | Failed, ...]:
        """Give one outcome per program, in their order; the largest is started first."""
        # Another rung of the ladder is another way: it begins at nothing.
        nears = [program.near if method is Method.DUAL else None for program in programs]
        asked = list(zip(programs, _left_to_pay(programs, nears), nears, strict=True))
        if self._turn is not None:
            return self._solve_in_turn(asked, method, self._turn)
        if self._threads == 1 or len(programs) < 2:
            return tuple(self._solve_one(each, method) for each in asked)
        largest_first = sorted(range(len(programs)), key=lambda i: (-len(programs[i].columns), i))
        with ThreadPoolExecutor(self._threads, thread_name_prefix="glop") as pool:
            running = {i: pool.submit(self._solve_one, asked[i], method) for i in largest_first}
            return tuple(running[i].result() for i in range(len(programs)))

    def each(self, tasks: Sequence[Callable[[LinearSolver], Made]]) -> list[Made]:
        """Do tasks on the same number of threads, each with a solver on one; a single task with this one."""
        if self._threads == 1 or len(tasks) < 2:
            return [task(self) for task in tasks]
        turn = Turn()
        alone = Glop(1, self._limit_s, turn)

        def in_turn(task: Callable[[LinearSolver], Made]) -> Made:
            turn.take()
            try:
                return task(alone)
            finally:
                turn.give()

        with ThreadPoolExecutor(self._threads, thread_name_prefix="stretch") as pool:
            running = [pool.submit(in_turn, task) for task in tasks]
            return [task.result() for task in running]

    def pause(self) -> None:
        """Let another task go first whose programs are solved."""
        if self._turn is not None:
            self._turn.pause()

    def _solve_one(self, asked: _Asked, method: Method) -> Solution | Failed:
        solver, model = self._made(asked, method)
        solver.solve(model)
        return _read(solver, asked)

    def _solve_in_turn(self, asked: Sequence[_Asked], method: Method, turn: Turn) -> tuple[Solution | Failed, ...]:
        """Solve with the turn given away; models are made and read in it, since both need the GIL."""
        made = [self._made(each, method) for each in asked]
        turn.give()
        try:
            for solver, model in made:
                solver.solve(model)
        finally:
            turn.take(answered=True)
        return tuple(_read(solver, each) for (solver, _), each in zip(made, asked, strict=True))

    def _made(self, asked: _Asked, method: Method) -> tuple[mbh.ModelSolverHelper, Any]:
        """Give the library's solver and its model of a program."""
        program, cost, _ = asked
        # The stub types the arrays' shape as their element type.
        model: Any = mbh.ModelBuilderHelper()
        matrix: Any = csr_matrix((program.coefficients, program.columns, program.row_start), shape=program.size)
        model.fill_model_from_sparse_data(program.lower, program.upper, cost, program.rhs, program.rhs, matrix)
        solver = mbh.ModelSolverHelper("GLOP")
        solver.set_solver_specific_parameters(_PARAMETERS[method])
        solver.set_time_limit_in_seconds(self._limit_s)
        return solver, model


def _read(solver: mbh.ModelSolverHelper, asked: _Asked) -> Solution | Failed:
    if solver.status() != mbh.SolveStatus.OPTIMAL:
        return Failed(f"GLOP_{solver.status().name} {solver.status_string()}".strip())
    near, duals = asked[2], np.asarray(solver.dual_values(), dtype=np.float64)
    return Solution(
        values=np.asarray(solver.variable_values(), dtype=np.float64),
        duals=duals if near is None else duals + near,
        reduced_costs=np.asarray(solver.reduced_costs(), dtype=np.float64),
    )


def _left_to_pay(programs: Sequence[LinearProgram], nears: Sequence[Floats | None]) -> list[Floats]:
    """Give cost - A^T near of each program, (n,), without what is left of equal numbers; its costs where there is none.

    Of all at once, one behind the other: most programs are so small that a call costs more than what it does.
    """
    costs = [program.cost for program in programs]
    begun = {i: near for i, near in enumerate(nears) if near is not None}
    if not begun:
        return costs
    some = [programs[i] for i in begun]
    ends = np.cumsum([len(program.cost) for program in some])
    entries = [len(program.columns) for program in some]
    column = np.concatenate([program.columns for program in some]) + np.repeat(np.append(0, ends[:-1]), entries)
    of_rows = np.concatenate([np.diff(program.row_start) for program in some])
    per_entry = np.repeat(np.concatenate(list(begun.values())), of_rows)
    per_entry *= np.concatenate([program.coefficients for program in some])
    cost = np.concatenate([program.cost for program in some])
    paid = np.bincount(column, weights=per_entry, minlength=len(cost)).astype(np.float64, copy=False)
    beyond = cost - paid
    left = np.where(np.abs(beyond) <= ROUNDING * (np.abs(cost) + np.abs(paid)), 0.0, beyond)
    for i, part in zip(begun, np.split(left, ends[:-1]), strict=True):
        costs[i] = part
    return costs
