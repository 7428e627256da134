"""Why a route sheds, as its record tells: for want of capacity, or since pins keep it from engines that have room.

A request that is shed would go to any engine with room, were it not for the pin of that engine.
"""

from headrace.schemas.weights import Reason, RouteWeights
from headrace.solver.core.program.predictions import FULL


def pins_with_room(route: RouteWeights) -> tuple[str, ...]:
    """Give the engines with room that pins keep a route from while it sheds; () where it does not, or for all else."""
    if route.shed_ratio <= 0.0:
        return ()
    return tuple(
        target.engine_id
        for target in route.targets
        if target.reason is Reason.PINNED and target.utilisation is not None and target.utilisation < FULL
    )
