"""The `headrace` command: its sub-commands are the files of `headrace.infra.commands`, imported only when called."""

import sys
from types import ModuleType
from typing import ClassVar

import click

from headrace.infra import commands
from headrace.infra.command_line.command_folder import CommandFolder
from headrace.infra.command_line.standard_streams import open_closed, why_unwritten
from headrace.schemas.errors import HeadraceError, InvalidInputError

INTERRUPTED = 130
"""Exit status of a program that SIGINT ended, as shells count it."""
UNUSABLE = 2
"""Exit status where what was typed, configured or handed in cannot be used: click's own for wrong usage."""


class Commands(CommandFolder):
    """The sub-commands of `headrace`."""

    package: ClassVar[ModuleType] = commands

    def invoke(self, ctx: click.Context) -> object:
        """Run the sub-command; Ctrl-C where nobody waits for it ends it in silence, with the shell's status for it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headrace")
def headrace() -> None:
    """Route LLM requests to GPU engines by weights that are computed, published and explained."""


def main() -> None:
    """Run the command; an expected failure is one message on standard error and exit status 1, not a traceback.

    Input that cannot be used is status 2, whichever layer found it: to try again as it is does not help.
    """
    open_closed()
    try:
        headrace(standalone_mode=True)
    except InvalidInputError as error:
        click.echo(f"headrace: {error}", err=True)
        sys.exit(UNUSABLE)
    except HeadraceError as error:
        click.echo(f"headrace: {error}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("headrace"):
            raise
        click.echo(f"headrace: this sub-command needs {error.name!r}: pip install 'headrace[all]'", err=True)
        sys.exit(1)
    except Exception as error:
        from headrace.infra.kafka_edge import failure_of  # noqa: PLC0415 - loaded only where something failed

        failure = why_unwritten(error) or failure_of(error)
        if failure is None:
            raise
        click.echo(f"headrace: {failure}", err=True)
        sys.exit(1)
