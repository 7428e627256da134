"""How a tail prints each snapshot: a line of JSON, a table, or what moved."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import click
import orjson
from rich.console import Console

from headrace.infra.weights_tail.diff import Diff
from headrace.infra.weights_tail.diff_lines import diff_lines
from headrace.infra.weights_tail.fold import Shown
from headrace.infra.weights_tail.json_line import json_line
from headrace.infra.weights_tail.moves import Changed, Moves, Still
from headrace.infra.weights_tail.table import table
from headrace.schemas.ids import RouteKey
from headrace.schemas.plain import to_plain
from headrace.schemas.weights import Snapshot

if TYPE_CHECKING:
    from headrace.infra.redaction.redact import Redaction  # what it redacts is the solver's: a plain tail does without

PIPED_WIDTH = 200
"""Columns of a table that no terminal bounds."""


class Printer(Protocol):
    """Prints snapshots in their order; `end` once there are no more."""

    def skip(self, snapshot: Snapshot) -> None:
        """Take a snapshot from before the first that is printed."""
        ...

    def show(self, event: Shown) -> None:
        """Print what there is to tell of one."""
        ...

    def end(self) -> None:
        """Print what is left to tell."""
        ...


class JsonPrinter:
    """Prints each snapshot as a line of JSON."""

    def __init__(self, wanted: Callable[[RouteKey], bool]) -> None:
        self._wanted = wanted

    def skip(self, snapshot: Snapshot) -> None:
        """What was before is nothing to it."""

    def show(self, event: Shown) -> None:
        """Print the line."""
        click.echo(json_line(event, self._wanted), nl=False)

    def end(self) -> None:
        """Every snapshot has its line."""


class RedactedPrinter:
    """Prints each snapshot as a line of JSON that may leave the company."""

    def __init__(self, redaction: "Redaction", wanted: Callable[[RouteKey], bool]) -> None:
        self._redaction = redaction
        self._wanted = wanted

    def skip(self, snapshot: Snapshot) -> None:
        """What was before is nothing to it."""

    def show(self, event: Shown) -> None:
        """Print the line."""
        line = self._redaction.line(event, self._wanted)
        click.echo(orjson.dumps(to_plain(line), option=orjson.OPT_APPEND_NEWLINE), nl=False)

    def end(self) -> None:
        """Every snapshot has its line."""


class TablePrinter:
    """Prints what there is to tell of each snapshot as a table."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._console = Console()
        if not self._console.is_terminal:
            self._console = Console(width=PIPED_WIDTH)

    def skip(self, snapshot: Snapshot) -> None:
        """What was before is nothing to it."""

    def show(self, event: Shown) -> None:
        """Print a table where something moved."""
        self._print(self._moves.offer(event))

    def end(self) -> None:
        """Print that nothing moved, where nothing was said of the last one."""
        self._print(self._moves.last())

    def _print(self, told: Changed | Still | None) -> None:
        if told is not None:
            self._console.print(table(told, self._console.width))


class DiffPrinter:
    """Prints what moved in each snapshot, and why; `explain` adds the engines' own reasons."""

    def __init__(self, diff: Diff, *, as_json: bool, explain: bool) -> None:
        self._diff = diff
        self._as_json = as_json
        self._explain = explain

    def skip(self, snapshot: Snapshot) -> None:
        """Take it into what later ones are held against."""
        self._diff.skip(snapshot)

    def show(self, event: Shown) -> None:
        """Print what moved, where something did."""
        told = self._diff.offer(event)
        if told is None:
            return
        if self._as_json:
            click.echo(orjson.dumps(to_plain(told), option=orjson.OPT_APPEND_NEWLINE), nl=False)
        else:
            click.echo("\n".join(diff_lines(told, event.snapshot if self._explain else None)))

    def end(self) -> None:
        """Every move has been told."""
