"""`headrace drain`: take the traffic off an engine for a while, with who says so, why and until when."""

import click

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
    from headrace.infra.overrides.spoken import say_and_tell, speaker
    from headrace.schemas.overrides import Override, OverrideKind

    by = speaker("drain", author, duration)
    override = Override(OverrideKind.DRAIN, engine, by.author, reason, by.made_ms, by.expires_ms)
    words = f"{override.target} is drained {override.words}"
    say_and_tell("drain", config, override, words, as_json=as_json, force=force)
