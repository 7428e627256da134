"""`headrace replay compare`: the live policy against a shadow that looked on."""

from pathlib import Path

import click

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.option("--live-vs-shadow", is_flag=True, help="What was live against what `--shadow` wrote.")
@click.option("--dir", "folder", type=click.Path(path_type=Path, file_okay=False), help="A folder of exported history.")
@click.option("--from", "from_text", metavar="TIME", help="Or a range on the broker: 2026-01-02T03:04Z, 2h.")
@click.option("--to", "to_text", metavar="TIME", help="Where the range ends; now, where it is not given.")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Where the result goes.")
@click.option("--force", is_flag=True, help="Write over what OUT holds of an earlier run.")
@click.option("--processes", type=click.IntRange(1, 64), default=2, show_default=True, help="Beside each other.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(
    *,
    live_vs_shadow: bool,
    folder: Path | None,
    from_text: str | None,
    to_text: str | None,
    out: Path,
    force: bool,
    processes: int,
    as_json: bool,
    config: Config,
) -> None:
    """Compare the live snapshots of a range with those of a shadow, as `replay run` compares variants.

    A shadow meets signals of the live weights, not of its own: what its weights would have done to the load is for the
    load profiles to say.

    \b
    headrace solver --shadow proportional:k=0.1       # beside the live one, for as long as you like
    headrace replay compare --live-vs-shadow --from 1h --out shadow
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.replay_history.range import history_folder
    from headrace.infra.replay_history.variants import Asked, compared_with_shadow, tell
    from headrace.schemas.errors import InvalidInputError

    if not live_vs_shadow:
        problem = "say what to compare: --live-vs-shadow; other policies are compared by `headrace replay run --policy`"
        raise InvalidInputError("compare", (problem,))
    asked = Asked((), (), out, processes, force=force)
    with history_folder(config, folder, from_text, to_text) as found:
        result = compared_with_shadow(asked, found, config)
    tell(result, as_json=as_json)
