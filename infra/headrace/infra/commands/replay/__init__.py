"""`headrace replay`: history through the code that ran live. Its sub-commands are the files of this folder."""

import sys

import click

from headrace.infra.command_folder import folder_of


@click.group(cls=folder_of(sys.modules[__name__]))
def command() -> None:
    """Verify recorded snapshots, run other policies over history, and compare."""
