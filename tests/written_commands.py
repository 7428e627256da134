"""`headrace` commands as pages and units have them written, held against the real ones."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import cast

import click

from headrace.infra.cli import headrace

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`headrace\s([^`]+)`")
_STARTS = re.compile(r"(?:[^#]*[&|;] *)?headrace ")
_END = re.compile(r"[|&;<>()]+")


def written_commands(page: str) -> Iterator[tuple[list[str], bool]]:
    """Give the words after `headrace` of a page's commands, and whether each is whole: in a sentence it need not be."""
    for language, block in cast("list[tuple[str, str]]", _BLOCK.findall(page)):
        for line in block.replace("\\\n", " ").splitlines():
            if not language and _STARTS.match(line):
                yield from ((words, True) for words in _commands(line))
    for inline in _INLINE.findall(page):
        if not inline.startswith("..."):
            yield from ((words, False) for words in _commands(f"headrace {inline}"))


def _commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    while "headrace" in words:
        words = words[words.index("headrace") + 1 :]
        end = next((i for i, word in enumerate(words) if _END.fullmatch(word) or word == "headrace"), len(words))
        yield words[:end]
        words = words[end:]


def refused(words: Sequence[str], *, whole: bool = True) -> str | None:
    """Say what the command does not take: a sub-command, an option, a choice, a word too many; None where it takes all.

    Arguments that are left out are not asked for; an option's value is, of a whole command.
    """
    command: click.Command = headrace
    context, rest = click.Context(headrace), list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(context, rest[0])
        if below is None:
            return f"no command {rest[0]!r} in {' '.join(words)!r}"
        command, context, rest = below, click.Context(below, parent=context), rest[1:]
    try:
        given, left, _ = command.make_parser(context).parse_args(rest)
    except click.BadOptionUsage as error:
        return f"{error.format_message()} in {' '.join(words)!r}" if whole else None
    except click.UsageError as error:
        return f"{error.format_message()} in {' '.join(words)!r}"
    if left:
        return f"too many words: {left} in {' '.join(words)!r}"
    for parameter in command.params:
        values = given.get(str(parameter.name))
        if not isinstance(parameter.type, click.Choice) or values is None:
            continue
        chosen = cast("Sequence[object]", values if isinstance(values, list | tuple) else [values])
        wrong = [value for value in chosen if isinstance(value, str) and value not in parameter.type.choices]
        if wrong:
            return f"{parameter.name} is {wrong[0]!r} in {' '.join(words)!r}"
    return None
