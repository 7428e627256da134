"""`headrace replay simulate`: policies against the simulated fleet in closed loop, without any broker."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.infra.fleet.scenario import Scenario
    from headrace.infra.fleet.script import Timed
    from headrace.infra.simulate.run import Advance, Plan, SimulatedRun
    from headrace.infra.traces.request_trace import RequestTrace
    from headrace.replay.core.variant import Variant

    Player = Callable[[Variant, Advance], SimulatedRun]

DEFAULT_POLICIES = ("proportional", "lp")
INTERRUPTED = 130


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where the report goes.")
@click.option("--force", is_flag=True, help="Write over what OUT holds of an earlier run.")
@click.option("--trace", "form", default="azure", show_default=True, help="azure, mooncake, servegen, burstgpt, qwen.")
@click.option("--file", type=click.Path(path_type=Path, dir_okay=False), help="The trace's file; azure ships one.")
@click.option("--policy", "policies", metavar="VARIANT", multiple=True, help="lp, proportional:k=0.1, NAME=POLICY:...")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="For all policies: solver.period_ms=1000.")
@click.option("--for", "seconds", type=click.FloatRange(10, 1e6), default=300.0, show_default=True, help="Seconds.")
@click.option(
    "--load", type=click.FloatRange(0.01, 10), default=0.65, show_default=True, help="Demand / capacity, mean."
)
@click.option("--delay", type=click.FloatRange(0, 600), default=2.0, show_default=True, help="Of signals, seconds.")
@click.option("--faults", type=click.Path(path_type=Path, dir_okay=False), help="A script: t=60s kill engine-b")
@click.option(
    "--by",
    type=click.Choice(["requests", "flows"]),
    default="requests",
    show_default=True,
    help="Single requests, or rates, for days.",
)
@click.option("--scenario", default="three-regions", show_default=True, help="The fleet.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of every draw.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole comparison as JSON.")
def command(
    *,
    out: Path,
    force: bool,
    form: str,
    file: Path | None,
    policies: tuple[str, ...],
    settings: tuple[str, ...],
    seconds: float,
    load: float,
    delay: float,
    faults: Path | None,
    by: str,
    scenario: str,
    seed: int,
    as_json: bool,
) -> None:
    """Run each policy on the same trace, fleet and faults, in closed loop with late signals; write a report.

    The first --policy is what the others are held against; without any, the old P controller, and the program beside
    it. Ctrl-C ends the run that is under way, and the report is of what there is.

    \b
    headrace replay simulate --out report
    headrace replay simulate --out report --trace mooncake --file trace.jsonl --policy lp --policy pid --delay 10
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.fleet.scenarios import load_scenario
    from headrace.infra.simulate.run import SETTLE_S, Plan
    from headrace.infra.simulate.trace_arrivals import answers_within, with_trace
    from headrace.infra.traces import read_trace
    from headrace.replay.core.variant import parse_variants
    from headrace.replay.report.text_table import report_lines
    from headrace.replay.report.write import write_report
    from headrace.replay.score.length_spread import spread_of_values
    from headrace.replay.score.settings import ScoreSettings
    from headrace.schemas.made_folder import empty_folder
    from headrace.solver.settings import SolverSettings

    variants = parse_variants(policies or DEFAULT_POLICIES, settings, SolverSettings())
    fleet = load_scenario(scenario)
    timed = _faults(faults, fleet, seconds)
    empty_folder(out, "--out", force=force)
    trace = read_trace(form, file)
    lasts = seconds + SETTLE_S + delay + 1.0
    spread = spread_of_values(answers_within(trace, lasts), f"{trace.source}, output tokens")
    told = f"{trace.source}, as {by}, at {load:.0%} of the capacity of {scenario}; signals {delay:g} s late"
    told += f"; faults of {faults.name}" if faults is not None else ""
    if by == "flows":
        plan = Plan(fleet, seconds, timed, spread, seed, ScoreSettings())
        player = _flows(plan, trace, load, delay)
    else:
        arriving = with_trace(fleet, trace, load, lasts, seed)
        plan = Plan(arriving, seconds, timed, spread, seed, ScoreSettings())
        player = _requests(plan, delay)
    document = _compared(plan, variants, player, told)
    page = write_report(document, out)
    if as_json:
        click.echo(orjson.dumps(document))
    else:
        for line in report_lines(document, page):
            click.echo(line)
    if not document["complete"]:
        sys.exit(INTERRUPTED)


def _faults(file: Path | None, fleet: "Scenario", seconds: float) -> "tuple[Timed, ...]":
    from headrace.infra.fleet.script import parse_script
    from headrace.schemas.errors import InvalidInputError

    if file is None:
        return ()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(str(file), (f"cannot be read: {error}",)) from error
    timed = parse_script(text, fleet.names)
    late = tuple(each for each in timed if each.at_s >= seconds)
    if late:
        told = f"would never happen: the run ends at {seconds:g} s (--for)"
        raise InvalidInputError(str(file), tuple(f"t={t.at_s:g}s {t.command.sentence}: {told}" for t in late))
    return timed


def _requests(plan: "Plan", delay_s: float) -> "Player":
    from headrace.infra.fleet.closed_loop import LoopSettings
    from headrace.infra.simulate.run import simulate
    from headrace.solver.glop import Glop

    lp = Glop(threads=1)

    def play(variant: "Variant", advance: "Advance") -> "SimulatedRun":
        return simulate(variant.name, plan, LoopSettings(solver=variant.settings, delay_s=delay_s), lp, advance)

    return play


def _flows(plan: "Plan", trace: "RequestTrace", load: float, delay_s: float) -> "Player":
    from headrace.infra.fleet.closed_loop import LoopSettings
    from headrace.infra.simulate.flow_demand import flow_demand
    from headrace.infra.simulate.flow_run import simulate_flows
    from headrace.solver.glop import Glop

    lp = Glop(threads=1)

    def play(variant: "Variant", advance: "Advance") -> "SimulatedRun":
        step_s = variant.settings.period_ms / 1000.0
        demand = flow_demand(plan.scenario, trace, load, plan.seconds, step_s)
        loop = LoopSettings(solver=variant.settings, delay_s=delay_s)
        return simulate_flows(variant.name, plan, demand, loop, lp, advance)

    return play


def _compared(plan: "Plan", variants: "Sequence[Variant]", play: "Player", told: str) -> "dict[str, Any]":
    from headrace.infra.processes.stopping import stop_on_signals
    from headrace.infra.simulate.compare_runs import compared, report_of
    from headrace.replay.report.document import Origin
    from headrace.solver.glop import Glop

    asked = stop_on_signals()
    runs: dict[str, SimulatedRun] = {}
    with click.progressbar(length=round(plan.seconds) * len(variants), label="simulating", file=sys.stderr) as bar:
        for variant in variants:
            if asked():
                break

            def advance(step_s: float) -> bool:
                bar.update(round(step_s))
                return asked()

            runs[variant.name] = play(variant, advance)
    complete = len(runs) == len(variants) and all(run.seconds >= plan.seconds for run in runs.values())
    origin = Origin("Policies in closed loop", told, closed_loop=True, complete=complete)
    comparison = compared(runs, variants, plan.score)
    return report_of(comparison, variants, Glop(threads=1), origin)
