"""`headrace undrain`: take back what `headrace drain` said."""

import click
import orjson

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.argument("engines", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(*, config: Config, engines: tuple[str, ...], as_json: bool) -> None:
    """Take back the drains of ENGINES; they get traffic again from the solver's next tick on.

    One that the fleet's own file drains stays drained: that is for `headrace fleet apply`.
    """
    from headrace.infra.overrides.records import take_back
    from headrace.schemas.overrides import OverrideKind

    take_back(config.kafka, config.topics, OverrideKind.DRAIN, engines)
    click.echo(orjson.dumps({"undrained": list(engines)}) if as_json else f"undrained {', '.join(engines)}")
