"""`headrace replay`: history through the code that ran live. Its sub-commands are the files of this folder."""

import sys
from types import ModuleType
from typing import ClassVar

import click

from headrace.infra.command_line.command_folder import CommandFolder


class ReplayCommands(CommandFolder):
    """The sub-commands of `headrace replay`."""

    package: ClassVar[ModuleType] = sys.modules[__name__]


@click.group(cls=ReplayCommands)
def command() -> None:
    """Verify recorded snapshots, run other policies over history, and compare."""
