"""`headrace unfreeze`: take back what `headrace freeze` said."""

import click
import orjson

from headrace.infra.configuration.config import Config, config_options


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(*, config: Config, as_json: bool) -> None:
    """Let weights move again from the solver's next tick on."""
    from headrace.infra.overrides.records import take_back
    from headrace.schemas.overrides import WHOLE_FLEET, OverrideKind

    take_back(config.kafka, config.topics, OverrideKind.FREEZE, (WHOLE_FLEET,))
    click.echo(orjson.dumps({"unfrozen": True}) if as_json else "weights move again")
