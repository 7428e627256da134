"""Ticks and snapshots made by hand, in place of a solve: each weight is what the test says."""

from collections.abc import Mapping

from headrace.schemas.assembly import digest_of
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.ids import RouteKey
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
from headrace.solver.core.tick import Tick, TickStamp
from solver_inputs import NOW_MS

Shares = Mapping[str, Mapping[str, int]]
"""Route as text -> engine -> weight in ppm."""


def route_of(
    name: str, shares: Mapping[str, int], epoch: int, version: int, before: Mapping[str, int] | None = None
) -> RouteWeights:
    was = before or {}
    targets = tuple(
        Target(engine, None, ppm, ppm, was.get(engine, 0), 0.01, None, None, None, None, Reason.CHEAPEST, "by hand")
        for engine, ppm in sorted(shares.items())
    )
    key = RouteKey(*name.split("|"))
    shed = 0.0 if sum(shares.values()) == PPM else 1.0
    return RouteWeights(*key, 0, epoch, version, 10.0, targets, (), (), shed, 0.1, None, "by hand")


def snapshot_of(
    shares: Shares, stamp: TickStamp, previous: Snapshot | None = None, status: SnapshotStatus = SnapshotStatus.OPTIMAL
) -> tuple[Snapshot, frozenset[bytes]]:
    """Give the snapshot, and the keys of the routes that it writes."""
    kept: dict[bytes, RouteWeights] = {}
    if previous is not None and previous.commit.epoch == stamp.epoch:
        kept = {route.key: route for route in previous.routes}
    routes: dict[bytes, RouteWeights] = {}
    for name, share in shares.items():
        old = kept.get(name.encode())
        was = {} if old is None else {t.engine_id: t.weight_ppm for t in old.targets}
        routes[name.encode()] = (
            old if old is not None and was == dict(share) else route_of(name, share, stamp.epoch, stamp.version, was)
        )
    changed = frozenset(key for key, route in routes.items() if route is not kept.get(key))
    commit = SnapshotCommit(
        stamp.epoch,
        stamp.version,
        SnapshotMode.LIVE,
        status,
        "by hand",
        stamp.now_ms,
        500,
        stamp.now_ms + 60_000,
        len(routes),
        tuple(sorted(key.decode() for key in changed)),
        digest_of(routes),
        "lp",
        "0" * 16,
        (),
    )
    return Snapshot(commit, tuple(routes[key] for key in sorted(routes))), changed


def tick_of(
    shares: Shares,
    stamp: TickStamp,
    previous: Snapshot | None = None,
    status: SnapshotStatus = SnapshotStatus.OPTIMAL,
    sentence: str = "by hand",
) -> Tick:
    snapshot, changed = snapshot_of(shares, stamp, previous, status)
    before = frozenset(route.key for route in previous.routes) if previous else frozenset[bytes]()
    removed = before - {route.key for route in snapshot.routes}
    record = SolveRecord(
        stamp.epoch,
        stamp.version,
        SnapshotMode.LIVE,
        status,
        "DUAL",
        sentence,
        stamp.now_ms,
        (),
        "lp",
        "0" * 16,
        1.0,
        0.0,
        250.0,
        280.0,
        0.0,
        4.1,
        0.89,
        1,
        1,
        1,
        0,
        0,
        0,
        0,
        0,
        (),
        (),
    )
    return Tick(snapshot, changed, removed, record)


def stamp(epoch: int = 1, version: int = 1, now_ms: int = NOW_MS) -> TickStamp:
    return TickStamp(epoch, version, now_ms)
