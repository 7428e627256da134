"""`headrace gateway`: an OpenAI-compatible reverse proxy that sends each request to the engine it belongs to."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.dataplane.router import Router
    from headrace.infra.gateway.weights_source import WeightsSource

MAX_DEMO_ENGINES = 64


@click.command()
@click.option("--cluster", help="Where this gateway stands: gateway.cluster.")
@click.option("--snapshot", "path", type=click.Path(path_type=Path), help="Route by this file (JSON), without Kafka.")
@click.option("--listen", metavar="HOST:PORT", help="gateway.host and gateway.port; port 0 is any free one.")
@click.option(
    "--demo-engines",
    type=click.IntRange(1, MAX_DEMO_ENGINES),
    help="Start so many simulated engines on the loopback address and route to them, without Kafka.",
)
@click.option(
    "--snapshot-out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --demo-engines: write their weights there, for `headrace explain-request --snapshot`.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="debug tells every installed snapshot.",
)
@config_options
def command(
    *,
    config: Config,
    cluster: str | None,
    path: Path | None,
    listen: str | None,
    demo_engines: int | None,
    snapshot_out: Path | None,
    log_level: str,
) -> None:
    """Answer OpenAI's API until it is stopped (SIGTERM, SIGINT). Logs as log.format says.

    Example: headrace gateway --demo-engines 3, then
    curl localhost:8080/v1/chat/completions -d '{"model": "llama-3.1-8b", "stream": true,
    "messages": [{"role": "user", "content": "Hello"}]}'
    """
    import asyncio

    import uvloop

    from headrace.dataplane.router import Router
    from headrace.infra.gateway.serve import Running
    from headrace.infra.gateway.weights_source import FromFile, FromKafka
    from headrace.infra.gateway_engine.demo import DEMO_CLUSTER, demo_engines_running
    from headrace.infra.log.lines import open_log
    from headrace.infra.processes.serving import host_and_port, serve

    if path is not None and demo_engines is not None:
        raise click.UsageError("--snapshot and --demo-engines are two sources of weights: give one of them")
    if snapshot_out is not None and demo_engines is None:
        raise click.UsageError(
            "--snapshot-out goes with --demo-engines: other weights are in their file or topic already"
        )
    host, port = (config.gateway.host, config.gateway.port) if listen is None else host_and_port(listen)
    settings = replace(config.gateway, host=host, port=port)
    named = DEMO_CLUSTER if demo_engines is not None and cluster is None else cluster
    router = Router(config.dataplane, named or settings.cluster)
    log = open_log(config, log_level)

    def source(router: "Router", say: "Callable[[str], None]", installed: "Callable[[str], None]") -> "WeightsSource":
        if path is not None:
            return FromFile(path, router, say, installed)
        return FromKafka(config.kafka, config.topics, router, say, installed)

    async def run() -> None:
        if demo_engines is None:
            await serve(Running(settings, router, source, log))
        else:
            async with demo_engines_running(demo_engines, router, snapshot_out) as demo_source:
                await serve(Running(settings, router, lambda _router, _say, _installed: demo_source, log))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
