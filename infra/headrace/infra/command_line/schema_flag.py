"""The flag `--schema` of a command: prints the schema of what its `--json` prints, and ends it."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import orjson

Declared = TypeVar("Declared", bound=Callable[..., object])


def schema_flag(name: Callable[[Mapping[str, Any]], str], *, eager: bool) -> Callable[[Declared], Declared]:
    """Give the flag as a decorator.

    Args:
        name: chooses one of `json_schemas.OUTPUTS` by the parameters that are read so far.
        eager: read before the others, so that no argument is asked for; of those `name` then sees only eager ones.
    """

    def print_schema(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's form
        from headrace.infra.command_line.json_schemas import schema_named  # noqa: PLC0415 - loads what all outputs are of

        if value and not ctx.resilient_parsing:
            click.echo(orjson.dumps(schema_named(name(ctx.params)), option=orjson.OPT_INDENT_2))
            ctx.exit()

    return click.option(
        "--schema",
        is_flag=True,
        is_eager=eager,
        expose_value=False,
        callback=print_schema,
        help="Print --json's schema.",
    )
