"""A whole tick from the state topics' newest records to a checked snapshot: 200 clusters, 5,000 engines, 100 models.

    python tests/bench/bench_tick.py [--kind uniform|zipf|coupled] [--clusters 200] [--engines 5000] [--models 100]

    first    no snapshot before: every route is written
    later    3 % noise on every demand, as a live tick has
    threads  the last tick and the first one again on one thread and on two, in turns, the best of each

`coupled`: 30 % of the engines serve another model too, any one, so that all hangs together and is sifted in one; it is
here to be seen, and has no bars.

CPU seconds of the process beside the wall clock: on a machine that does other things only the first says anything.
Memory is the most this process ever had, the libraries, the input and two snapshots included, as a solver has them.
Bars: a later tick 1 s and 300 MB on two cores; two threads 1.5 times as fast as one, of a later tick's solving and of
all of it. What bounds them is printed too (Amdahl's law): GLOP's own seconds are what two threads may share, since all
else is Python, or numpy on arrays so short that the GIL is as good as held.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from ortools.linear_solver.python import model_builder_helper as mbh

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
REPEATS = 10
BAR = 1.5
COUPLED = 0.3
"""Share of the engines that serve another model too."""
SETTINGS = SolverSettings()


@dataclass(frozen=True, slots=True)
class Took:
    """What a tick took, s: all of it, of that the policy, of that GLOP on all threads; and of the process's CPU."""

    whole: float
    solving: float
    glop: float
    cpu: float

    def best(self, other: "Took") -> "Took":
        """Give the least of two runs of the same."""
        return Took(*map(min, astuple(self), astuple(other)))


def served_models(size: argparse.Namespace) -> list[int]:
    """Give the model of each engine: alike many engines each, or one over the rank of the model."""
    if size.kind != "zipf":
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
        shared = size.kind == "coupled" and dice.random() < COUPLED
        models = tuple(dict.fromkeys((name, f"m{int(dice.integers(size.models)):03}"))) if shared else (name,)
        fields = {"site": f"s{i % size.sites:02}", "models": models, "profile_id": f"p{i % 4}", "address": address}
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


GLOP_S: list[float] = []
"""Seconds of each of GLOP's programs, in the order in which they were done."""


def glop_timed() -> None:
    """Time what GLOP itself takes, from here on."""
    solve = mbh.ModelSolverHelper.solve

    def timed(solver: mbh.ModelSolverHelper, model: mbh.ModelBuilderHelper) -> None:
        start = time.perf_counter()
        solve(solver, model)
        GLOP_S.append(time.perf_counter() - start)

    mbh.ModelSolverHelper.solve = timed


def ticked(seen: StateView, previous: Snapshot | None, version: int, lp: Glop) -> tuple[Tick, Took]:
    """Give a tick whose snapshot has passed its check, and what it took."""
    now_ms = record.NOW_MS + 500 * version
    GLOP_S.clear()
    wall, cpu = time.perf_counter(), time.process_time()
    problem = assemble(seen, SETTINGS, now_ms)
    tick = solve_tick(problem, previous, SETTINGS, lp, TickStamp(1, version, now_ms, clock_us))
    problems = check_snapshot(tick.snapshot, previous, tick.summands)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if problems:
        raise SystemExit(problems[0])
    return tick, Took(wall, tick.record.solve_us / 1e6, sum(GLOP_S), cpu)


def main() -> None:
    """Print a line a tick."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("uniform", "zipf", "coupled"), default="uniform")
    sizes = (("clusters", 200), ("engines", 5000), ("models", 100), ("sites", 20), ("ticks", 6), ("threads", 2))
    for name, default in sizes:
        parser.add_argument(f"--{name}", type=int, default=default)
    size = parser.parse_args()
    glop_timed()
    with seldom_collected():
        run(size)


def run(size: argparse.Namespace) -> None:
    """Tick, and print what it took."""
    view, dice, lp = fleet(size), np.random.default_rng(3), Glop(size.threads)
    previous: Snapshot | None = None
    later_ones: list[Took] = []
    for version in range(1, size.ticks + 1):
        seen = view if version == 1 else later(view, dice, record.NOW_MS + 500 * version)
        tick, took = ticked(seen, previous, version, lp)
        what = f"{len(tick.changed)} of {len(tick.snapshot.routes)} routes written, {tick.record.rung}"
        gap = 0.0 if tick.record.gap is None else tick.record.gap
        print(f"tick {version}: {took.whole:6.2f} s wall {took.cpu:6.2f} s CPU; {what}, gap {gap:.3%}", flush=True)
        if version > 1:
            later_ones.append(took)
        previous = tick.snapshot
        del tick  # a worker keeps the snapshot alone
    report(later_ones, has_bars=size.kind != "coupled")
    if previous is not None and size.threads > 1:
        again = partial(ticked, seen, previous, size.ticks + 1)
        beside("a later tick", size.threads, REPEATS, again, has_bars=size.kind != "coupled")
        del again, previous
        beside("the first tick", size.threads, 2, partial(ticked, view, None, 1), has_bars=False)


def bar(least: str, *, is_met: bool, has_bars: bool) -> str:
    """Give a bar, and whether it is met."""
    return f", bar {least}: {'met' if is_met else 'MISSED'}" if has_bars else ""


def report(later_ones: Sequence[Took], *, has_bars: bool) -> None:
    """Print the best of the later ticks beside their bars."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, cpu = min(took.whole for took in later_ones), min(took.cpu for took in later_ones)
    print(f"later, best: {wall:.2f} s wall, {cpu:.2f} s CPU{bar('1 s', is_met=wall < 1, has_bars=has_bars)}")
    print(f"peak memory {peak:.0f} MB{bar('300 MB', is_met=peak < 300, has_bars=has_bars)}")


def beside(
    name: str, threads: int, repeats: int, run_it: Callable[[Glop], tuple[Tick, Took]], *, has_bars: bool
) -> None:
    """Print how much faster a tick is on several threads, its solving and all of it, and what bounds that."""
    best: dict[int, Took] = {}
    digests: set[str] = set()
    for _ in range(repeats):
        for count in (1, threads):
            tick, took = run_it(Glop(count))
            digests.add(tick.snapshot.commit.digest)
            del tick
            best[count] = best.get(count, took).best(took)
    one, many = best[1], best[threads]
    same = "the same bytes" if len(digests) == 1 else "OTHER BYTES"
    print(f"{name}, {threads} threads beside one: {same}")
    share = one.glop * (1.0 - 1.0 / threads)
    for what, alone, beside_ in (("solving", one.solving, many.solving), ("all of it", one.whole, many.whole)):
        ratio, most = alone / beside_, alone / max(alone - one.glop, share, 1e-9)
        line = f"  {what}: {alone:.2f} s -> {beside_:.2f} s, {ratio:.2f} times"
        line += bar(str(BAR), is_met=ratio >= BAR, has_bars=has_bars)
        print(f"{line}; GLOP is {one.glop:.2f} s of it: {most:.2f} times at most")


if __name__ == "__main__":
    main()
