"""Is an answer the optimum? The Karush-Kuhn-Tucker conditions of min c.x, A x = b, l <= x <= u, from the arrays alone.

    |A x - b| <= tol,  l - tol <= x <= u + tol,  reduced cost >= -tol where x may still grow,
    |c.x - (b.y + sum of min over [l, u] of reduced cost x)| <= tol relative

The reduced costs are computed here again, so nothing of the solver's own bookkeeping is believed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace.solver.core.linear import Floats, LinearProgram, Solution
from headrace.solver.core.program.dot import dot
from headrace.solver.core.program.layout import sums

if TYPE_CHECKING:
    from headrace.solver.core.program.hubs import Arcs

TOLERANCE = 1e-6
"""Relative: a tenth of what a weight can resolve (1 ppm)."""
CLEAR = 0.5
"""Share of the tolerance within which an answer is right whatever the order that its sums were added in."""


def reduced_costs(program: LinearProgram, duals: Floats) -> Floats:
    """Give cost - A^T duals, (n,)."""
    per_entry = program.coefficients * np.repeat(duals, np.diff(program.row_start))
    return program.cost - sums(program.columns, per_entry, len(program.cost))


def kkt_problem(program: LinearProgram, solution: Solution) -> str | None:
    """Give the first condition that an answer breaks, with its number; None where it is the optimum."""
    m, n = program.size
    x, y = solution.values, solution.duals
    problem = _form_problem(x, y, (n, m))
    if problem is not None:
        return problem
    entry_row = np.repeat(np.arange(m), np.diff(program.row_start))
    lhs = sums(entry_row, program.coefficients * x[program.columns], m)
    columns = _Columns(program.cost, program.lower, program.upper, reduced_costs(program, y))
    return _problem(columns, program.rhs, lhs, x, y)


def kkt_problems(programs: Sequence[LinearProgram], solutions: Sequence[Solution]) -> list[str | None]:
    """Give the same of many, in their order.

    Most are small, and right: that is asked of all of them at once, and of those that are not clearly so one by one.
    """
    pairs = list(zip(programs, solutions, strict=True))
    some = [i for i, (p, s) in enumerate(pairs) if p.cost.shape == s.values.shape and p.rhs.shape == s.duals.shape]
    some = [i for i in some if all(programs[i].size)]
    right = np.zeros(len(pairs), dtype=np.bool_)
    if some:
        right[some] = _clearly_right([programs[i] for i in some], [solutions[i] for i in some])
    return [None if clear else kkt_problem(p, s) for clear, (p, s) in zip(right.tolist(), pairs, strict=True)]


def _clearly_right(programs: Sequence[LinearProgram], solutions: Sequence[Solution]) -> npt.NDArray[np.bool_]:
    """Say of programs that have columns and rows whether every condition holds with room to spare."""
    tolerance, sizes = CLEAR * TOLERANCE, np.array([p.size for p in programs])
    row, column = np.cumsum(sizes, axis=0).T - sizes.T
    of_row, of_column = (np.repeat(np.arange(len(sizes)), size) for size in sizes.T)
    x, y = np.concatenate([s.values for s in solutions]), np.concatenate([s.duals for s in solutions])
    cost, lower = np.concatenate([p.cost for p in programs]), np.concatenate([p.lower for p in programs])
    upper, rhs = np.concatenate([p.upper for p in programs]), np.concatenate([p.rhs for p in programs])
    entry_row = np.repeat(np.arange(len(rhs)), np.concatenate([np.diff(p.row_start) for p in programs]))
    entry_column = np.concatenate([p.columns for p in programs]) + column[of_row[entry_row]]
    coefficients = np.concatenate([p.coefficients for p in programs])
    lhs = sums(entry_row, coefficients * x[entry_column], len(rhs))
    reduced = cost - sums(entry_column, coefficients * y[entry_row], len(cost))
    room = tolerance * (1.0 + np.maximum.reduceat(np.abs(rhs), row))
    right = np.maximum.reduceat(np.abs(lhs - rhs), row) <= room
    right &= np.maximum.reduceat(np.maximum(lower - x, x - upper), column) <= room
    unbounded = np.isinf(upper)
    slack = tolerance * (1.0 + np.abs(cost) + (np.maximum.reduceat(np.abs(y), row) * 1e-3)[of_column])
    right &= np.logical_and.reduceat(~unbounded | (reduced >= -slack), column)
    primal = np.add.reduceat(cost * x, column)
    least = np.minimum(reduced * lower, reduced * np.where(unbounded, lower, upper))
    dual = np.add.reduceat(rhs * y, row) + np.add.reduceat(least, column)
    right &= np.abs(primal - dual) <= tolerance * np.maximum(1.0, np.abs(primal))
    return np.asarray(right, dtype=np.bool_)


def network_problem(arcs: "Arcs", x: Floats, y: Floats) -> str | None:
    """Give the same of a network's flow (A,) and its nodes' prices (N,), without its matrix."""
    m, n = len(arcs.supply), len(arcs.tail)
    problem = _form_problem(x, y, (n, m))
    if problem is not None:
        return problem
    some = np.flatnonzero(x != 0.0)
    inner = some[arcs.head[some] >= 0]
    lhs = sums(arcs.tail[some], x[some], m) - sums(arcs.head[inner], x[inner], m)
    # What ends outside, at -1, ends where the price is 0.
    rc = arcs.cost - y.take(arcs.tail) + np.append(y, 0.0).take(arcs.head)
    return _problem(_Columns(arcs.cost, np.broadcast_to(0.0, (n,)), arcs.upper, rc), arcs.supply, lhs, x, y)


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """What is known of each column, (n,)."""

    cost: Floats
    lower: Floats
    upper: Floats
    reduced: Floats


def _form_problem(x: Floats, y: Floats, size: tuple[int, int]) -> str | None:
    n, m = size
    if x.shape != (n,) or y.shape != (m,):
        return f"answer has {x.shape} values and {y.shape} duals; expected ({n},) and ({m},)"
    return None if np.isfinite(x).all() and np.isfinite(y).all() else "answer is not finite"


def _problem(columns: _Columns, rhs: Floats, lhs: Floats, x: Floats, y: Floats) -> str | None:
    flow_scale = 1.0 + float(np.abs(rhs).max(initial=0.0))
    off_flow = float(np.abs(lhs - rhs).max(initial=0.0))
    if off_flow > TOLERANCE * flow_scale:
        return f"flow is off by {off_flow:.3g} RPS; at most {TOLERANCE * flow_scale:.3g}"
    off_bound = float(np.maximum(columns.lower - x, x - columns.upper).max(initial=0.0))
    if off_bound > TOLERANCE * flow_scale:
        return f"a bound is broken by {off_bound:.3g} RPS; at most {TOLERANCE * flow_scale:.3g}"
    rc, unbounded = columns.reduced, np.isinf(columns.upper)
    slack = TOLERANCE * (1.0 + np.abs(columns.cost) + float(np.abs(y).max(initial=0.0)) * 1e-3)
    if bool(((rc < -slack) & unbounded).any()):
        return f"a reduced cost is {float(rc[unbounded].min()):.3g} ms; at least 0"
    primal = dot(columns.cost, x)
    upper = np.where(unbounded, columns.lower, columns.upper)
    dual = dot(rhs, y) + float(np.minimum(rc * columns.lower, rc * upper).sum())
    gap = abs(primal - dual) / max(1.0, abs(primal))
    if gap > TOLERANCE:
        return f"primal {primal:.9g} and dual {dual:.9g} are apart by {gap:.3g}; at most {TOLERANCE:g}"
    return None
