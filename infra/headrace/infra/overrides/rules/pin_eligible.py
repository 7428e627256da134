"""A pinned engine may serve a route of the cluster: model, capability, data residency and the way there allow it."""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override
from headrace.solver.core.program.eligibility import network_exclusion, row_exclusion

FORCEABLE = False


def broken(stands: Stands, override: Override) -> str | None:
    """Say why none of the cluster's routes may use it."""
    problem, cluster = stands.problem, override.cluster
    if problem is None or cluster is None:
        return None
    engine = next((e for e in problem.engines if e.engine_id == override.target), None)
    rows = [row for row in problem.rows if row.route.cluster == cluster]
    if engine is None or not rows:
        return None
    why = [row_exclusion(row, engine) or network_exclusion(problem, cluster, engine.site) for row in rows]
    out = [(row, each) for row, each in zip(rows, why, strict=True) if each is not None]
    if len(out) < len(rows):
        return None
    row, first = out[0]
    return f"{override.target} may serve no route of {cluster}: {row.route} is {first.reason}, {first.sentence}"
