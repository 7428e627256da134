"""`headrace what-if`: the tick that stands, or a past one, solved again with something changed. Dry, always."""

from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.command_line.schema_flag import schema_flag
from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.schemas.codec import SchemaSource


@click.command()
@click.option("--capacity", multiple=True, metavar="ENGINE=RPS", help="It serves so much: engine-a=0.")
@click.option("--add-replicas", "replicas", multiple=True, metavar="ENGINE=N", help="So many more: engine-a=2, =-1.")
@click.option("--drain", multiple=True, metavar="ENGINE", help="It is out.")
@click.option("--back", multiple=True, metavar="ENGINE", help="It is not out any more, healthy and warm.")
@click.option("--demand", multiple=True, metavar="CLUSTER*F", help="It asks for more: tokyo*1.3, tokyo=150, tokyo+20.")
@click.option(
    "--pin", "pins", multiple=True, metavar="CLUSTER=ENGINE=SHARE", help="Held: tokyo=engine-a=20%, =5%..30%."
)
@click.option("--unfreeze", is_flag=True, help="The freeze has ended.")
@click.option("--at", "at_text", metavar="VERSION|AGE|TIME", help="Of that tick: 812, 5m, 2026-01-02T03:04Z; else now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (its schema: --schema).")
@schema_flag(lambda _: "what-if", eager=True)
@config_options
def command(
    *,
    config: Config,
    capacity: tuple[str, ...],
    replicas: tuple[str, ...],
    drain: tuple[str, ...],
    back: tuple[str, ...],
    demand: tuple[str, ...],
    pins: tuple[str, ...],
    unfreeze: bool,
    at_text: str | None,
    as_json: bool,
) -> None:
    """Say what would become of weights, loads and latency if something were otherwise. Options may be given again.

    The tick is computed again from what the solver had read, with the change made, until the weights stay. It reads
    topics and writes none.

    \b
    headrace what-if --drain engine-a
    headrace what-if --demand 'tokyo*1.3' --add-replicas engine-b=2 --json
    headrace what-if --unfreeze                       # what would move if the freeze ended now
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.past_tick.again import compute_again
    from headrace.infra.past_tick.find import find_tick
    from headrace.infra.past_tick.wanted import parse_wanted
    from headrace.infra.what_if.answer import what_if
    from headrace.infra.what_if.edits import NOTHING, Asked, parse_edits
    from headrace.infra.what_if.lines import what_if_lines
    from headrace.schemas.plain import to_plain
    from headrace.solver.clocks import wall_clock_ms
    from headrace.solver.glop import Glop

    now_ms, lp = wall_clock_ms(), Glop()
    asked = Asked(capacity, replicas, drain, back, demand, pins, unfreeze)
    if asked == Asked():
        raise click.UsageError(NOTHING)
    found, _ = find_tick(config, parse_wanted(at_text, now_ms, "what-if"), now_ms, registry=_registry(config))
    again = compute_again(found, lp)
    edits = parse_edits(asked, again.problem)
    answer = what_if(again, edits, found.settings, lp, proved=found.proved)
    click.echo(orjson.dumps(to_plain(answer)) if as_json else "\n".join(what_if_lines(answer)))


def _registry(config: Config) -> "SchemaSource | None":
    if not config.registry.url:
        return None
    from headrace.schemas.bus.registry import Registry

    return Registry(config.registry)
