"""`headrace tail`: follows the weights topic and says what each snapshot moved, and why."""

from typing import TYPE_CHECKING

import click

from headrace.infra.config import Config, config_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headrace.infra.weights_tail.fold import Notice, Shown
    from headrace.infra.weights_tail.since import Since
    from headrace.schemas.ids import RouteKey

POLL_S = 0.2
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
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, one line a snapshot.")
@config_options
def command(
    *,
    config: Config,
    clusters: tuple[str, ...],
    models: tuple[str, ...],
    since_text: str | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Show each snapshot of the weights: what moved, from where to where, and why.

    With --json a line is {"commit": {...}, "routes": [...], "removed": [...]}; routes are those written since the line
    before, all of them in the first line. How much --since finds depends on what compaction has merged.

    Example: headrace tail --cluster tokyo --since 5m
    """
    from headrace.infra.stopping import stop_on_signals
    from headrace.infra.weights_tail.since import parse_since
    from headrace.solver.clocks import wall_clock_ms

    since = None if since_text is None else parse_since(since_text, wall_clock_ms())
    show = _json_printer() if as_json else _table_printer()

    def wanted(route: "RouteKey") -> bool:
        return (not clusters or route.cluster in clusters) and (not models or route.model in models)

    for event in _events(config, since, stop_on_signals(), follow=follow):
        show(event, wanted)


def _events(
    config: Config, since: "Since | None", stopped: "Callable[[], bool]", *, follow: bool
) -> "Iterator[Shown | Notice]":
    from headrace.infra.weights_tail.fold import TailFold
    from headrace.schemas.bus.compacted import CompactedReader
    from headrace.schemas.topics import WEIGHTS, topic_table

    topic = topic_table(config.topics)[WEIGHTS].name
    reader = CompactedReader(config.kafka, [topic], on_error=_complain())
    fold = TailFold(since)
    try:
        while not stopped():
            for record in reader.poll(POLL_S):
                event = fold.offer(record)
                if event is not None:
                    yield event
            if reader.caught_up:
                event = fold.reach_end()
                if event is not None:
                    yield event
                if not follow:
                    return
    finally:
        reader.close()


def _complain() -> "Callable[[str], None]":
    from headrace.solver.clocks import wall_clock_ms
    from headrace.solver.complaints import Complaints

    def tell(sentence: str, _: int) -> None:
        click.echo(f"headrace tail: {sentence}", err=True)

    return Complaints(tell, wall_clock_ms).add


def _json_printer() -> "Callable[[Shown | Notice, Callable[[RouteKey], bool]], None]":
    from headrace.infra.weights_tail.fold import Notice
    from headrace.infra.weights_tail.json_line import json_line

    def show(event: "Shown | Notice", wanted: "Callable[[RouteKey], bool]") -> None:
        if isinstance(event, Notice):
            click.echo(f"headrace tail: {event.sentence}", err=True)
        else:
            click.echo(json_line(event, wanted), nl=False)

    return show


def _table_printer() -> "Callable[[Shown | Notice, Callable[[RouteKey], bool]], None]":
    from rich.console import Console
    from rich.text import Text

    from headrace.infra.weights_tail.fold import Notice
    from headrace.infra.weights_tail.table import table

    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPED_WIDTH)
    fleeting = False

    def show(event: "Shown | Notice", wanted: "Callable[[RouteKey], bool]") -> None:
        nonlocal fleeting
        shown = (
            Text(event.sentence, style="yellow") if isinstance(event, Notice) else table(event, wanted, console.width)
        )
        # On a terminal a line that says that nothing moved is written over by the next one.
        passes = isinstance(shown, Text) and shown.style == "dim" and console.is_terminal
        if fleeting and not passes:
            console.print()
        console.print(shown, end="\r" if passes else "\n")
        fleeting = passes

    return show
