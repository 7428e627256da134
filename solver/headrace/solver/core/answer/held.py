"""The last snapshot's routes, without the engines that are known to be gone: what a hold publishes.

    gone     not in the fleet any more, drained, or out by its own last word; the silent ones are not known to be gone
    weights  what is left, scaled back up to the whole; a route that has nothing left refuses all

A route that loses nothing is the previous record itself. Where the weights move to, nobody has checked what they meet:
not knowing is no reason to send requests to an engine that its operator has taken away.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from headrace.schemas.weights import Excluded, FallbackTarget, Reason, RouteWeights, Snapshot, Target
from headrace.solver.core.answer.apportion import apportion
from headrace.solver.core.problem import Engine, Problem

_NOT_KNOWN = (Reason.STALE, Reason.NO_STATE, Reason.INVALID_STATE, Reason.NO_PROFILE)
T = TypeVar("T", Target, FallbackTarget)
_REST = "the last weights stand on the engines that are left"
_NOBODY = "all is refused, no engine that was used is left"
REMOVED = "it is not in the fleet any more"


def held_routes(problem: Problem, previous: Snapshot, epoch: int, version: int) -> tuple[RouteWeights, ...]:
    """Give the routes of a hold: the previous ones, written again where they change or the epoch is new."""
    engines = {engine.engine_id: engine for engine in problem.engines}
    afresh = previous.commit.epoch != epoch
    routes: list[RouteWeights] = []
    for route in previous.routes:
        left = _without_gone(route, engines)
        routes.append(left if left is route and not afresh else replace(left, epoch=epoch, version=version))
    return tuple(routes)


def _without_gone(route: RouteWeights, engines: Mapping[str, Engine]) -> RouteWeights:
    names = {t.engine_id for some in (route.targets, route.fallback, route.failover) for t in some}
    gone = {name: why for name in sorted(names) if (why := _gone(engines.get(name), route, name)) is not None}
    if not gone:
        return route
    targets = _scaled(tuple(t for t in route.targets if t.engine_id not in gone))
    excluded = {x.engine_id: x for x in (*route.excluded, *gone.values())}
    nobody = not any(t.weight_ppm for t in targets)
    return replace(
        route,
        targets=targets,
        fallback=_scaled(tuple(t for t in route.fallback if t.engine_id not in gone)),
        failover=_scaled(tuple(t for t in route.failover if t.engine_id not in gone)),
        excluded=tuple(excluded[name] for name in sorted(excluded)),
        shed_ratio=1.0 if nobody else route.shed_ratio,
        retry_ratio=0.0 if nobody else route.retry_ratio,
        sentence=f"{', '.join(list(gone)[:3])} gone during the hold; {_NOBODY if nobody else _REST}",
    )


def _gone(engine: Engine | None, route: RouteWeights, name: str) -> Excluded | None:
    if engine is None:
        return Excluded(name, Reason.DRAINED, REMOVED)
    if engine.exclusion is not None and engine.exclusion.reason not in _NOT_KNOWN:
        return Excluded(name, engine.exclusion.reason, engine.exclusion.sentence)
    if route.model not in engine.models:
        return Excluded(name, Reason.MODEL_NOT_SERVED, f"it serves {', '.join(engine.models)}, not {route.model}")
    return None


def _scaled(left: tuple[T, ...]) -> tuple[T, ...]:
    count = len(left)
    weight = np.array([t.weight_ppm for t in left], dtype=np.float64)
    ppm = apportion(np.zeros(count, dtype=np.int64), weight, np.arange(count, dtype=np.int64), 1)
    return tuple(replace(t, weight_ppm=int(p)) for t, p in zip(left, ppm.tolist(), strict=True))
