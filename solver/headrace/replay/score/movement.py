"""How much traffic a new snapshot moves, and how often it takes back what it moved before.

    moved    = sum over routes of demand x 1/2 sum over engines |share after - share before|  /  all demand
    reversal = an engine's share of a route changes against the direction of its last change

A route that had no weights, or has none now, moves nothing: its sessions had nowhere to stay.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import PPM, RouteWeights, Snapshot, Target


def moved_per_minute(snapshots: Sequence[tuple[float, Snapshot]], from_s: float, to_s: float) -> float:
    """Give the traffic moved between two times, % of all per minute, of dated snapshots in order."""
    total = 0.0
    for (_, before), (at_s, after) in pairwise(snapshots):
        if from_s < at_s <= to_s:
            total += moved_share(before, after)
    return 100.0 * total / ((to_s - from_s) / 60.0)


def moved_share(before: Snapshot, after: Snapshot, asked: Mapping[RouteKey, float] | None = None) -> float:
    """Give the share of all traffic, 0..1, that goes elsewhere under `after` than under `before`.

    Args:
        before: the weights that stood.
        after: those of the tick.
        asked: what each route asks for at the tick, RPS; where that is not known, what it did when it was written.
    """
    if before.routes is after.routes:
        return 0.0
    old = {route.key: route for route in before.routes}
    asked = {} if asked is None else asked
    demand = sum(asked.get(route.route, route.demand_rps) for route in after.routes)
    moved = 0.0
    for route in after.routes:
        was = old.get(route.key)
        if was is not None and was is not route:
            moved += asked.get(route.route, route.demand_rps) * route_moved(was, route)
    return moved / demand if demand > 0 else 0.0


def route_moved(before: RouteWeights, after: RouteWeights) -> float:
    """Give the share of one route's traffic, 0..1, that goes elsewhere."""
    was, now = shares(before.targets), shares(after.targets)
    if not was or not now:
        return 0.0
    return sum(abs(now.get(e, 0) - was.get(e, 0)) for e in sorted(was.keys() | now.keys())) / (2.0 * PPM)


def shares(targets: Iterable[Target]) -> dict[str, int]:
    """Give the weights of targets by engine, ppm."""
    return {target.engine_id: target.weight_ppm for target in targets}


class Reversals:
    """Counts changes of weight that undo the one before. Holds one direction per (route, engine) that ever moved."""

    def __init__(self, least_ppm: int) -> None:
        self._least = least_ppm
        self._direction: dict[tuple[bytes, str], bool] = {}

    def add(self, before: RouteWeights, after: RouteWeights) -> int:
        """Give how many engines' shares of a route turned back."""
        was, now = shares(before.targets), shares(after.targets)
        if not was or not now:
            return 0
        turned = 0
        for engine in was.keys() | now.keys():
            change = now.get(engine, 0) - was.get(engine, 0)
            if abs(change) < max(self._least, 1):
                continue
            key, up = (after.key, engine), change > 0
            turned += self._direction.get(key, up) != up
            self._direction[key] = up
        return turned
