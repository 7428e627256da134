"""Played ticks by hand: weights as shares, a problem, an instant."""

from collections.abc import Mapping, Sequence

from headrace.replay.core.played import PlayedTick
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
from headrace.solver.core.problem import Problem

START_MS = 1_700_000_000_000
Shares = Mapping[str, float]


def route(cluster: str, shares: Shares, demand: float = 1.0, shed: float = 0.0, retry: float = 0.0) -> RouteWeights:
    targets = tuple(
        Target(e, None, round(PPM * share), round(PPM * share), 0, 0.0, None, None, None, None, Reason.CHEAPEST, "why")
        for e, share in sorted(shares.items())
    )
    return RouteWeights(cluster, "m", "default", 0, 1, 1, demand, targets, (), (), shed, retry, None, "")


def snapshot(routes: Sequence[RouteWeights], now_ms: int, period_ms: int = 1000, policy: str = "by-hand") -> Snapshot:
    commit = SnapshotCommit(
        epoch=1,
        version=now_ms,
        mode=SnapshotMode.LIVE,
        status=SnapshotStatus.OPTIMAL,
        sentence="",
        tick_ms=now_ms,
        period_ms=period_ms,
        valid_until_ms=now_ms + 60_000,
        route_count=len(routes),
        changed=(),
        digest=digest_of({r.key: r for r in routes}),
        policy=policy,
        policy_hash="",
        inputs=(),
    )
    return Snapshot(commit, tuple(routes))


def played(at_s: float, problem: Problem, weights: Mapping[str, Shares], **ratios: float) -> PlayedTick:
    demand = {row.route.cluster: row.demand_rps for row in problem.rows}
    now_ms = START_MS + round(1000 * at_s)
    routes = [route(c, shares, demand.get(c, 0.0), **ratios) for c, shares in sorted(weights.items())]
    return PlayedTick(now_ms, problem, snapshot(routes, now_ms), None)


def standing(problem: Problem, weights: Mapping[str, Shares], seconds: int, **ratios: float) -> list[PlayedTick]:
    """One tick a second, all alike."""
    return [played(float(s), problem, weights, **ratios) for s in range(seconds)]
