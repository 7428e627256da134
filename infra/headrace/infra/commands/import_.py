"""`headrace import`: exported history back onto a broker."""

import json
from pathlib import Path

import click

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(*, folder: Path, as_json: bool, config: Config) -> None:
    """Publish the records of DIR, which `headrace export` wrote, to this broker's topics.

    For a broker of your own: live workers would take old records for news. Offsets and timestamps that the broker gives
    anew travel in headers, so that `headrace replay` reads them as they were.
    """
    from headrace.infra.kafka_edge import require_topics
    from headrace.infra.replay_history.range import told_on_terminal
    from headrace.replay.sources.folder import HistoryFolder
    from headrace.replay.sources.restore import Restorer

    foreign = HistoryFolder(folder).foreign
    require_topics(config.kafka, ())
    with told_on_terminal() as told:
        counts = Restorer(config.kafka, config.topics, told).restore(folder)
    if foreign:
        click.echo(f"left out, since they are not headrace's: {', '.join(foreign)}", err=True)
    if as_json:
        click.echo(json.dumps(counts))
        return
    for role, count in counts.items():
        click.echo(f"{count:>12,}  {role}")
