"""What is lost while a lone engine fails: by the data planes alone, by the solver alone, by both, and by neither.

    python tests/bench/bench_failing_engine.py [--seeds 1] [--first-seed 101] [--processes 2]

Three regions with one engine each, in closed loop and virtual time, signals a second late. For 60 s engine-a answers a
share of what reaches it with errors, at once; then 60 s more, healed. `demand` is of 280 RPS. Numbers are of requests
that arrived in the 60 s, means over the seeds: `failed` were answered with an error for good, `refused` were shed or
taken by no engine; `in time` were answered within three seconds. `moved by` is when engine-a's own cluster sent it a
quarter less than before, `back by` when it sent it nine tenths of that again, in seconds after the fault or its end;
"-" is not at all, with one of the seeds.

`neither` is the pair of switches `solver.outlier_max_share` 0 and `dataplane.guards.ejected_max` 0 (frozen, too).
"""

import argparse
import math
import multiprocessing
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.fleet.closed_loop import ClosedLoop, LoopSettings
from headrace.infra.fleet.request import Ended, Kind, Request
from headrace.infra.fleet.scenarios.three_regions import scenario as three_regions
from headrace.infra.fleet.script import parse_script
from headrace.schemas.weights import PPM, Snapshot
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from stability import IN_TIME_S, START_MS, elsewhere, scaled

SETTLE_S, FAULT_S, HEALED_S = 30.0, 60.0, 60.0
CAPACITY_RPS, DEMAND_RPS = 280.0, 250.0
FAULTS = {"all fail": "errors engine-a 1", "half fail": "errors engine-a 0.5", "a tenth fails": "errors engine-a 0.1"}
DEMANDS = (0.62, 0.8)
ARMS = {"neither": (False, False), "data planes": (False, True), "solver": (True, False), "both": (True, True)}
NUMBERS = ("failed", "refused", "in time", "mean ms", "p99 ms", "moved by", "back by")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one arm."""

    fault: str
    demand: float
    arm: str
    seed: int


def measure(run: Run) -> dict[str, float]:
    """Give a run's numbers."""
    solver_acts, planes_act = ARMS[run.arm]
    solver = SolverSettings() if solver_acts else SolverSettings(outlier_max_share=0.0)
    planes = DataPlaneSettings()
    if not planes_act:
        planes = replace(planes, guards=replace(planes.guards, ejected_max=0.0, ejected_max_frozen=0.0))
    fleet = elsewhere(scaled(three_regions(), run.demand * CAPACITY_RPS / DEMAND_RPS), run.seed)
    settings = LoopSettings(solver=solver, dataplane=planes, delay_s=1.0)
    loop = ClosedLoop(fleet, settings, Glop(threads=1), START_MS, np.random.default_rng(run.seed))
    ended: list[tuple[Request, Ended]] = []
    loop.simulation.listeners.append(lambda request, end: ended.append((request, end)))
    loop.warm_up(limit_s=60.0)
    start_s = loop.simulation.timeline.now_s
    script = f"t={SETTLE_S}s {FAULTS[run.fault]}\nt={SETTLE_S + FAULT_S}s heal engine-a"
    for timed in parse_script(script, fleet.names):
        loop.simulation.schedule(timed, start_s)
    loop.simulation.run_until(start_s + SETTLE_S + FAULT_S + HEALED_S)
    fault_s, heal_s = start_s + SETTLE_S, start_s + SETTLE_S + FAULT_S
    here = [end for request, end in ended if fault_s <= request.arrived_s < heal_s]
    latency = sorted(1000.0 * end.latency_s for end in here if end.latency_s is not None)
    before = max(share(s) for at_s, s in loop.snapshots if fault_s - 10.0 <= at_s < fault_s)
    return {
        "failed": 100.0 * sum(end.kind is Kind.FAILED for end in here) / len(here),
        "refused": 100.0 * sum(end.kind is Kind.REFUSED for end in here) / len(here),
        "in time": 100.0 * sum(ms <= 1000.0 * IN_TIME_S for ms in latency) / len(here),
        "mean ms": sum(latency) / len(latency),
        "p99 ms": latency[math.ceil(0.99 * len(latency)) - 1],
        "moved by": first(loop, fault_s, heal_s, lambda now: now <= 0.75 * before),
        "back by": first(loop, heal_s, math.inf, lambda now: now >= 0.9 * before),
    }


def share(snapshot: Snapshot) -> float:
    """Give the share of cluster-a that engine-a is to get."""
    (route,) = (r for r in snapshot.routes if r.cluster == "cluster-a")
    return sum(t.weight_ppm for t in route.targets if t.engine_id == "engine-a") / PPM


def first(loop: ClosedLoop, from_s: float, to_s: float, holds) -> float:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give how long after `from_s` the first snapshot is whose share does; NaN where there is none."""
    return next((at_s - from_s for at_s, s in loop.snapshots if from_s <= at_s < to_s and holds(share(s))), math.nan)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=101)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    runs = [Run(f, d, arm, seed) for f in FAULTS for d in DEMANDS for arm in ARMS for seed in seeds]
    with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
        found = dict(zip(runs, pool.map(measure, runs, chunksize=1), strict=True))
    for fault in FAULTS:
        for demand in DEMANDS:
            print(f"\n{fault}, demand {demand:.0%} of capacity")
            print(f"{'':14}" + "".join(f"{name:>11}" for name in NUMBERS))
            for arm in ARMS:
                of = [found[Run(fault, demand, arm, seed)] for seed in seeds]
                cells = (told([each[name] for each in of], name) for name in NUMBERS)
                print(f"{arm:14}" + "".join(f"{cell:>11}" for cell in cells))


def told(values: list[float], name: str) -> str:
    """Give the mean, or that some had none."""
    if any(math.isnan(value) for value in values):
        return "-"
    mean = sum(values) / len(values)
    return (
        f"{mean:.2f} %" if name in ("failed", "refused") else f"{mean:.1f} %" if name == "in time" else f"{mean:,.0f}"
    )


if __name__ == "__main__":
    main()
