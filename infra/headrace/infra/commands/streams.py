"""`headrace streams`: folds signals into the compacted state topics."""

from typing import TYPE_CHECKING

import click

from headrace.infra.config import Config, config_options

if TYPE_CHECKING:
    from headrace.schemas.codec import SchemaSource


@click.command()
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="debug tells what the Kafka clients say, too.",
)
@config_options
def command(*, config: Config, log_level: str) -> None:
    """Fold signals into state until stopped (SIGTERM, SIGINT). Logs JSON lines to standard error.

    Several share the partitions; each says "streams ready" once it has recovered its part.

    Exit status: 0 stopped in good order; 1 something broke, start it again; 3 stopped, but a part of that (the log says
    which) did not end in its time, as when the broker is away: what was not acknowledged is folded by the next. A
    second signal of the same kind ends it at once.

    Example: headrace streams --set streams.batch_wait_ms=50
    """
    from headrace.infra.log_lines import open_log
    from headrace.infra.stopping import stop_on_signals
    from headrace.streams.worker import run_streams

    stopped = stop_on_signals()
    run_streams(config.kafka, config.topics, config.streams, open_log(log_level), stopped, _registry(config))


def _registry(config: Config) -> "SchemaSource | None":
    if not config.registry.url:
        return None
    from headrace.schemas.bus.registry import Registry

    return Registry(config.registry)
