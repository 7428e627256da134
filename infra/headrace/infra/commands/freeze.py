"""`headrace freeze`: keep all weights as they are for a while, with who says so, why and until when."""

import click

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
    from headrace.infra.overrides.spoken import say_and_tell, speaker
    from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind

    by = speaker("freeze", author, duration)
    override = Override(OverrideKind.FREEZE, WHOLE_FLEET, by.author, reason, by.made_ms, by.expires_ms)
    words = f"all weights are frozen {override.words}"
    say_and_tell("freeze", config, override, words, as_json=as_json)
