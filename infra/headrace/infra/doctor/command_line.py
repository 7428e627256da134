"""The commands that a report names, as `headrace` itself reads them: which they are, and if they are configured."""

import shlex
from collections.abc import Sequence

import click

NAME = "headrace"
_ENDS = ("|", ">", "#")


def words_of(command: str) -> list[str]:
    """Give a command of headrace as its arguments, up to where its output goes; empty where it is another program's."""
    words = shlex.split(command, comments=True)
    end = min((words.index(mark) for mark in _ENDS if mark in words), default=len(words))
    return words[1:end] if words[:1] == [NAME] else []


def resolved(words: Sequence[str]) -> tuple[click.Command, list[str]]:
    """Give the sub-command that arguments are for, and the arguments that are left for it.

    Raises:
        click.UsageError: there is no such sub-command.
    """
    from headrace.infra.cli import headrace  # noqa: PLC0415 - it loads what calls this

    command: click.Command = headrace
    left = list(words)
    context = click.Context(command, info_name=NAME)
    while isinstance(command, click.Group) and left and not left[0].startswith("-"):
        found = command.get_command(context, left[0])
        if found is None:
            raise click.UsageError(f"no such command: {' '.join(words)}")
        context = click.Context(found, parent=context, info_name=left.pop(0))
        command = found
    return command, left


def takes_configuration(command: str) -> bool:
    """Say whether `--config`, `--bootstrap` and `--set` have a use in a command."""
    words = words_of(command)
    if not words or words[0].startswith("-") or "--form" in words:
        return False
    return any(parameter.name == "config_file" for parameter in resolved(words)[0].params)
