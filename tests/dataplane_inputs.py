"""Snapshots for the data plane's tests: say only the weights, the rest is sound and dull."""

from collections.abc import Mapping

from headrace.schemas.assembly import digest_of
from headrace.schemas.weights import (
    PPM,
    Excluded,
    FallbackTarget,
    Reason,
    RouteWeights,
    Snapshot,
    SnapshotCommit,
    SnapshotMode,
    SnapshotStatus,
    Target,
)

CLUSTER = "A"
MODEL = "m"
TICK_MS = 1_000_000
TTL_MS = 60_000
NOW_MS = TICK_MS + 100


def target(engine_id: str, ppm: int) -> Target:
    address = f"http://{engine_id}:8000"
    return Target(engine_id, address, ppm, ppm, 0, 0.001, 0.05, 0.004, 0.5, 300.0, Reason.CHEAPEST, "nearest")


def route_weights(
    ppm: Mapping[str, int],
    *,
    version: int = 1,
    epoch: int = 1,
    cluster: str = CLUSTER,
    model: str = MODEL,
    excluded: tuple[str, ...] = (),
    fallback: Mapping[str, int] | None = None,
    shed_ratio: float = 0.0,
    retry_ratio: float = 0.1,
    tier: int = 0,
) -> RouteWeights:
    return RouteWeights(
        cluster=cluster,
        model=model,
        request_class="default",
        tier=tier,
        epoch=epoch,
        version=version,
        demand_rps=10.0,
        targets=tuple(target(engine, ppm[engine]) for engine in sorted(ppm)),
        excluded=tuple(Excluded(engine, Reason.UNHEALTHY, "said so") for engine in sorted(excluded)),
        fallback=tuple(FallbackTarget(e, None, w) for e, w in sorted((fallback or {}).items())),
        shed_ratio=shed_ratio,
        retry_ratio=retry_ratio,
        marginal_ms=400.0,
        sentence="as planned",
    )


def snapshot(
    *routes: RouteWeights,
    version: int | None = None,
    epoch: int | None = None,
    mode: SnapshotMode = SnapshotMode.LIVE,
    tick_ms: int = TICK_MS,
    demand_until_ms: int | None = None,
) -> Snapshot:
    by_key = {route.key: route for route in routes}
    commit = SnapshotCommit(
        epoch=max((r.epoch for r in routes), default=1) if epoch is None else epoch,
        version=max((r.version for r in routes), default=1) if version is None else version,
        mode=mode,
        status=SnapshotStatus.OPTIMAL,
        sentence="as planned",
        tick_ms=tick_ms,
        period_ms=500,
        valid_until_ms=tick_ms + TTL_MS,
        route_count=len(routes),
        changed=tuple(str(route.route) for route in routes),
        digest=digest_of(by_key),
        policy="lp",
        policy_hash="0",
        inputs=(),
        demand_until_ms=demand_until_ms,
    )
    return Snapshot(commit, tuple(by_key[key] for key in sorted(by_key)))


def shares(**parts: int) -> dict[str, int]:
    """Give ppm in the ratio of the parts, whose sum must divide a million: `shares(a=3, b=1)`."""
    unit, rest = divmod(PPM, sum(parts.values()))
    assert rest == 0
    return {engine: part * unit for engine, part in parts.items()}
