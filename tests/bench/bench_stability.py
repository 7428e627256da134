"""The program against the best-tuned P controller, in a closed loop, with signals that come late.

    python tests/bench/bench_stability.py [--seeds 2] [--delays 0,5,10,20] [--gains 0.003,0.01,0.03,0.1]
                                           [--first-seed 101] [--processes 2]

The gain sweep comes first, at each delay, on a seed of its own; the best gain is the one with the least mean latency
over all phases. Then both run on the same seeds. Phases: quiet; an engine dies, and is back after half of the phase;
demand moves from one cluster to another (+40 % and -40 %). Window 10 s, a report a second, 225 RPS on 280.

`moved` is % of all traffic a minute, `kv hit` the share of a session's requests that go where its last one went, `shed`
all that was not answered, `overload` engine seconds with somebody waiting. A verdict is of paired differences: a win or
a loss is one whose 95 % interval leaves out 0; "better" and "worse" are means of too few seeds to tell. There are some
seventy verdicts, so of 95 % intervals a few are wrong. Latencies are of answered requests only: where one of two sheds
more, its latencies are of fewer, and `shed` is to be read beside them.

Settings were chosen on seeds 1 and 2; the first seed is 101, so that they are judged on others. A best gain at the end
of the sweep is said to be there: then a better one may lie beyond.
"""

import argparse
import math
import multiprocessing
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from headrace.solver.settings import SolverSettings
from stability import PHASES, RIGHT, Case, Errors, Lengths, averaged, interval, measure

Run = dict[str, dict[str, float]]
LP = SolverSettings()
METRICS = (
    ("mean_ms", "mean ms", -1),
    ("p99_ms", "p99 ms", -1),
    ("kv_hit", "kv hit %", 1),
    ("moved", "moved %/min", -1),
    ("shed", "shed %", -1),
    ("overload_s", "overload s", -1),
)
SWEEP_SEED = 1000


@dataclass(frozen=True, slots=True)
class Job:
    """One run, and what it is called."""

    name: str
    case: Case


def p_controller(gain: float) -> SolverSettings:
    """Give the old loop as it was: no protections of ours but the exclusion of who is silent."""
    return replace(
        LP, policy="proportional", proportional_gain=gain, trim_bound=1.0, cold_ramp_ms=0, backlog_drain_ms=0
    )


def case(solver: SolverSettings, delay_s: float, seed: int, errors: Errors = RIGHT) -> Case:
    """Give a run whose phases are as long as its delay needs."""
    return Case(solver, delay_s, seed, Lengths().after(delay_s), errors)


def run_all(jobs: Sequence[Job], processes: int) -> dict[str, list[Run]]:
    """Run jobs, and give their results by name, in their order."""
    cases = [job.case for job in jobs]
    if processes > 1:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            found = pool.map(measure, cases, chunksize=1)
    else:
        found = [measure(c) for c in cases]
    results: dict[str, list[Run]] = {}
    for job, run in zip(jobs, found, strict=True):
        results.setdefault(job.name, []).append(run)
    return results


def mean_latency(runs: Sequence[Run]) -> float:
    """Give the mean latency over all phases; a phase without answers counts as endless."""
    found = [averaged(runs, phase, "mean_ms")[0] for phase in PHASES]
    return math.inf if any(math.isnan(v) for v in found) else sum(found) / len(found)


def verdict(ours: Sequence[Run], theirs: Sequence[Run], at: tuple[str, str], sign: int) -> str:
    """Say how paired runs compare in one number; `sign` 1 where more is better."""
    phase, name = at
    mean, half = interval([sign * (a[phase][name] - b[phase][name]) for a, b in zip(ours, theirs, strict=True)])
    if abs(mean) < 0.05:
        return "even"
    if math.isnan(half) or abs(mean) <= half:
        return "better" if mean > 0 else "worse"
    return "WINS" if mean > 0 else "LOSES"


