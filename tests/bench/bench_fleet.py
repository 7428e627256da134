"""How much faster than the clock the simulated fleet runs: alone, and in a closed loop with fold, solver and routers.

    python tests/bench/bench_fleet.py

Scenario three-regions: three clusters with 250 requests a second together, three engines.
"""

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fleet_inputs import START_MS, fixed_run, three_regions
from headrace.infra.fleet.closed_loop import ClosedLoop, LoopSettings
from headrace.solver.glop import Glop

SECONDS = 120.0


def main() -> None:
    """Print simulated seconds and requests per second of real time."""
    began = time.perf_counter()
    simulation, _ = fixed_run(SECONDS)
    report("fleet alone", time.perf_counter() - began, simulation.tally.arrived)
    loop = ClosedLoop(three_regions(), LoopSettings(), Glop(threads=1), START_MS, np.random.default_rng(1))
    began = time.perf_counter()
    loop.warm_up()
    loop.simulation.run_until(SECONDS)
    report("closed loop", time.perf_counter() - began, loop.simulation.tally.arrived)


def report(name: str, took_s: float, requests: int) -> None:
    """Print one line."""
    print(f"{name}: {SECONDS / took_s:.0f} simulated seconds a second, {requests / took_s:.0f} requests a second")


if __name__ == "__main__":
    main()
