"""`headrace replay verify`: recomputes recorded snapshots from recorded inputs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.replay.runs.verification import Verification
    from headrace.schemas.codec import SchemaSource

DIFFERS, NOT_ALL = 3, 4


@click.command()
@click.option("--dir", "folder", type=click.Path(path_type=Path, file_okay=False), help="A folder of exported history.")
@click.option("--from", "from_text", metavar="TIME", help="Or a range on the broker: 2026-01-02T03:04Z, 2h.")
@click.option("--to", "to_text", metavar="TIME", help="Where the range ends; now, where it is not given.")
@click.option("--processes", type=click.IntRange(1, 64), default=2, show_default=True, help="Beside each other.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML, a test a minute.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(
    *,
    folder: Path | None,
    from_text: str | None,
    to_text: str | None,
    processes: int,
    junit: Path | None,
    as_json: bool,
    config: Config,
) -> None:
    """Recompute each recorded snapshot: identical byte for byte, or the first differences explained.

    Exit status: 0 where there are snapshots and all are identical; 3 where one differs, 4 where one cannot be verified,
    or there is none; 1 where the history cannot be read.

    \b
    headrace replay verify --from 24h --to 1h --junit verify.xml
    headrace replay verify --dir monday --json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.replay_history.range import history_folder, registry_of
    from headrace.replay.runs.verification_text import as_json as json_of
    from headrace.replay.runs.verification_text import as_junit, as_lines

    with history_folder(config, folder, from_text, to_text) as found:
        result = _verified(found, processes, registry_of(config))
    if junit is not None:
        junit.write_bytes(as_junit(result))
    if as_json:
        click.echo(orjson.dumps(json_of(result), option=orjson.OPT_INDENT_2))
    else:
        for line in as_lines(result):
            click.echo(line)
    if not result.holds:
        sys.exit(DIFFERS if result.differing else NOT_ALL)


def _verified(folder: Path, processes: int, registry: "SchemaSource | None") -> "Verification":
    from headrace.infra.processes.stopping import stop_on_signals
    from headrace.replay.runs.verification import verify_folder
    from headrace.replay.sources.folder import HistoryFolder

    asked = stop_on_signals()
    ticks = HistoryFolder(folder).ticks
    with click.progressbar(length=ticks, label="verifying", file=sys.stderr) as bar:
        return verify_folder(folder, processes, bar.update, asked, registry)
