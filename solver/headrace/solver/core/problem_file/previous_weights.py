"""Bare weights -> a snapshot that a tick can start from: only what the next decision looks at is in it."""

from collections.abc import Mapping

from headrace.schemas.assembly import digest_of
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import (
    Reason,
    RouteWeights,
    Snapshot,
    SnapshotCommit,
    SnapshotMode,
    SnapshotStatus,
    Target,
)


def previous_snapshot(weights: Mapping[RouteKey, Mapping[str, int]]) -> Snapshot:
    """Give the snapshot, epoch 0, version 0, at time 0; each route's weights must add up to 1,000,000 ppm."""
    routes = tuple(_route(key, weights[key]) for key in sorted(weights, key=RouteKey.encode))
    commit = SnapshotCommit(
        epoch=0,
        version=0,
        mode=SnapshotMode.LIVE,
        status=SnapshotStatus.HELD,
        sentence="previous weights as given",
        tick_ms=0,
        period_ms=0,
        valid_until_ms=1,
        route_count=len(routes),
        changed=(),
        digest=digest_of({route.key: route for route in routes}),
        policy="",
        policy_hash="",
        inputs=(),
    )
    return Snapshot(commit, routes)


def _route(key: RouteKey, weights: Mapping[str, int]) -> RouteWeights:
    return RouteWeights(
        cluster=key.cluster,
        model=key.model,
        request_class=key.request_class,
        tier=0,
        epoch=0,
        version=0,
        demand_rps=0.0,
        targets=tuple(_target(engine_id, weights[engine_id]) for engine_id in sorted(weights)),
        excluded=(),
        fallback=(),
        shed_ratio=0.0,
        retry_ratio=0.0,
        marginal_ms=None,
        sentence="",
    )


def _target(engine_id: str, ppm: int) -> Target:
    return Target(
        engine_id=engine_id,
        address=None,
        weight_ppm=ppm,
        solver_ppm=ppm,
        previous_ppm=0,
        network_s=0.0,
        ttft_s=None,
        tbot_s=None,
        utilisation=None,
        engine_price_ms=None,
        reason=Reason.UNKNOWN,
        sentence="",
    )
