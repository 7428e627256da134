"""`headrace drain`: take the traffic off an engine for a while, with who says so, why and until when."""

import getpass

import click
import orjson

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.argument("engine")
@click.option("--reason", required=True, help="Why; it stands in every snapshot that it touches.")
@click.option("--for", "duration", metavar="AGE", default="1h", show_default=True, help="For how long: 30m, 2h, 1d.")
@click.option("--author", help="Who says so. [default: the user's name]")
@click.option("--force", is_flag=True, help="Even where requests are shed for it, or it cannot be told.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(
    *, config: Config, engine: str, reason: str, duration: str, author: str | None, force: bool, as_json: bool
) -> None:
    """Give ENGINE no traffic until it expires, or `headrace undrain` takes it back. Nothing else about it changes.

    First the tick that stands is solved without it: where requests would be shed for it, or a route is left without an
    engine, it is refused, with the numbers. The solver obeys at its next tick; `headrace tail --diff` shows the move.

    Example: headrace drain engine-b --reason "driver upgrade, OPS-812" --for 2h
    """
    from headrace.infra.overrides.heard import nobody_obeys
    from headrace.infra.overrides.say import say
    from headrace.infra.weights_tail.since import parse_since
    from headrace.schemas.overrides import Override, OverrideKind
    from headrace.schemas.plain import to_plain
    from headrace.solver.clocks import wall_clock_ms

    now_ms = wall_clock_ms()
    for_ms = now_ms - parse_since(duration, now_ms, "drain", option="--for", versions=False).at_ms
    author = author or getpass.getuser()
    override = Override(OverrideKind.DRAIN, engine, author, reason, now_ms, now_ms + for_ms)
    say(config, override, force=force)
    unheard = nobody_obeys(config.kafka, config.topics, wall_clock_ms())
    click.echo(orjson.dumps(to_plain(override)) if as_json else f"{override.target} is drained {override.words}")
    if unheard is not None:
        click.echo(f"headrace drain: {unheard}", err=True)
