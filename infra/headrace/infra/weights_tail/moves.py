"""What a tail tells of each snapshot: the routes that moved since they were last told, or now and then that none did.

    moved  <=>  1/2 sum over engines and shedding of |share now - share last told| >= MOVED_FROM_PPM

Held against what was last *told*, not against the snapshot before: many small steps are told once they add up. Where
nothing moved, a line says so when the status changed, and as a sign of life every STILL_EVERY_MS of the snapshots' own
time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.infra.demo.movement import distance
from headrace.infra.weights_tail.fold import Shown
from headrace.schemas.ids import RouteKey, parse_route_key
from headrace.schemas.weights import PPM, RouteWeights, SnapshotCommit, SnapshotStatus

MOVED_FROM_PPM = 5_000
"""Millionths of a route's traffic, half a percent; less is noise of the measurement that the weights follow."""
STILL_EVERY_MS = 30_000


@dataclass(frozen=True, slots=True)
class Changed:
    """Routes that moved, each with what was last told of it (None: nothing yet), and those that are gone."""

    commit: SnapshotCommit
    routes: tuple[tuple[RouteWeights, RouteWeights | None], ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Still:
    """Nothing moved up to this snapshot."""

    commit: SnapshotCommit


class Moves:
    """Folds snapshots, in their order.

    Args:
        wanted: which routes are looked at.
        every: tell every snapshot, and every move however small.
    """

    def __init__(self, wanted: Callable[[RouteKey], bool], *, every: bool = False) -> None:
        self._wanted = wanted
        self._every = every
        self._told: dict[RouteKey, RouteWeights] | None = None
        self._told_ms: int | None = None
        self._status = SnapshotStatus.OPTIMAL
        self._untold: Still | None = None

    def offer(self, shown: Shown) -> Changed | Still | None:
        """Take the next snapshot; gives what there is to tell of it."""
        commit = shown.snapshot.commit
        if self._told is None:
            self._told = {route.route: route for route in shown.before.routes} if shown.before else {}
        routes = tuple(
            (route, self._told.get(route.route))
            for route in shown.snapshot.routes
            if self._wanted(route.route) and self._moved(self._told.get(route.route), route)
        )
        removed = tuple(key for key in shown.removed() if self._wanted(parse_route_key(key.encode())))
        self._told |= {route.route: route for route, _ in routes}
        for key in removed:
            self._told.pop(parse_route_key(key.encode()), None)
        if routes or removed:
            return self._tell(Changed(commit, routes, removed))
        still = Still(commit)
        due = self._told_ms is None or commit.tick_ms - self._told_ms >= STILL_EVERY_MS
        if self._every or due or commit.status is not self._status:
            return self._tell(still)
        self._untold = still
        return None

    def last(self) -> Still | None:
        """Give the newest snapshot where nothing was told of it: a tail that ends should not end in silence."""
        return self._untold

    def _tell(self, what: Changed | Still) -> Changed | Still:
        self._told_ms, self._status, self._untold = what.commit.tick_ms, what.commit.status, None
        return what

    def _moved(self, before: RouteWeights | None, after: RouteWeights) -> bool:
        if before is None:
            return True
        return round(PPM * distance(before, after)) >= (1 if self._every else MOVED_FROM_PPM)
