"""`headrace export`: a range of history from Kafka into files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.replay.sources.manifest import Manifest


@click.command()
@click.option("--from", "from_text", required=True, metavar="TIME", help="Where it begins: 2026-01-02T03:04Z, 2h.")
@click.option("--to", "to_text", metavar="TIME", help="Where it ends, not included; now, where it is not given.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder that is empty or new.",
)
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="A topic of your own too, for `--mapping`.")
@click.option("--parquet", is_flag=True, help="Write *.parquet beside: records as columns, for notebooks.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(
    *,
    from_text: str,
    to_text: str | None,
    out: Path,
    topics: tuple[str, ...],
    parquet: bool,
    as_json: bool,
    config: Config,
) -> None:
    """Write signals, states, fleet, decisions and snapshots of a range into Avro files, one a partition.

    The folder stands on its own: with what stood when the range began, and what the bridge read in it. Times are UTC
    unless they say otherwise.

    \b
    headrace export --from 2h --out monday
    headrace replay verify --dir monday
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.replay_history.range import export_to, parse_range
    from headrace.replay.sources.export import counts
    from headrace.replay.sources.manifest import plain_finding

    manifest = export_to(config, parse_range(from_text, to_text), out, topics)
    if parquet:
        from headrace.replay.sources.parquet import write_parquet

        write_parquet(out)
    if as_json:
        findings = [plain_finding(each) for each in manifest.findings]
        click.echo(json.dumps({"ticks": manifest.ticks, "records": counts(manifest.parts), "findings": findings}))
    else:
        _say(manifest, out)


def _say(manifest: "Manifest", out: Path) -> None:
    from headrace.replay.sources.export import counts

    for role, count in counts(manifest.parts).items():
        click.echo(f"{count:>12,}  {role}")
    click.echo(f"{manifest.ticks} snapshots were published in the range; written to {out}")
    for finding in manifest.findings:
        click.echo(str(finding), err=True)
