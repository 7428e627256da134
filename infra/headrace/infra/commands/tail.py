"""`headrace tail`: follows the weights topic and says what each snapshot moved, and why."""

from typing import TYPE_CHECKING

import click

from headrace.infra.config import Config, config_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headrace.infra.weights_tail.fold import Notice, Shown
    from headrace.infra.weights_tail.moves import Changed, Moves, Still
    from headrace.infra.weights_tail.since import Since
    from headrace.schemas.ids import RouteKey

POLL_S = 0.2
PATIENCE_MS = 5_000
"""How long a tail is silent about having to wait."""
PIPED_WIDTH = 200
"""Columns of a table that no terminal bounds."""


@click.command()
@click.option("--cluster", "clusters", multiple=True, help="Only routes of this cluster; may be given again.")
@click.option("--model", "models", multiple=True, help="Only routes of this model; may be given again.")
@click.option(
    "--since",
    "since_text",
    metavar="VERSION|AGE|TIME",
    help="Begin there instead of at the newest snapshot: 812, 5m, 2026-01-02T03:04Z.",
)
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more, or stop at the end.")
@click.option("--all", "every", is_flag=True, help="Tell every snapshot, and every move however small.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, one line a snapshot.")
@config_options
def command(
    *,
    config: Config,
    clusters: tuple[str, ...],
    models: tuple[str, ...],
    since_text: str | None,
    follow: bool,
    every: bool,
    as_json: bool,
) -> None:
    """Show what moved in the weights, from where to where, and why.

    Moves below 0.5 % of a route's traffic are told once they add up to it; every 30 s without any a line says so.
    With --json a line, for every snapshot, is {"commit": {...}, "routes": [...], "removed": [...]}; routes are those
    written since the line before, all of them in the first line. How much --since finds depends on what compaction
    has merged.

    Example: headrace tail --cluster tokyo --since 5m
    """
    from headrace.infra.stopping import stop_on_signals
    from headrace.infra.weights_tail.fold import Notice
    from headrace.infra.weights_tail.moves import Moves
    from headrace.infra.weights_tail.since import parse_since
    from headrace.solver.clocks import wall_clock_ms

    since = None if since_text is None else parse_since(since_text, wall_clock_ms())

    def wanted(route: "RouteKey") -> bool:
        return (not clusters or route.cluster in clusters) and (not models or route.model in models)

    printer = _JsonPrinter(wanted) if as_json else _TablePrinter(Moves(wanted, every=every))
    for event in _events(config, since, stop_on_signals(), follow=follow):
        if isinstance(event, Notice):
            _say(event.sentence)
        else:
            printer.show(event)
    if not follow:
        printer.end()


def _events(
    config: Config, since: "Since | None", stopped: "Callable[[], bool]", *, follow: bool
) -> "Iterator[Shown | Notice]":
    from headrace.infra.kafka_edge import require_topics
    from headrace.infra.weights_tail.fold import TailFold
    from headrace.infra.weights_tail.waiting import Waiting
    from headrace.schemas.bus.compacted import CompactedReader
    from headrace.schemas.topics import WEIGHTS, topic_table
    from headrace.solver.clocks import wall_clock_ms

    topic = topic_table(config.topics)[WEIGHTS].name
    if not follow:
        require_topics(config.kafka, (topic,))

    def not_there(sentence: str) -> None:
        waiting.wait_on(wall_clock_ms())
        _say(sentence)

    patience_ms = max(PATIENCE_MS, 3 * config.solver.period_ms)
    waiting = Waiting(f"topic {topic} at {config.kafka.bootstrap_servers}", patience_ms, wall_clock_ms())
    reader = CompactedReader(config.kafka, [topic], on_error=waiting.complain, on_missing=not_there)
    fold = TailFold(since)
    try:
        while not stopped():
            for record in reader.poll(POLL_S):
                waiting.arrive(wall_clock_ms())
                event = fold.offer(record)
                if event is not None:
                    yield event
            if reader.caught_up:
                event = fold.reach_end()
                if event is not None:
                    yield event
                if not follow:
                    return
            sentence = waiting.say(wall_clock_ms(), found=reader.caught_up)
            if sentence is not None:
                _say(sentence)
    finally:
        reader.close()


def _say(sentence: str) -> None:
    click.echo(f"headrace tail: {sentence}", err=True)


class _JsonPrinter:
    """Prints each snapshot as a line of JSON."""

    def __init__(self, wanted: "Callable[[RouteKey], bool]") -> None:
        self._wanted = wanted

    def show(self, event: "Shown") -> None:
        from headrace.infra.weights_tail.json_line import json_line

        click.echo(json_line(event, self._wanted), nl=False)

    def end(self) -> None:
        """Every snapshot has its line."""


class _TablePrinter:
    """Prints what there is to tell of each snapshot."""

    def __init__(self, moves: "Moves") -> None:
        from rich.console import Console

        self._moves = moves
        self._console = Console()
        if not self._console.is_terminal:
            self._console = Console(width=PIPED_WIDTH)

    def show(self, event: "Shown") -> None:
        self._print(self._moves.offer(event))

    def end(self) -> None:
        self._print(self._moves.last())

    def _print(self, told: "Changed | Still | None") -> None:
        from headrace.infra.weights_tail.table import table

        if told is not None:
            self._console.print(table(told, self._console.width))
