"""`headrace console`: one page over the topics, for a browser: is it all right, what changed, why."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.schemas.codec import SchemaSource


@click.command()
@click.option("--listen", metavar="HOST:PORT", help="console.host and console.port; port 0 is any free one.")
@click.option("--token-file", metavar="FILE", help="Its first line opens the page; needed where others reach it.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much is logged, to standard error.",
)
@config_options
def command(*, config: Config, listen: str | None, token_file: str | None, log_level: str) -> None:
    """Serve the console until it is stopped (SIGTERM, SIGINT). It reads topics, and writes nothing.

    \b
    headrace console                                            # http://127.0.0.1:8090/
    headrace console --config .headrace/demo/headrace.toml      # of a running demo
    headrace console --listen 0.0.0.0:8090 --token-file token   # for others, who need the token
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    import asyncio

    import uvloop

    from headrace.infra.console.serve import Running
    from headrace.infra.log.lines import open_log
    from headrace.infra.processes.serving import host_and_port, serve

    host, port = (config.console.host, config.console.port) if listen is None else host_and_port(listen)
    token = config.console.token_file if token_file is None else token_file
    settings = replace(config.console, host=host, port=port, token_file=token)
    running = Running(replace(config, console=settings), open_log(config, log_level), _registry(config))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(running))


def _registry(config: Config) -> "SchemaSource | None":
    if not config.registry.url:
        return None
    from headrace.schemas.bus.registry import Registry

    return Registry(config.registry)
