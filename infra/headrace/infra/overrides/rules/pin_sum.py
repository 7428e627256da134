"""sum of the least shares of a route's pins <= 100 %."""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override
from headrace.schemas.weights import PPM
from headrace.solver.core.problem import Pin
from headrace.solver.core.program.pin_sums import over_asked, sum_words

FORCEABLE = False


def broken(stands: Stands, override: Override) -> str | None:
    """Name the pins that do not fit beside it, with their shares."""
    problem, cluster, least = stands.problem, override.cluster, override.least_ppm
    if problem is None or cluster is None or least is None:
        return None
    mine = Pin(cluster, override.target, least / PPM, 1.0, "")
    others = (p for p in problem.pins if (p.cluster, p.engine_id) != (cluster, override.target))
    for row, pins in over_asked(problem.rows, {e.engine_id: e for e in problem.engines}, (mine, *others)):
        if mine in pins:
            total, each = sum_words(pins)
            return f"the pins of {row.route} would add up to {total} %: {each}; at most 100 %"
    return None
