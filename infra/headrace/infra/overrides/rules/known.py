"""Its engine is in the fleet, and a pin's cluster asks for something or has been probed."""

from headrace.infra.configuration.tree import nearest
from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind

FORCEABLE = False


def broken(stands: Stands, override: Override) -> str | None:
    """Name the nearest to what is not there."""
    if override.kind is OverrideKind.FREEZE and override.target == WHOLE_FLEET:
        return None
    if override.target not in stands.fleet:
        near = nearest(override.target, list(stands.fleet)) if stands.fleet else "the fleet is empty"
        return f"{override.target!r} is no engine of the fleet; {near}"
    if override.cluster is None or stands.problem is None:
        return None
    clusters = sorted({row.route.cluster for row in stands.problem.rows})
    if override.cluster in clusters:
        return None
    near = nearest(override.cluster, clusters) if clusters else "none is known"
    return f"{override.cluster!r} is no cluster that is heard of; {near}"
