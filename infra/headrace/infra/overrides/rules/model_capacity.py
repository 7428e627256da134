"""sum of capacity of the engines that are left to a model >= its demand, and each of its routes has one at all.

What two models share counts for both, so this is the least that must hold; `shed` solves for the rest.
"""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override, OverrideKind
from headrace.solver.core.problem import Engine, Problem, Row
from headrace.solver.core.program.eligibility import exclusion

FORCEABLE = True
MAX_TOLD = 3


def broken(stands: Stands, override: Override) -> str | None:
    """Say which routes would have no engine, else which models less than they are asked for; of a drain."""
    problem = stands.problem
    if problem is None or override.kind is not OverrideKind.DRAIN:
        return None
    alone = [row for row in problem.rows if _only(problem, row, override.target)]
    if alone:
        names = ", ".join(f"{row.route} ({row.demand_rps:.1f} RPS)" for row in alone[:MAX_TOLD])
        more = f" and {len(alone) - MAX_TOLD} more" if len(alone) > MAX_TOLD else ""
        return f"without {override.target} no engine is left to {names}{more}"
    short: list[str] = []
    for model in sorted({row.route.model for row in problem.rows}):
        asked = sum(row.demand_work for row in problem.rows if row.route.model == model)
        now = sum(e.capacity_rps for e in problem.engines if model in e.models)
        left = sum(e.capacity_rps for e in problem.engines if model in e.models and e.engine_id != override.target)
        if left < asked and left < now:
            short.append(f"{left:.1f} RPS of capacity, {now:.1f} now, for {asked:.1f} of {model}")
    return f"without {override.target} there would be {', '.join(short[:MAX_TOLD])}" if short else None


def _only(problem: Problem, row: Row, engine_id: str) -> bool:
    able: list[Engine] = [e for e in problem.engines if exclusion(problem, row, e) is None]
    return row.demand_rps > 0.0 and [e.engine_id for e in able] == [engine_id]
