"""`headrace signals`: publish those of an engine that publishes none itself, and see what the streams make of them."""

import sys
from pathlib import Path

import click

from headrace.infra.command_line.nearest_command import NearestGroup
from headrace.infra.configuration.config import Config, config_options


@click.group(cls=NearestGroup)
def command() -> None:
    """Publish the signals of engines that publish none themselves, and see what the streams make of signals."""


@command.command()
@config_options
@click.option("--url", required=True, help="The engine's metrics: http://127.0.0.1:8000/metrics.")
@click.option("--engine-id", required=True, help="The engine, as the fleet knows it.")
@click.option("--preset", help="What its series mean; `headrace map presets` lists them.")
@click.option("--mapping", "mapping_path", type=click.Path(path_type=Path, dir_okay=False), help="Or a mapping file.")
@click.option("--model", default="", help="For series that name no model.")
@click.option("--cluster", default="", help="For counters of arrivals, which are of a cluster.")
@click.option("--every", "every_s", type=click.FloatRange(0.2, 300.0), default=1.0, show_default=True, help="Seconds.")
@click.option("--once", is_flag=True, help="Read once, print what it would publish, and stop; needs no broker.")
def publish(
    *,
    config: Config,
    url: str,
    engine_id: str,
    preset: str | None,
    mapping_path: Path | None,
    model: str,
    cluster: str,
    every_s: float,
    once: bool,
) -> None:
    """Read an engine's Prometheus endpoint on a period and publish what it says, until stopped.

    An endpoint that does not answer is missing telemetry, not an ill engine: it is said, and read again.

    Example: headrace signals publish --url http://127.0.0.1:8000/metrics --engine-id engine-a --preset vllm_v1
    """
    from headrace.infra.configuration.bridge_sources import read_mapping
    from headrace.infra.sidecar.run import print_once, run_sidecar
    from headrace.schemas.ids import identifier_problem
    from headrace.streams.core.mapping.parse import load_preset
    from headrace.streams.publish.scrape import Endpoint

    if (preset is None) is (mapping_path is None):
        raise click.UsageError("give one of --preset and --mapping")
    problem = identifier_problem("engine-id", engine_id)
    if problem is not None:
        raise click.BadParameter(problem, param_hint="--engine-id")
    mapping = load_preset(preset) if preset is not None else read_mapping(mapping_path or Path())
    endpoint = Endpoint(url, engine_id, mapping, model=model, cluster=cluster, timeout_s=max(1.0, every_s))
    if once:
        print_once(endpoint)
    else:
        run_sidecar(config, endpoint, every_s)


@command.command()
@config_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def states(*, config: Config, as_json: bool) -> None:
    """Show the state of every engine as the streams see it; exit status 1 where none is valid.

    GATEWAY_APART says that latencies seen from a GATEWAY or CLIENT are kept apart from what is seen at the engine.

    Example: headrace signals states
    """
    import orjson

    from headrace.infra.dead_letters.unknown_engines import refused_engines, told_unknown
    from headrace.infra.state_table import ONLY_APART, engine_rows, heading, line
    from headrace.schemas.topics import DEAD_LETTERS, STATE_ENGINE, topic_table
    from headrace.solver.clocks import wall_clock_ms

    table = topic_table(config.topics)
    rows = engine_rows(config.kafka, table[STATE_ENGINE].name, config.solver)
    if not as_json:
        click.echo(
            heading() if rows else "no engine has a state: is `headrace streams` running, and `headrace bridge`?"
        )
    for row in rows:
        click.echo(orjson.dumps(row).decode() if as_json else line(row))
    if not any(row["valid"] == "valid" for row in rows):
        unknown = refused_engines(config.kafka, table[DEAD_LETTERS].name, wall_clock_ms())
        if unknown:
            click.echo(f"headrace signals: {told_unknown(unknown)}", err=True)
        if any(row["age_s"] is None for row in rows):
            click.echo(f"headrace signals: {ONLY_APART}", err=True)
        sys.exit(1)