def compare(title: str, names: tuple[str, str], results: dict[str, list[Run]]) -> list[str]:
    """Print one block, and give the comparisons that were not won."""
    print(f"\n{title}\n{'':10}{'':14}{names[0]:>22}{names[1]:>22}")
    lost: list[str] = []
    for phase in PHASES:
        for name, label, sign in METRICS:
            cells = [averaged(results[n], phase, name) for n in names]
            said = verdict(results[names[0]], results[names[1]], (phase, name), sign)
            print(f"{phase:10}{label:14}" + "".join(f"{shown(*c):>22}" for c in cells) + f"  {said}")
            if said in ("worse", "LOSES") and name in ("mean_ms", "p99_ms", "kv_hit"):
                lost.append(f"{title}, {phase}, {label}: {cells[0][0]:.1f} against {cells[1][0]:.1f} ({said})")
    return lost


def shown(mean: float, half: float) -> str:
    """Give mean and interval as text."""
    return f"{mean:.1f}" if math.isnan(half) else f"{mean:.1f} +- {half:.1f}"


def profile_errors(seeds: range, processes: int, delay_s: float) -> None:
    """Print what wrong beliefs cost, with trim and without."""
    wrong, plain = Errors(speed=0.2, capacity=0.1), replace(LP, trim_bound=1.0)
    kinds = (("right", plain, RIGHT), ("wrong, no trim", plain, wrong), ("wrong, trim", LP, wrong))
    jobs = [Job(n, case(s, delay_s, seed, e)) for n, s, e in kinds for seed in seeds]
    results = run_all(jobs, processes)
    print(f"\nprofiles wrong by 20 % in speed and 10 % in capacity, in turn up and down; delay {delay_s:g} s")
    for name, _, _ in kinds:
        cells = [
            f"{phase} {shown(*averaged(results[name], phase, m))}" for m in ("mean_ms", "p99_ms") for phase in PHASES
        ]
        cost = averaged(results[name], "quiet", "mean_ms")[0] / averaged(results["right"], "quiet", "mean_ms")[0] - 1
        print(f"  {name:16} mean ms {', '.join(cells[:3])}; p99 ms {', '.join(cells[3:])}; quiet mean {cost:+.1%}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=101)
    parser.add_argument("--delays", default="0,5,10,20")
    parser.add_argument("--gains", default="0.003,0.01,0.03,0.1")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    delays, gains = ([float(x) for x in text.split(",")] for text in (asked.delays, asked.gains))
    sweep = run_all(
        [Job(f"{d}/{g}", case(p_controller(g), d, SWEEP_SEED)) for d in delays for g in gains], asked.processes
    )
    best = {d: min(gains, key=lambda g, d=d: (mean_latency(sweep[f"{d}/{g}"]), g)) for d in delays}  # type: ignore[misc]  # the default binds the loop's value
    print("gain sweep of the P controller, mean ms over all phases (a gain is per second)")
    for d in delays:
        found = ", ".join(f"{g:g}: {mean_latency(sweep[f'{d}/{g}']):.0f}" for g in gains)
        at_end = " (the end of the sweep)" if best[d] in (min(gains), max(gains)) else ""
        print(f"  delay {d:4g} s   {found}   -> {best[d]:g}{at_end}")
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    jobs = [
        Job(f"{name} {d}", case(settings, d, seed))
        for d in delays
        for name, settings in (("lp", LP), ("P", p_controller(best[d])))
        for seed in seeds
    ]
    results = run_all(jobs, asked.processes)
    lost: list[str] = []
    for d in delays:
        pair = {"lp": results[f"lp {d}"], f"P at {best[d]:g}": results[f"P {d}"]}
        lost += compare(f"delay {d:g} s, {asked.seeds} seeds", ("lp", f"P at {best[d]:g}"), pair)
    moved = {d: averaged(results[f"lp {d}"], "quiet", "moved")[0] for d in delays}
    print("\nlp, moved %/min in quiet by delay: " + ", ".join(f"{d:g} s {v:.2f}" for d, v in moved.items()))
    profile_errors(seeds, asked.processes, min(delays, key=lambda d: abs(d - 5.0)))
    print("\nnot won: " + ("nothing" if not lost else "".join(f"\n  {line}" for line in lost)))


if __name__ == "__main__":
    main()
