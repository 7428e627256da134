"""What a deployment is planned with: bytes a record, signals a second, a tick's time and memory, a gateway's memory.

    python tests/bench/bench_capacity.py [--quick]

Sizes are of records as they are published, of the simulated fleet at work (three regions, measured curves): framed, not
compressed; beside them what lz4 leaves of each in a batch of 100. Processor time, not time on the clock, wherever
something runs; memory is what a process of its own has at its peak. `infra/docs/capacity.md` quotes this table and says
how to count with it.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import cramjam
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from dataplane_inputs import CLUSTER, route_weights
from dataplane_inputs import snapshot as plain_snapshot
from headrace.dataplane import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import quotas
from headrace.infra.fleet.scenarios import load_scenario
from headrace.infra.fleet.simulation import Simulation
from headrace.infra.fleet.sink import MemorySink
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, TopicSettings, topic_table
from headrace.schemas.weights import PPM
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.settings import StreamsSettings
from solver_problems import coupled_fleet

SECONDS = 30
FLEETS = ((3, 3, 1), (20, 200, 10), (100, 1_000, 20), (100, 3_000, 50), (200, 5_000, 100))
TABLES = ((3, 100), (30, 100), (300, 100))
BATCH = 100
MIB = 1 << 20
T = TypeVar("T")


def main() -> None:
    """Print the tables; a part of them in a process of its own where it is asked for by name."""
    parser = argparse.ArgumentParser(description="What a deployment is planned with.")
    parser.add_argument("--quick", action="store_true", help="without the largest fleets")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        PARTS[asked.part[0]](*map(int, asked.part[1:]))
        return
    _sizes_and_folds()
    heads = f"{'first tick':>10} {'next':>8} {'memory':>9} {'snapshot':>9} {'decision':>10}"
    print(f"\n{'solver: clusters x engines x models':<36} {heads}")
    for fleet in FLEETS[:3] if asked.quick else FLEETS:
        _alone("solver", *fleet)
    print(f"\n{'gateway: engines a route x routes':<36} {'slots':>8} {'memory':>9} {'a route':>9}")
    for size in TABLES:
        _alone("gateway", *size)


def _alone(*part: object) -> None:
    """Run a part in a process of its own, so that its memory is nobody else's."""
    subprocess.run((sys.executable, __file__, "--part", *map(str, part)), check=True, env=os.environ)


def signals() -> dict[str, list[RawRecord]]:
    """Give what the simulated fleet publishes in half a minute of its own time, by role."""
    scenario, sink = load_scenario("three-regions"), MemorySink()
    routers = {c.name: Router(DataPlaneSettings(), c.name) for c in scenario.clusters}
    nearest = dict(zip((c.name for c in scenario.clusters), (e.spec for e in scenario.engines), strict=True))
    for name, router in routers.items():
        router.apply(plain_snapshot(route_weights({nearest[name].engine_id: PPM}, cluster=name, model=scenario.model)))
    simulation = Simulation(scenario, routers, sink, 1_700_000_000_000, np.random.default_rng(1))
    simulation.start_arrivals()
    simulation.run_until(float(SECONDS))
    found: dict[str, list[RawRecord]] = {}
    for record in sink.drain():
        found.setdefault(record.topic, []).append(record)
    return found


def _sizes_and_folds() -> None:
    by_role, table = signals(), topic_table(TopicSettings())
    print(f"{'records':<36} {'bytes':>8} {'lz4':>8} {'CPU each':>10} {'a core':>10}")
    for role in (SIGNALS_ENGINE, SIGNALS_DEMAND, SIGNALS_NETWORK):
        # Readers and writers are made at their first use, which is not what is measured.
        stored: dict[bytes, bytes] = {}
        KeyedFold(KINDS[role], StreamsSettings(), table[role].partitions).fold(by_role[role][:2], stored.get, None)
        records, fold = by_role[role], KeyedFold(KINDS[role], StreamsSettings(), table[role].partitions)
        states: list[bytes] = []
        began = time.process_time()
        # A second's signals are a batch, as at a worker that keeps up: each is a state of its own.
        for _, second in groupby(records, key=lambda record: record.timestamp_ms):
            folded = fold.fold(list(second), stored.get, None)
            stored.update(folded.states)
            states.extend(folded.states.values())
        took = time.process_time() - began
        rate = f"{len(records) / took:,.0f}/s"
        _size(role, [r.value or b"" for r in records], f"{1e6 * took / len(records):.0f} us", rate)
        _size(role.replace("signals", "state"), states[len(states) // 2 :])


def _size(name: str, values: Sequence[bytes], cpu: str = "", rate: str = "") -> None:
    mean = sum(map(len, values)) / len(values)
    print(f"{name:<36} {mean:>8,.0f} {_compressed(values):>8,.0f} {cpu:>10} {rate:>10}")


def _compressed(values: Sequence[bytes]) -> float:
    batch = b"".join(values[-BATCH:])
    return len(bytes(cramjam.lz4.compress(batch))) / min(len(values), BATCH)


def solver(clusters: int, engines: int, models: int) -> None:
    """Print a line: processor time of the first tick and of the next, the process's memory, the snapshot's bytes."""
    made = coupled_fleet(clusters, engines, models, seed=1)
    settings, lp = SolverSettings(), Glop()
    first, tick = _timed(lambda: solve_tick(made, None, settings, lp, TickStamp(1, 1, 500)))
    again, _ = _timed(lambda: solve_tick(made, tick.snapshot, settings, lp, TickStamp(1, 2, 1_000)))
    size, record = sum(len(encode(route)) for route in tick.snapshot.routes), len(encode(tick.record))
    name = f"{clusters} x {engines:,} x {models}"
    bytes_ = f"{_resident() / MIB:>5.0f} MiB {size / MIB:>5.1f} MiB {record / 1024:>6.1f} KiB"
    print(f"{name:<36} {first:>8.2f} s {again:>6.2f} s {bytes_}", flush=True)


def gateway(engines: int, routes: int) -> None:
    """Print a line: slots of a table, what a process grows by for all routes, and for each."""

    def weights(route: int) -> dict[str, int]:
        shares = np.random.default_rng(route).dirichlet(np.full(engines, 4.0))
        names = (f"engine-{i:04d}" for i in range(engines))
        return dict(zip(names, quotas([int(share * 1e9) for share in shares], PPM), strict=True))

    router = Router(DataPlaneSettings(), CLUSTER)
    router.apply(plain_snapshot(route_weights(weights(routes), model="first")))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    router.apply(plain_snapshot(*(route_weights(weights(i), model=f"m{i:03}", version=2) for i in range(routes))))
    assert router.installation is not None
    slots = next(iter(router.installation.tables.values())).size
    grown = (tracemalloc.get_traced_memory()[0] - before) / routes
    print(
        f"{f'{engines} x {routes}':<36} {slots:>8,} {grown * routes / MIB:>5.0f} MiB {grown / 1024:>5.0f} KiB",
        flush=True,
    )


def _timed(run: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    found = run()
    return time.process_time() - began, found


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


PARTS: dict[str, Callable[..., None]] = {"solver": solver, "gateway": gateway}


if __name__ == "__main__":
    main()
