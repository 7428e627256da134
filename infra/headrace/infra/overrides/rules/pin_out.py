"""A pinned engine is in: a pin of one that is drained, silent or unhealthy counts for nothing until it is back."""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override, OverrideKind
from headrace.solver.core.program.eligibility import engine_exclusion

FORCEABLE = True


def broken(stands: Stands, override: Override) -> str | None:
    """Say why it is out; to be pinned to nothing it need not be in."""
    problem = stands.problem
    if problem is None or override.kind is not OverrideKind.PIN or not override.least_ppm:
        return None
    engine = next((e for e in problem.engines if e.engine_id == override.target), None)
    out = None if engine is None else engine_exclusion(engine, problem.profiles)
    if out is None:
        return None
    return f"{override.target} is out ({out.reason}, {out.sentence}): the pin would wait until it is back"
