import math
from dataclasses import replace

import pytest

from headrace.schemas.assembly import digest_of
from headrace.schemas.check_snapshot import check_route, check_snapshot
from headrace.schemas.check_state import check_state
from headrace.schemas.signals import Health, Metric
from headrace.schemas.state import DemandState, EngineState, Invalid, LatencyState, NetworkState
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

TTFT = LatencyState("m", Metric.TTFT, 3, 0.1, 0.1, 0.1, 0.2, 0.2)
ENGINE = EngineState(
    "e", 1000, 1000, 1100, Health.HEALTHY, 4, 4, 4, 1.0, 0.0, 0.5, (TTFT,), 0.9, (), Invalid.NO, 0, 7, b""
)
DEMAND = DemandState("A", "m", "default", 1000, 1000, 1100, 9.0, 9.0, 12.0, 0.0, 0.0, 1.0, Invalid.NO, 0, 7, b"")
NETWORK = NetworkState("A", "s", 1000, 1000, 1100, 10, 0.02, 0.02, 0.1, Invalid.NO, 0, 7, b"")


@pytest.mark.parametrize("state", [ENGINE, DEMAND, NETWORK, replace(NETWORK, rtt_s=None, smoothed_s=None)])
def test_a_sound_state_has_no_problem(state: EngineState | DemandState | NetworkState) -> None:
    assert check_state(state) == ()


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (replace(ENGINE, as_of_ms=1001), "newer than its newest signal"),
        (replace(ENGINE, applied_offset=-1), "applied_offset"),
        (replace(ENGINE, late=-1), "late"),
        (replace(ENGINE, coverage=1.1), "coverage"),
        (replace(ENGINE, invalid=Invalid.UNKNOWN), "always says why"),
        (replace(ENGINE, kv_usage=math.nan), "kv_usage"),
        (replace(ENGINE, replicas_ready=-1), "replicas_ready"),
        (replace(ENGINE, latencies=(TTFT, TTFT)), "not sorted"),
        (replace(ENGINE, latencies=(replace(TTFT, count=0),)), "null exactly when count is 0"),
        (replace(ENGINE, latencies=(replace(TTFT, count=-1),)), "count is -1"),
        (replace(ENGINE, latencies=(replace(TTFT, p99_s=-1.0),)), "p99_s"),
        (replace(DEMAND, smoothed_rps=math.inf), "smoothed_rps"),
        (replace(DEMAND, coverage=-0.1), "coverage"),
        (replace(NETWORK, rtt_s=-1.0), "rtt_s"),
        (replace(NETWORK, lost_share=2.0), "lost_share"),
    ],
)
def test_a_state_that_cannot_be_is_named_with_value_and_bound(
    state: EngineState | DemandState | NetworkState, word: str
) -> None:
    [problem] = check_state(state)
    assert word in problem


def target(engine: str, ppm: int) -> Target:
    return Target(engine, None, ppm, ppm, 0, 0.001, 0.05, 0.004, 0.5, 300.0, Reason.CHEAPEST, "nearest")


ROUTE = RouteWeights(
    cluster="A",
    model="m",
    request_class="default",
    tier=0,
    epoch=1,
    version=1,
    demand_rps=9.0,
    targets=(target("a", 400_000), target("b", 600_000)),
    excluded=(Excluded("c", Reason.STALE, "silent for 20 s"),),
    fallback=(FallbackTarget("a", None, PPM),),
    shed_ratio=0.0,
    retry_ratio=0.1,
    marginal_ms=400.0,
    sentence="",
)


def test_a_sound_route_has_no_problem_and_neither_has_one_that_refuses_everything() -> None:
    assert check_route(ROUTE) == ()
    assert check_route(replace(ROUTE, targets=(), fallback=(), shed_ratio=1.0)) == ()


@pytest.mark.parametrize(
    ("route", "word"),
    [
        (replace(ROUTE, targets=(target("a", 400_000), target("b", 600_001))), "1000001 ppm"),
        (replace(ROUTE, targets=(target("b", 600_000), target("a", 400_000))), "not sorted"),
        (replace(ROUTE, targets=(), shed_ratio=0.5), "it must be 1"),
        (replace(ROUTE, fallback=(FallbackTarget("a", None, 7),)), "fallback weights add up to 7"),
        (replace(ROUTE, shed_ratio=-0.1), "shed_ratio"),
        (replace(ROUTE, retry_ratio=math.nan), "retry_ratio"),
        (replace(ROUTE, demand_rps=math.inf), "demand_rps"),
        (replace(ROUTE, cluster="A|B"), "cluster"),
        (replace(ROUTE, excluded=(Excluded("a", Reason.STALE, ""),)), "targets and excluded at once"),
        (replace(ROUTE, targets=(replace(target("a", PPM), network_s=math.nan),)), "network_s"),
    ],
)
def test_a_route_that_must_not_be_installed_is_named_with_value_and_bound(route: RouteWeights, word: str) -> None:
    assert any(word in problem for problem in check_route(route))


def test_a_negative_weight_is_found_even_where_the_sum_is_right() -> None:
    problems = check_route(replace(ROUTE, targets=(target("a", -1), target("b", PPM + 1))))
    assert len(problems) == 2


def snapshot(**changes: object) -> Snapshot:
    routes = (ROUTE,)
    commit = SnapshotCommit(
        epoch=1,
        version=1,
        mode=SnapshotMode.LIVE,
        status=SnapshotStatus.OPTIMAL,
        sentence="",
        tick_ms=1000,
        period_ms=500,
        valid_until_ms=61_000,
        route_count=1,
        changed=(),
        digest=digest_of({ROUTE.key: ROUTE}),
        policy="lp",
        policy_hash="0",
        inputs=(),
    )
    return Snapshot(replace(commit, **changes), routes)  # type: ignore[arg-type]  # names are the test's


def test_a_sound_snapshot_has_no_problem() -> None:
    assert check_snapshot(snapshot()) == ()


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        (snapshot(digest="0" * 32), "digest"),
        (snapshot(route_count=2), "route_count"),
        (snapshot(version=0), "newer than the commit"),
        (snapshot(valid_until_ms=1000), "valid_until_ms"),
        (snapshot(status=SnapshotStatus.UNKNOWN), "status"),
        (Snapshot(snapshot(route_count=2).commit, (ROUTE, ROUTE)), "sorted"),
    ],
)
def test_a_snapshot_that_must_not_be_installed_is_named(broken: Snapshot, word: str) -> None:
    assert any(word in problem for problem in check_snapshot(broken))
