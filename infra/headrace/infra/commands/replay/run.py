"""`headrace replay run`: other policies over recorded history, scored against what was recorded."""

from pathlib import Path

import click

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.option("--policy", "policies", multiple=True, metavar="VARIANT", help="lp, proportional:k=0.1, NAME=pid:k=0.2.")
@click.option("--dir", "folder", type=click.Path(path_type=Path, file_okay=False), help="A folder of exported history.")
@click.option("--from", "from_text", metavar="TIME", help="Or a range on the broker: 2026-01-02T03:04Z, 2h.")
@click.option("--to", "to_text", metavar="TIME", help="Where the range ends; now, where it is not given.")
@click.option("--from-signals", is_flag=True, help="Fold the signals anew, and tick by each variant's own period.")
@click.option(
    "--mapping",
    "mappings",
    multiple=True,
    metavar="[TOPIC=]FILE",
    help="Translate your own telemetry in the range by this mapping, and fold it anew.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Where the result goes.")
@click.option("--force", is_flag=True, help="Write over what OUT holds of an earlier run.")
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="For variants beside each other; more than those fold signals for them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(
    *,
    policies: tuple[str, ...],
    folder: Path | None,
    from_text: str | None,
    to_text: str | None,
    from_signals: bool,
    mappings: tuple[str, ...],
    out: Path,
    force: bool,
    processes: int,
    as_json: bool,
    config: Config,
) -> None:
    """Run each VARIANT over a range of history and compare it with the recorded run.

    A variant is a policy, with settings of its own behind a colon and the recorded ones for the rest; `recorded` is the
    recorded policy itself. --set solver.NAME=VALUE is for all of them; the recorded run stays as it was, and
    `recorded` with --set is a variant beside it, `recorded-set`. What a variant ran by is in OUT, with its weights, the
    numbers and a report. Ctrl-C ends with what there is. With --mapping, signals that the bridge made of TOPIC give way
    to what this mapping makes of it; `recorded` then is the recorded policy over those.

    \b
    headrace replay run --dir monday --policy lp --policy proportional:k=0.1 --out compared
    headrace replay run --from 2h --policy recorded --set solver.move_price_ms=50 --out dearer
    headrace replay run --dir monday --policy lp --mapping other.yaml --out other
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.replay_history.mapping import mapped_history, named_topics
    from headrace.infra.replay_history.range import history_folder
    from headrace.infra.replay_history.variants import Asked, compared, tell

    given = click.get_current_context().params["settings"]
    ours = tuple(text for text in given if text.startswith("solver."))
    with (
        history_folder(config, folder, from_text, to_text, named_topics(mappings)) as found,
        mapped_history(config, found, mappings) as mapped,
    ):
        asked = Asked(policies, ours, out, processes, from_signals, mapped, force)
        result = compared(asked, found, config)
    tell(result, as_json=as_json)
