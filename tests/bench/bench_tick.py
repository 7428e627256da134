"""A whole tick from the state topics' newest records to a checked snapshot: 200 clusters, 5,000 engines, 100 models.

    python tests/bench/bench_tick.py [--kind uniform|zipf] [--clusters 200] [--engines 5000] [--models 100] [--ticks 6]

    first    no snapshot before: every route is written
    later    3 % noise on every demand, as a live tick has
    threads  the last tick again on one thread and on two, the best of each: what is solved is what splits

CPU seconds of the process beside the wall clock: on a machine that does other things only the first says anything.
Memory is the most this process ever had, the libraries, the input and two snapshots included, as a solver has them.
Bars: a later tick 1 s and 300 MB on two cores; two threads 1.5 times as fast as one.
"""

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import solver_inputs as record
from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.signals import Metric
from headrace.schemas.state import LatencyState
from headrace.schemas.weights import Snapshot
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.heap import seldom_collected
from headrace.solver.settings import SolverSettings

if TYPE_CHECKING:
    from headrace.schemas.fleet import EngineSpec
    from headrace.schemas.state import EngineState

KNOTS = np.linspace(0.0, 1.0, 11)
LOAD = 0.7
REPEATS = 5
SETTINGS = SolverSettings()


def served_models(size: argparse.Namespace) -> list[int]:
    """Give the model of each engine: alike many engines each, or one over the rank of the model."""
    if size.kind == "uniform":
        return [(i // size.sites) % size.models for i in range(size.engines)]
    ranks = [1.0 / (rank + 1) for rank in range(size.models)]
    found = [m for m, share in enumerate(ranks) for _ in range(max(int(share / sum(ranks) * size.engines), 1))]
    return [found[i % len(found)] for i in range(size.engines)]


def fleet(size: argparse.Namespace) -> StateView:
    """Give the newest records of a fleet at 70 % of each model's capacity, measured a little slower than profiled."""
    dice = np.random.default_rng(7)
    profiles = [
        record.profile(
            f"p{i}",
            load_knots=tuple(KNOTS.tolist()),
            ttft_s=tuple((0.05 / (1 - (0.6 + 0.1 * i) * KNOTS)).tolist()),
            tbot_s=tuple((0.008 + 0.006 * KNOTS).tolist()),
        )
        for i in range(4)
    ]
    specs: list[EngineSpec] = []
    states: list[EngineState] = []
    capacity = np.zeros(size.models)
    for i, model in enumerate(served_models(size)):
        rps, name = float(dice.uniform(5, 40)), f"m{model:03}"
        capacity[model] += rps
        address = f"http://engine-{i}.fleet.example:8000"
        fields = {"site": f"s{i % size.sites:02}", "models": (name,), "profile_id": f"p{i % 4}", "address": address}
        specs.append(record.spec(f"e{i:05}", capacity_rps_per_replica=rps, **fields))
        means = {Metric.TTFT: 0.09, Metric.TBOT: 0.012, Metric.E2E: 1.3}
        latencies = tuple(LatencyState(name, m, int(rps * 7), s, s, s, s, s) for m, s in means.items())
        state = record.engine_state(f"e{i:05}", latencies=latencies, panes=b"", covered_ms=10_000, period_ms=1_000)
        states.append(replace(state, finished_rps=LOAD * rps, running=LOAD * rps))
    demands = [
        record.demand_state(f"c{c:03}", float(share) * LOAD * float(capacity[m]), model=f"m{m:03}", panes=b"")
        for m in range(size.models)
        for c, share in enumerate(dice.dirichlet(np.full(size.clusters, 0.7)))
    ]
    links = [
        record.network_state(f"c{c:03}", f"s{s:02}", float(dice.uniform(0.002, 0.2)), panes=b"")
        for c in range(size.clusters)
        for s in range(size.sites)
    ]
    return StateView(
        specs={spec.key: spec for spec in specs},
        profiles={profile.key: profile for profile in profiles},
        engines={state.key: state for state in states},
        demands={state.key: state for state in demands},
        links={state.key: state for state in links},
        inputs=(),
        overrides={},
    )


def later(view: StateView, dice: np.random.Generator, at_ms: int) -> StateView:
    """Give the same with 3 % noise on demand, heard of just now."""
    demands = {
        key: replace(state, smoothed_rps=(state.smoothed_rps or 0.0) * float(dice.uniform(0.97, 1.03)))
        for key, state in view.demands.items()
    }
    engines = {key: replace(state, last_signal_ms=at_ms) for key, state in view.engines.items()}
    return replace(view, demands=demands, engines=engines)


def clock_us() -> int:
    """Give the wall clock that a tick's record is timed by."""
    return time.perf_counter_ns() // 1000


def ticked(seen: StateView, previous: Snapshot | None, version: int, lp: Glop) -> tuple[Tick, float, float]:
    """Give a tick whose snapshot has passed its check, and what it took: wall clock and CPU, s."""
    now_ms = record.NOW_MS + 500 * version
    wall, cpu = time.perf_counter(), time.process_time()
    problem = assemble(seen, SETTINGS, now_ms)
    tick = solve_tick(problem, previous, SETTINGS, lp, TickStamp(1, version, now_ms, clock_us))
    problems = check_snapshot(tick.snapshot, previous, tick.summands)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if problems:
        raise SystemExit(problems[0])
    return tick, wall, cpu


def main() -> None:
    """Print a line a tick."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("uniform", "zipf"), default="uniform")
    sizes = (("clusters", 200), ("engines", 5000), ("models", 100), ("sites", 20), ("ticks", 6), ("threads", 2))
    for name, default in sizes:
        parser.add_argument(f"--{name}", type=int, default=default)
    size = parser.parse_args()
    with seldom_collected():
        run(size)


def run(size: argparse.Namespace) -> None:
    """Tick, and print what it took."""
    view, dice, lp = fleet(size), np.random.default_rng(3), Glop(size.threads)
    previous: Snapshot | None = None
    walls: list[float] = []
    cpus: list[float] = []
    for version in range(1, size.ticks + 1):
        seen = view if version == 1 else later(view, dice, record.NOW_MS + 500 * version)
        tick, wall, cpu = ticked(seen, previous, version, lp)
        what = f"{len(tick.changed)} of {len(tick.snapshot.routes)} routes written, {tick.record.rung}"
        gap = 0.0 if tick.record.gap is None else tick.record.gap
        print(f"tick {version}: {wall:6.2f} s wall {cpu:6.2f} s CPU; {what}, gap {gap:.3%}", flush=True)
        if version > 1:
            walls.append(wall)
            cpus.append(cpu)
        previous = tick.snapshot
        del tick  # a worker keeps the snapshot alone
    report(walls, cpus)
    if previous is not None and size.threads > 1:
        beside(seen, previous, size.ticks + 1, size.threads)


def report(walls: Sequence[float], cpus: Sequence[float]) -> None:
    """Print the best of the later ticks beside their bars."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    best = f"{min(walls):.2f} s wall, {min(cpus):.2f} s CPU"
    print(f"later, best: {best}, bar 1 s: {'met' if min(walls) < 1 else 'MISSED'}")
    print(f"peak memory {peak:.0f} MB, bar 300 MB: {'met' if peak < 300 else 'MISSED'}")


def beside(seen: StateView, previous: Snapshot, version: int, threads: int) -> None:
    """Print how much faster a tick is on several threads than on one, whole and of what it solves alone."""
    best: dict[int, tuple[float, float]] = {}
    digests: set[str] = set()
    for _ in range(REPEATS):
        for count in (1, threads):
            tick, wall, _ = ticked(seen, previous, version, Glop(count))
            digests.add(tick.snapshot.commit.digest)
            solving = tick.record.solve_us / 1e6
            whole, inside = best.get(count, (wall, solving))
            best[count] = min(whole, wall), min(inside, solving)
    (one, one_lp), (many, many_lp) = best[1], best[threads]
    print(
        f"{threads} threads: solving {one_lp:.2f} s -> {many_lp:.2f} s, {one_lp / many_lp:.2f} times as fast;", end=" "
    )
    verdict = "met" if one / many >= 1.5 else "MISSED"
    same = "the same bytes" if len(digests) == 1 else "OTHER BYTES"
    print(f"whole tick {one:.2f} s -> {many:.2f} s, {one / many:.2f} times, bar 1.5: {verdict}; {same}")
    # Amdahl's law: records are read, made and compared under the interpreter's lock, by one thread at a time.
    most = one / (one - one_lp * (1.0 - 1.0 / threads))
    print(f"the rest, {one - one_lp:.2f} s, is one thread's: {most:.2f} times at most, were what is solved free of it")


if __name__ == "__main__":
    main()
