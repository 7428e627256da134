"""Traffic moved: what share of all requests an installation sends elsewhere than the one before.

    moved RPS of a route = demand x 1/2 sum over engines and shedding of |share now - share before|

A share is an engine's weight times what is not shed, so that shedding counts as moving too. Summed over the routes of
an installation and the installations of a minute, divided by the demand: 0.05 is 5 % of the traffic moved in a minute.
"""

from collections.abc import Mapping

from headrace.schemas.weights import PPM, RouteWeights, Snapshot

SHED = "!shed"


def shares(route: RouteWeights) -> Mapping[str, float]:
    """Give the share of a route's requests for each engine, and under SHED what is refused."""
    kept = 1.0 - route.shed_ratio
    found = {t.engine_id: kept * t.weight_ppm / PPM for t in route.targets if t.weight_ppm}
    return found | ({SHED: route.shed_ratio} if route.shed_ratio > 0.0 else {})


def moved_rps(before: Snapshot | None, after: Snapshot) -> float:
    """Give how many requests per second go elsewhere; 0 for a first snapshot, and for routes new or gone."""
    old = {} if before is None else {route.key: route for route in before.routes}
    return sum(route.demand_rps * distance(old[route.key], route) for route in after.routes if route.key in old)


def shed_rps(snapshot: Snapshot) -> float:
    """Give how many requests per second a snapshot refuses."""
    return sum(route.demand_rps * route.shed_ratio for route in snapshot.routes)


def demand_rps(snapshot: Snapshot) -> float:
    """Give the demand that a snapshot was made for."""
    return sum(route.demand_rps for route in snapshot.routes)


def distance(before: RouteWeights, after: RouteWeights) -> float:
    """Give the share of a route's requests that goes elsewhere, or is refused: 0 = none, 1 = all."""
    a, b = shares(before), shares(after)
    return sum(abs(a.get(name, 0.0) - b.get(name, 0.0)) for name in sorted(a.keys() | b.keys())) / 2
