"""A snapshot that gives every engine the same share: what stands in for a solver where there is none. Pure."""

from collections.abc import Mapping

from headrace.schemas.assembly import digest_of
from headrace.schemas.weights import (
    PPM,
    Reason,
    RouteWeights,
    Snapshot,
    SnapshotCommit,
    SnapshotMode,
    SnapshotStatus,
    Target,
)

VALID_MS = 3_600_000


def even_weights(
    addresses: Mapping[str, str | None],
    cluster: str,
    model: str,
    now_ms: int,
    *,
    version: int = 1,
    retry_ratio: float = 0.2,
) -> Snapshot:
    """Give the snapshot: one route, the engines by id with equal weights (the first ones get the odd ppm)."""
    share, odd = divmod(PPM, max(1, len(addresses)))
    targets = tuple(
        _target(engine_id, addresses[engine_id], share + (i < odd)) for i, engine_id in enumerate(sorted(addresses))
    )
    route = RouteWeights(
        cluster=cluster,
        model=model,
        request_class="default",
        tier=0,
        epoch=1,
        version=version,
        demand_rps=0.0,
        targets=targets,
        excluded=(),
        fallback=(),
        shed_ratio=0.0,
        retry_ratio=retry_ratio,
        marginal_ms=None,
        sentence="equal shares, nothing computed",
    )
    commit = SnapshotCommit(
        epoch=1,
        version=version,
        mode=SnapshotMode.LIVE,
        status=SnapshotStatus.PROPORTIONAL,
        sentence="equal shares, nothing computed",
        tick_ms=now_ms,
        period_ms=VALID_MS,
        valid_until_ms=now_ms + VALID_MS,
        route_count=1,
        changed=(str(route.route),),
        digest=digest_of({route.key: route}),
        policy="even",
        policy_hash="0",
        inputs=(),
    )
    return Snapshot(commit, (route,))


def _target(engine_id: str, address: str | None, ppm: int) -> Target:
    return Target(engine_id, address, ppm, ppm, 0, 0.0, None, None, None, None, Reason.NO_DEMAND, "equal share")
