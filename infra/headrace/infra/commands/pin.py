"""`headrace pin`: hold the share that a cluster sends an engine within bounds, with who says so, why and until when."""

import click

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.argument("cluster")
@click.argument("engine")
@click.option("--share", metavar="SHARE", help="Exactly so much: 20%, 5000ppm. Or give bounds:")
@click.option("--least", metavar="SHARE", help="At least so much.")
@click.option("--most", metavar="SHARE", help="At most so much; 0% keeps the cluster off the engine.")
@click.option("--reason", required=True, help="Why; it stands in every snapshot that it touches.")
@click.option("--for", "duration", metavar="AGE", default="1h", show_default=True, help="For how long: 30m, 2h, 1d.")
@click.option("--author", help="Who says so. [default: the user's name]")
@click.option("--force", is_flag=True, help="Even where requests are shed for it, or it cannot be told.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(
    *,
    config: Config,
    cluster: str,
    engine: str,
    share: str | None,
    least: str | None,
    most: str | None,
    reason: str,
    duration: str,
    author: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Hold what CLUSTER sends ENGINE within bounds until it expires, or `headrace unpin` takes it back.

    It is a share of what is asked for, of each of the cluster's routes that the engine may serve. The rest is solved
    for as always. Refused, with the numbers, where it cannot hold: pins of more than 100 %, more than the engine's
    capacity, an engine that the routes may not use; and, without --force, where requests would be shed for it.

    Example: headrace pin tokyo engine-b --share 5% --reason "canary of the new build, OPS-813" --for 2h
    """
    from headrace.infra.overrides.share import EXPECTED, share_ppm
    from headrace.infra.overrides.spoken import say_and_tell, speaker
    from headrace.schemas.errors import InvalidInputError
    from headrace.schemas.overrides import Override, OverrideKind
    from headrace.schemas.weights import PPM

    if (share is None) == (least is None and most is None):
        raise click.UsageError("give --share, or --least and --most or one of them")
    given = {"--share": share, "--least": least, "--most": most}
    ppm = {name: share_ppm(text) for name, text in given.items() if text is not None}
    wrong = tuple(f"{name} is {given[name]!r}; {EXPECTED}" for name, value in ppm.items() if value is None)
    if wrong:
        raise InvalidInputError("pin", wrong)
    low, high = ppm.get("--share", ppm.get("--least", 0)), ppm.get("--share", ppm.get("--most", PPM))
    by = speaker("pin", author, duration)
    override = Override(OverrideKind.PIN, engine, by.author, reason, by.made_ms, by.expires_ms, cluster, low, high)
    words = f"{cluster} sends {engine} {override.share_words}, pinned {override.words}"
    say_and_tell("pin", config, override, words, as_json=as_json, force=force)
