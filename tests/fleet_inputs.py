"""Small engines, fixed weights and runs for the fleet's tests."""

from collections.abc import Mapping

import numpy as np

from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.fleet.curves import ReplicaCurve
from headrace.infra.fleet.engine import EngineTimes, SimulatedEngine
from headrace.infra.fleet.request import Attempt, Request
from headrace.infra.fleet.scenario import Scenario
from headrace.infra.fleet.scenarios import load_scenario
from headrace.infra.fleet.script import parse_script
from headrace.infra.fleet.simulation import Simulation
from headrace.infra.fleet.sink import MemorySink
from headrace.schemas.assembly import digest_of
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.weights import (
    Reason,
    RouteWeights,
    Snapshot,
    SnapshotCommit,
    SnapshotMode,
    SnapshotStatus,
    Target,
)

START_MS = 1_700_000_000_000
NEAREST = {
    "cluster-a": {"engine-a": 1_000_000},
    "cluster-b": {"engine-b": 750_000, "engine-c": 250_000},
    "cluster-c": {"engine-c": 1_000_000},
}

FLAT = ReplicaCurve(
    capacity_rps=2.0, slots=2, output_tokens=9.0, in_service=(0.0, 2.0), ttft_s=(0.1, 0.1), tbot_s=(0.1, 0.1)
)
"""Two slots; TTFT 100 ms and TBOT 100 ms whatever the load, so 9 tokens take exactly a second: 2 RPS."""


def attempt(number: int, tokens: int = 9, arrived_s: float = 0.0) -> Attempt:
    return Attempt(Request(number, "c", arrived_s, b"s", 1, tokens), "e", 0.0)


def engine(replicas: int = 1, curve: ReplicaCurve = FLAT, seed: int = 1) -> SimulatedEngine:
    spec = EngineSpec("e", "site", ("m",), (), (), "p", curve.capacity_rps, None, drain=False)
    return SimulatedEngine(spec, replicas, curve, EngineTimes(), np.random.default_rng(seed))


def fixed_snapshot(
    weights: Mapping[str, Mapping[str, int]], version: int = 1, retry_ratio: float = 0.1, model: str = "llama-3.1-8b"
) -> Snapshot:
    routes = tuple(
        RouteWeights(
            cluster=cluster,
            model=model,
            request_class="default",
            tier=0,
            epoch=1,
            version=version,
            demand_rps=100.0,
            targets=tuple(
                Target(engine_id, None, ppm, ppm, 0, 0.0, None, None, None, None, Reason.CHEAPEST, "")
                for engine_id, ppm in sorted(shares.items())
            ),
            excluded=(),
            fallback=(),
            shed_ratio=0.0,
            retry_ratio=retry_ratio,
            marginal_ms=None,
            sentence="",
        )
        for cluster, shares in sorted(weights.items())
    )
    commit = SnapshotCommit(
        epoch=1,
        version=version,
        mode=SnapshotMode.LIVE,
        status=SnapshotStatus.OPTIMAL,
        sentence="",
        tick_ms=START_MS,
        period_ms=500,
        valid_until_ms=START_MS + 10**9,
        route_count=len(routes),
        changed=(),
        digest=digest_of({route.key: route for route in routes}),
        policy="",
        policy_hash="",
        inputs=(),
    )
    return Snapshot(commit, routes)


def three_regions() -> Scenario:
    return load_scenario("three-regions")


def fixed_run(
    seconds: float,
    script: str = "",
    seed: int = 7,
    weights: Mapping[str, Mapping[str, int]] | None = None,
    dataplane: DataPlaneSettings | None = None,
) -> tuple[Simulation, MemorySink]:
    """Run three-regions under weights that never change, scripted; the run is not drained."""
    scenario = three_regions()
    sink = MemorySink()
    routers = {cluster.name: Router(dataplane or DataPlaneSettings(), cluster.name) for cluster in scenario.clusters}
    for router in routers.values():
        router.apply(fixed_snapshot(NEAREST if weights is None else weights))
    simulation = Simulation(scenario, routers, sink, START_MS, np.random.default_rng(seed))
    simulation.start_arrivals()
    for timed in parse_script(script, scenario.names):
        simulation.schedule(timed, 0.0)
    simulation.run_until(seconds)
    return simulation, sink
