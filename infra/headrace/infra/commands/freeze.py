"""`headrace freeze`: keep all weights as they are for a while, with who says so, why and until when."""

import getpass

import click
import orjson

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.option("--reason", required=True, help="Why; it stands in every snapshot until it ends.")
@click.option(
    "--for", "duration", metavar="AGE", default="30m", show_default=True, help="For how long: 30m, 2h; at most 1d."
)
@click.option("--author", help="Who says so. [default: the user's name]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(*, config: Config, reason: str, duration: str, author: str | None, as_json: bool) -> None:
    """Keep all weights as they are until it expires, or `headrace unfreeze` takes it back.

    Snapshots are HELD meanwhile, and say why. Engines that are known to be gone still lose their traffic; nothing is
    moved for demand, and nothing is shed or let in anew.

    Example: headrace freeze --reason "incident 4711, hands off" --for 1h
    """
    from headrace.infra.overrides.heard import nobody_obeys
    from headrace.infra.overrides.say import say
    from headrace.infra.weights_tail.since import parse_since
    from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind
    from headrace.schemas.plain import to_plain
    from headrace.solver.clocks import wall_clock_ms

    now_ms = wall_clock_ms()
    for_ms = now_ms - parse_since(duration, now_ms, "freeze", option="--for", versions=False).at_ms
    author = author or getpass.getuser()
    override = Override(OverrideKind.FREEZE, WHOLE_FLEET, author, reason, now_ms, now_ms + for_ms)
    say(config, override)
    unheard = nobody_obeys(config.kafka, config.topics, wall_clock_ms())
    click.echo(orjson.dumps(to_plain(override)) if as_json else f"all weights are frozen {override.words}")
    if unheard is not None:
        click.echo(f"headrace freeze: {unheard}", err=True)
