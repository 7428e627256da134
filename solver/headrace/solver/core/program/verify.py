"""Is an answer the optimum? The Karush-Kuhn-Tucker conditions of min c.x, A x = b, l <= x <= u, from the arrays alone.

    |A x - b| <= tol,  l - tol <= x <= u + tol,  reduced cost >= -tol where x may still grow,
    |c.x - (b.y + sum of min over [l, u] of reduced cost x)| <= tol relative

The reduced costs are computed here again, so nothing of the solver's own bookkeeping is believed.
"""

import numpy as np

from headrace.solver.core.linear import Floats, LinearProgram, Solution
from headrace.solver.core.program.layout import sums

TOLERANCE = 1e-6
"""Relative: a tenth of what a weight can resolve (1 ppm)."""


def reduced_costs(program: LinearProgram, duals: Floats) -> Floats:
    """Give cost - A^T duals, (n,)."""
    per_entry = program.coefficients * np.repeat(duals, np.diff(program.row_start))
    return program.cost - sums(program.columns, per_entry, len(program.cost))


def kkt_problem(program: LinearProgram, solution: Solution) -> str | None:
    """Give the first condition that an answer breaks, with its number; None where it is the optimum."""
    m, n = program.size
    x, y = solution.values, solution.duals
    if x.shape != (n,) or y.shape != (m,):
        return f"answer has {x.shape} values and {y.shape} duals; expected ({n},) and ({m},)"
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return "answer is not finite"
    flow_scale = 1.0 + float(np.abs(program.rhs).max(initial=0.0))
    entry_row = np.repeat(np.arange(m), np.diff(program.row_start))
    lhs = sums(entry_row, program.coefficients * x[program.columns], m)
    off_flow = float(np.abs(lhs - program.rhs).max(initial=0.0))
    if off_flow > TOLERANCE * flow_scale:
        return f"flow is off by {off_flow:.3g} RPS; at most {TOLERANCE * flow_scale:.3g}"
    off_bound = float(np.maximum(program.lower - x, x - program.upper).max(initial=0.0))
    if off_bound > TOLERANCE * flow_scale:
        return f"a bound is broken by {off_bound:.3g} RPS; at most {TOLERANCE * flow_scale:.3g}"
    rc = reduced_costs(program, y)
    unbounded = np.isinf(program.upper)
    slack = TOLERANCE * (1.0 + np.abs(program.cost) + float(np.abs(y).max(initial=0.0)) * 1e-3)
    if bool((rc[unbounded] < -slack[unbounded]).any()):
        return f"a reduced cost is {float(rc[unbounded].min()):.3g} ms; at least 0"
    return _gap_problem(program, x, y, rc)


def _gap_problem(program: LinearProgram, x: Floats, y: Floats, rc: Floats) -> str | None:
    primal = float(program.cost @ x)
    upper = np.where(np.isinf(program.upper), program.lower, program.upper)
    dual = float(program.rhs @ y + np.minimum(rc * program.lower, rc * upper).sum())
    gap = abs(primal - dual) / max(1.0, abs(primal))
    if gap > TOLERANCE:
        return f"primal {primal:.9g} and dual {dual:.9g} are apart by {gap:.3g}; at most {TOLERANCE:g}"
    return None
