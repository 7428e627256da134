"""What a tick sheds of each of its routes, RPS: together it is the record's `shed_rps`.

A route that says the same as before keeps its record, with the demand of the tick that wrote it, up to `DEMAND_STEP`
off; what a tick decided is told of what that tick was asked for. One that only held decided nothing, and knows no
better.
"""

from collections.abc import Sequence

from headrace.schemas.weights import RouteWeights
from headrace.solver.core.tick import Tick


def shed_of(tick: Tick) -> Sequence[tuple[RouteWeights, float]]:
    """Give each route with the requests a second of it that are refused."""
    routes = tick.snapshot.routes
    if tick.decision is None:
        return [(route, route.shed_ratio * route.demand_rps) for route in routes]
    layout = tick.decision.layout
    rps: list[float] = layout.requests(tick.decision.plan.shed).tolist()
    return list(zip(routes, rps, strict=True))
