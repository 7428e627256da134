"""`headrace solve`: solve a problem file without any broker; print the weights, and why they are what they are."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from headrace.solver.core.problem import Problem
    from headrace.solver.core.problem_file.problem_json import ParsedProblem
    from headrace.solver.core.program.score import Score
    from headrace.solver.core.tick import Tick
    from headrace.solver.core.why.explanation import Explanation
    from headrace.solver.settings import SolverSettings

_PREFIX = "solver."


class PolicyOption(click.Option):
    """An option whose help names the policies that there are, found only where help is asked for."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Give the line of the help."""
        from headrace.solver.core.policies import policy_names

        self.help = f"Policy: {', '.join(policy_names())}."
        return super().get_help_record(ctx)


class SolveCommand(click.Command):
    """A command that says what --explain takes, with its usage, where too little is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            if error.option_name != "--explain":
                raise
            takes = "--explain takes CLUSTER and ENGINE, such as --explain cluster-b engine-b"
            raise click.UsageError(takes, ctx) from error


def _print_form(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    from headrace.solver.core.problem_file import problem_json

    if value and not ctx.resilient_parsing:
        click.echo(problem_json.__doc__)
        ctx.exit()


@click.command(
    cls=SolveCommand,
    epilog="PROBLEM is a JSON file, `-` for standard input, or the name of one that ships, such as three-regions. "
    "Its form, field by field: headrace solve --form; a complete example: headrace solve three-regions --print.",
)
@click.argument("problem", metavar="PROBLEM")
@click.option(
    "--form", is_flag=True, is_eager=True, expose_value=False, callback=_print_form, help="Print the file's form."
)
@click.option(
    "--profiles",
    "profiles_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take profiles from there, in place of those of the same id: what `headrace profile fit --out` writes.",
)
@click.option("--print", "print_it", is_flag=True, help="Print the problem itself, as it is read, and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: snapshot, decision record, score, explanation.")
@click.option("--explain", "why", nargs=2, metavar="CLUSTER ENGINE", help="Say why an engine has its weight.")
@click.option("--model", help="With --explain: the model, where the cluster asks for several.")
@click.option("--class", "request_class", help="With --explain: the request class, where there are several.")
@click.option("--policy", cls=PolicyOption)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting, such as solver.segments=16.")
@click.option("--snapshot-out", type=click.Path(path_type=Path), help="Write the snapshot for `headrace route`.")
@click.option("--now-ms", type=int, default=0, show_default=True, help="Tick time, ms since the epoch.")
def command(
    *,
    problem: str,
    profiles_file: Path | None,
    print_it: bool,
    as_json: bool,
    why: tuple[str, str] | None,
    model: str | None,
    request_class: str | None,
    policy: str | None,
    settings: tuple[str, ...],
    snapshot_out: Path | None,
    now_ms: int,
) -> None:
    """Solve a problem file: weights of every route, with reasons.

    The file alone decides the answer, but for --set and --policy: no configuration file is read.
    """
    from headrace.infra.fleet_records.file import read_fleet_file
    from headrace.schemas.errors import InvalidInputError
    from headrace.schemas.snapshot_file import write_snapshot
    from headrace.solver.core.problem_file.problem_json import parse_problem
    from headrace.solver.core.why.explain import explain
    from headrace.solver.core.why.explain_words import one_more_words

    content = _content(problem)
    if print_it:
        click.echo(content, nl=not content.endswith(b"\n"))
        return
    given = () if profiles_file is None else read_fleet_file(profiles_file).profiles
    if profiles_file is not None and not given:
        raise InvalidInputError(str(profiles_file), ("it holds no [[profiles]]",))
    parsed = parse_problem(content, name="standard input" if problem == "-" else problem, given=given)
    for warning in parsed.warnings:
        click.echo(f"warning: {warning}", err=True)
    rules = _overridden(parsed.settings, settings, policy)
    tick, scored = _solved(parsed, rules, now_ms)
    explanation = None if why is None else explain(tick, why[0], why[1], model, request_class)
    if snapshot_out is not None:
        write_snapshot(snapshot_out, tick.snapshot)
    if as_json:
        click.echo(_as_json(tick, scored, explanation))
    elif explanation is not None:
        click.echo("\n".join(explanation.sentences))
        if explanation.terms is not None and explanation.route_marginal_ms is not None:
            larger = replace(parsed, problem=_one_more(parsed.problem, explanation.engine_id))
            again = _solved(larger, rules, now_ms)[1]
            mean, shed = (scored.end_to_end_ms, again.end_to_end_ms), (scored.shed_rps, again.shed_rps)
            click.echo(one_more_words(explanation.engine_id, mean, shed))
    else:
        click.echo(_as_text(tick, scored))


def _solved(parsed: "ParsedProblem", rules: "SolverSettings", now_ms: int) -> "tuple[Tick, Score]":
    from headrace.solver.core.program.score import score
    from headrace.solver.core.tick import TickStamp, solve_tick
    from headrace.solver.glop import Glop

    tick = solve_tick(parsed.problem, parsed.previous, rules, Glop(), TickStamp(1, 1, now_ms))
    if tick.decision is None:
        raise AssertionError("solve_tick always decides")
    return tick, score(tick.decision.layout, tick.decision.plan)


def _one_more(problem: "Problem", engine_id: str) -> "Problem":
    return replace(
        problem,
        engines=tuple(
            replace(each, ready_replicas=each.ready_replicas + 1) if each.engine_id == engine_id else each
            for each in problem.engines
        ),
    )


def _content(name: str) -> bytes:
    """Give what a file holds, standard input, or a problem that ships; a file goes before one that ships."""
    from headrace.infra.configuration.expected import why_unreadable
    from headrace.schemas.errors import InvalidInputError

    if name == "-":
        return click.get_binary_stream("stdin").read()
    path, shipped = Path(name), _shipped()
    if not path.exists() and name in shipped:
        return shipped[name].read_bytes()
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidInputError(name, (_not_there(path, sorted(shipped)),)) from None
    except OSError as error:
        raise InvalidInputError(name, (why_unreadable(error),)) from error


def _shipped() -> "dict[str, Traversable]":
    from importlib import resources

    folder = resources.files("headrace.infra.problems")
    return {each.name.removesuffix(".json"): each for each in folder.iterdir() if each.name.endswith(".json")}


def _not_there(path: Path, shipped: list[str]) -> str:
    """Say that there is no such file, and which problem that ships a name without a folder or an ending may mean."""
    from headrace.infra.configuration.tree import nearest

    if path.suffix or path.parent != Path():
        return f"there is no such file; problems that ship with headrace go by name: {', '.join(shipped)}"
    return f"there is no such file, and no such problem ships with headrace; {nearest(path.name, shipped)}"


def _overridden(base: "SolverSettings", given: tuple[str, ...], policy: str | None) -> "SolverSettings":
    from headrace.schemas.errors import InvalidInputError
    from headrace.solver.core.problem_file.setting_values import with_settings

    problems: list[str] = []
    values: dict[str, Any] = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals or not key.startswith(_PREFIX):
            problems.append(f"--set is {item!r}; expected {_PREFIX}NAME=VALUE")
            continue
        try:
            values[key.removeprefix(_PREFIX)] = orjson.loads(value)
        except orjson.JSONDecodeError:
            values[key.removeprefix(_PREFIX)] = value
    if policy is not None:
        values["policy"] = policy
    settings = with_settings(base, values, "solver", problems)
    if problems:
        raise InvalidInputError("settings", tuple(problems))
    return settings


def _as_json(tick: "Tick", scored: "Score", explanation: "Explanation | None") -> str:
    from headrace.schemas.plain import to_plain

    document: dict[str, Any] = {
        "snapshot": to_plain(tick.snapshot),
        "record": to_plain(tick.record),
        "score": {**to_plain(scored), "end_to_end_ms": scored.end_to_end_ms},
    }
    if explanation is not None:
        document["explanation"] = {**to_plain(explanation), "route": str(explanation.route)}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _as_text(tick: "Tick", scored: "Score") -> str:
    commit, record = tick.snapshot.commit, tick.record
    acted = (f"{each.protection} of {each.engine_id}: {each.sentence}" for each in commit.protections)
    lines = [f"{commit.status} ({record.rung}): {commit.sentence}", *acted, ""]
    for route in tick.snapshot.routes:
        shed = f", {route.shed_ratio * 100:.1f} % shed" if route.shed_ratio > 0.0 else ""
        lines.append(f"{route.route}  tier {route.tier}  {route.demand_rps:.1f} RPS{shed}")
        served = route.demand_rps * (1.0 - route.shed_ratio)
        for target in route.targets:
            rps = served * target.weight_ppm / 1_000_000
            lines.append(
                f"  {target.weight_ppm / 10_000:9.4f} %  {rps:8.1f} RPS  {target.engine_id:16} {target.sentence}"
            )
        lines.extend(f"   excluded                 {x.engine_id:16} {x.reason}: {x.sentence}" for x in route.excluded)
    lines.append("")
    lines.append(
        f"mean end to end {scored.end_to_end_ms:.1f} ms = {scored.network_ms:.1f} network + "
        f"{scored.engine_ms:.1f} engine, over {scored.served_rps:.1f} RPS served; {scored.shed_rps:.1f} RPS shed"
    )
    if scored.overloaded_rps > 0.0:
        lines.append(f"{scored.overloaded_rps:.1f} RPS are above capacity: their queue is not in these numbers")
    return "\n".join(lines)
