"""sum of the least shares of a route's pins <= 100 %."""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override
from headrace.schemas.weights import PPM
from headrace.solver.core.program.eligibility import row_exclusion

FORCEABLE = False


def broken(stands: Stands, override: Override) -> str | None:
    """Name the pins that do not fit beside it, with their shares."""
    problem = stands.problem
    if problem is None or override.cluster is None or override.least_ppm is None:
        return None
    engines = {e.engine_id: e for e in problem.engines}
    others = [p for p in problem.pins if p.cluster == override.cluster and p.engine_id != override.target]
    for row in problem.rows:
        target = engines.get(override.target)
        if row.route.cluster != override.cluster or target is None or row_exclusion(row, target) is not None:
            continue
        able = (p for p in others if p.engine_id in engines and row_exclusion(row, engines[p.engine_id]) is None)
        pins = [(p.engine_id, round(p.least * PPM)) for p in able if p.least > 0.0]
        total = override.least_ppm + sum(least for _, least in pins)
        if total > PPM:
            told = " + ".join(f"{100 * least / PPM:g} % to {name}" for name, least in pins)
            mine = f"{100 * override.least_ppm / PPM:g} % to {override.target}"
            return f"the pins of {row.route} would add up to {100 * total / PPM:g} %: {mine} + {told}; at most 100 %"
    return None
