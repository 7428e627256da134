"""`headrace streams`: folds signals into the compacted state topics."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.infra.processes.child import ChildProcess
    from headrace.schemas.codec import SchemaSource

MAX_WORKERS = 64
_RUN = "from headrace.infra.cli import main; main()"


@click.command()
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=1,
    show_default=True,
    help="Processes on this host; one that ends is started again. More than there are partitions stay idle.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="debug tells what the Kafka clients say, too.",
)
@config_options
def command(*, config: Config, workers: int, log_level: str) -> None:
    """Fold signals into state until stopped (SIGTERM, SIGINT). Logs as log.format says.

    Several share the partitions, on one host or many; each says "streams ready" once it has recovered its part.

    Exit status: 0 stopped in good order; 1 something broke, start it again; 3 stopped, but a part of that (the log says
    which) did not end in its time, as when the broker is away: what was not acknowledged is folded by the next. A
    second signal of the same kind ends it at once.

    Example: headrace streams --workers 2 --set streams.metrics_port=9464
    """
    from headrace.infra.log.lines import open_log
    from headrace.infra.processes.stopping import stop_on_signals
    from headrace.schemas.made_folder import made_folder

    made_folder(Path(config.streams.data_dir), "streams.data_dir")
    stopped, log = stop_on_signals(), open_log(config, log_level)
    if workers > 1:
        from headrace.infra.processes.supervise import supervise

        sys.exit(supervise(_children(config, workers), log, stopped))
    from headrace.infra.metrics import counts_of
    from headrace.streams.metrics import TABLE
    from headrace.streams.ports import Voice
    from headrace.streams.worker import run_streams

    voice = Voice(log, counts_of("streams", TABLE, config.streams))
    run_streams(config.kafka, config.topics, config.streams, voice, stopped, _registry(config))


def _children(config: Config, workers: int) -> "list[ChildProcess]":
    """Give the same command once per worker; of an option that is given twice the last one counts."""
    from headrace.infra.processes.child import ChildProcess as Process

    own = (sys.executable, "-c", _RUN, *sys.argv[1:], "--workers", "1")
    found: list[ChildProcess] = []
    for number in range(workers):
        folder = Path(config.streams.data_dir) / f"worker-{number + 1}"
        port = config.streams.metrics_port and config.streams.metrics_port + number
        settings = ("--set", f"streams.data_dir={folder}", "--set", f"streams.metrics_port={port}")
        found.append(Process((*own, *settings), log=None))
    return found


def _registry(config: Config) -> "SchemaSource | None":
    if not config.registry.url:
        return None
    from headrace.schemas.bus.registry import Registry

    return Registry(config.registry)
