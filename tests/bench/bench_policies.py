"""Policies in closed loop on public traces: the table of each, as `headrace replay simulate` prints it.

    python tests/bench/bench_policies.py [--for 120] [--delay 5] [--load 0.65] [--policy lp ...] [--trace azure]

Azure's conversation trace ships; Mooncake's and ServeGen's rates are in tests/bench/data. Three regions; an engine dies
after a third of the run and is back after another sixth. `+` and `-` mark what is better and worse than the first one
beyond chance. Below each table: what the score made of the first policy against what the simulated engines showed, and
how many simulated seconds passed per second.
"""

import argparse
import sys
import time
from pathlib import Path

from headrace.infra.fleet.closed_loop import LoopSettings
from headrace.infra.fleet.scenarios import load_scenario
from headrace.infra.fleet.script import parse_script
from headrace.infra.simulate.compare_runs import compared, report_of
from headrace.infra.simulate.run import SETTLE_S, Plan, simulate
from headrace.infra.simulate.trace_arrivals import answers_within, with_trace
from headrace.infra.traces import read_trace
from headrace.replay.core.variant import parse_variants
from headrace.replay.report.document import Origin
from headrace.replay.report.text_table import table_lines
from headrace.replay.score.length_spread import spread_of_values
from headrace.replay.score.settings import ScoreSettings
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings

DATA = Path(__file__).parent / "data"
TRACES = {
    "azure": None,
    "mooncake": DATA / "mooncake_conversation_blocks.csv.gz",
    "servegen": DATA / "servegen_model_rates_10min.csv.gz",
}
POLICIES = ("proportional:k=0.1", "proportional:k=0.3", "pid", "round_robin", "capacity_weighted", "waterfall", "lp")


def run(name: str, file: Path | None, options: argparse.Namespace) -> None:
    trace = read_trace(name, file)
    lasts = options.seconds + SETTLE_S + options.delay + 1.0
    fleet = with_trace(load_scenario("three-regions"), trace, options.load, lasts, 1)
    third = options.seconds / 3.0
    faults = parse_script(f"t={third:.0f}s kill engine-b\nt={1.5 * third:.0f}s revive engine-b", fleet.names)
    spread = spread_of_values(answers_within(trace, lasts), trace.source)
    plan = Plan(fleet, options.seconds, faults, spread, 1, ScoreSettings())
    variants = parse_variants(options.policy or POLICIES, (), SolverSettings())
    lp = Glop(threads=1)
    started = time.perf_counter()
    runs = {}
    for variant in variants:
        settings = LoopSettings(solver=variant.settings, delay_s=options.delay)
        runs[variant.name] = simulate(variant.name, plan, settings, lp, lambda _: False)
        print(".", end="", flush=True, file=sys.stderr)
    speed = len(variants) * options.seconds / (time.perf_counter() - started)
    document = report_of(
        compared(runs, variants, plan.score), runs, variants, lp, Origin(name, trace.source, closed_loop=True)
    )
    print(f"\n{trace.source}: {options.load:.0%} of the capacity, signals {options.delay:g} s late")
    print(*table_lines(document), sep="\n")
    print(document["calibration"]["sentence"])
    print(f"{speed:.0f} simulated seconds a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--for", dest="seconds", type=float, default=120.0)
    parser.add_argument("--delay", type=float, default=5.0)
    parser.add_argument("--load", type=float, default=0.65)
    parser.add_argument("--policy", action="append")
    parser.add_argument("--trace", action="append", choices=sorted(TRACES))
    options = parser.parse_args()
    for name, file in TRACES.items():
        if options.trace is None or name in options.trace:
            run(name, file, options)


if __name__ == "__main__":
    main()
