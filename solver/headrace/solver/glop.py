"""GLOP through OR-Tools' bulk sparse route: the one module that knows OR-Tools.

`fill_model_from_sparse_data` takes whole arrays, 130 times faster than building a model object by object, and `solve`
releases the GIL, so programs run beside each other on threads. Every program is solved cold: an answer depends on
nothing but its own program. Duals that are nearly right are begun at without a basis: with costs less what they already
pay for (c - A^T near, the same optimum but for a constant), the dual simplex has only the rest of the way to go. The
route is not a documented API; a contract test holds it, and the version is pinned.

The route does not tell simplex iterations; they are reported as not measured.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from ortools.linear_solver.python import model_builder_helper as mbh
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]  # scipy ships no types

from headrace.solver.core.linear import Failed, Floats, LinearProgram, LinearSolver, Made, Method, Solution

_PARAMETERS = {
    Method.DUAL: "use_dual_simplex:true use_preprocessing:false",
    Method.PRIMAL: "use_dual_simplex:false use_preprocessing:false",
    Method.UNSCALED: "use_dual_simplex:false use_preprocessing:false use_scaling:false",
}

ROUNDING = 1e-13
"""A difference of costs below this share of them is none."""


class Glop:
    """Solves independent linear programs with GLOP, on at most `threads` threads, each within `limit_s`."""

    def __init__(self, threads: int = 2, limit_s: float = 10.0) -> None:
        self._threads = max(1, threads)
        self._limit_s = limit_s

    def solve(self, programs: Sequence[LinearProgram], method: Method) -> tuple[Solution | Failed, ...]:
        """Give one outcome per program, in their order; the largest is started first."""
        if self._threads == 1 or len(programs) < 2:
            return tuple(self._solve_one(program, method) for program in programs)
        largest_first = sorted(range(len(programs)), key=lambda i: (-len(programs[i].columns), i))
        with ThreadPoolExecutor(self._threads, thread_name_prefix="glop") as pool:
            running = {i: pool.submit(self._solve_one, programs[i], method) for i in largest_first}
            return tuple(running[i].result() for i in range(len(programs)))

    def each(self, tasks: Sequence[Callable[[LinearSolver], Made]]) -> list[Made]:
        """Do tasks on the same number of threads, each with a solver on one; a single task with this one."""
        if self._threads == 1 or len(tasks) < 2:
            return [task(self) for task in tasks]
        alone = Glop(1, self._limit_s)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="stretch") as pool:
            running = [pool.submit(task, alone) for task in tasks]
            return [task.result() for task in running]

    def _solve_one(self, program: LinearProgram, method: Method) -> Solution | Failed:
        # The stub types the arrays' shape as their element type.
        model: Any = mbh.ModelBuilderHelper()
        matrix: Any = csr_matrix((program.coefficients, program.columns, program.row_start), shape=program.size)
        # Another rung of the ladder is another way: it begins at nothing.
        near = program.near if method is Method.DUAL else None
        cost = program.cost if near is None else _beyond(program.cost, _paid(program, near))
        model.fill_model_from_sparse_data(program.lower, program.upper, cost, program.rhs, program.rhs, matrix)
        solver = mbh.ModelSolverHelper("GLOP")
        solver.set_solver_specific_parameters(_PARAMETERS[method])
        solver.set_time_limit_in_seconds(self._limit_s)
        solver.solve(model)
        if solver.status() != mbh.SolveStatus.OPTIMAL:
            return Failed(f"GLOP_{solver.status().name} {solver.status_string()}".strip())
        duals = np.asarray(solver.dual_values(), dtype=np.float64)
        return Solution(
            values=np.asarray(solver.variable_values(), dtype=np.float64),
            duals=duals if near is None else duals + near,
            reduced_costs=np.asarray(solver.reduced_costs(), dtype=np.float64),
        )


def _paid(program: LinearProgram, near: Floats) -> Floats:
    """Give A^T near, (n,); scipy takes longer to make the transposed matrix than this takes."""
    per_entry = program.coefficients * np.repeat(near, np.diff(program.row_start))
    return np.bincount(program.columns, weights=per_entry, minlength=len(program.cost)).astype(np.float64, copy=False)


def _beyond(cost: Floats, priced: Floats) -> Floats:
    """Give cost - A^T near, (n,), without what is left of equal numbers."""
    beyond = cost - priced
    return np.where(np.abs(beyond) <= ROUNDING * (np.abs(cost) + np.abs(priced)), 0.0, beyond)
