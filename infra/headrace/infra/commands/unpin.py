"""`headrace unpin`: take back what `headrace pin` said."""

import click
import orjson

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.argument("cluster")
@click.argument("engines", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(*, config: Config, cluster: str, engines: tuple[str, ...], as_json: bool) -> None:
    """Take back the pins of what CLUSTER sends ENGINES; from the solver's next tick on it is solved for again."""
    from headrace.infra.overrides.records import take_back
    from headrace.schemas.overrides import OverrideKind

    take_back(config.kafka, config.topics, OverrideKind.PIN, engines, cluster)
    click.echo(orjson.dumps({"unpinned": list(engines)}) if as_json else f"unpinned {', '.join(engines)} of {cluster}")
