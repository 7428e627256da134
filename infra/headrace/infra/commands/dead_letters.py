"""`headrace dead-letters`: what was refused, from where, and why."""

from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.command_line.schema_flag import schema_flag
from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.infra.dead_letters.summary import LetterGroup


@click.command()
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only from this topic; may be given again.")
@click.option("--reason", "reasons", multiple=True, metavar="R", help="Only refused for this: UNKNOWN_ENGINE, ...")
@click.option("--since", metavar="AGE|TIME", help="Only refused since then: 5m, 2026-01-02T03:04Z.")
@click.option("--follow/--no-follow", default=False, show_default=True, help="Wait for more, or stop at the end.")
@click.option(
    "--summary",
    is_flag=True,
    is_eager=True,  # known before --schema asks for it
    help="Count them by reason and where from, each with its newest detail.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object a line, with the original bytes in base64 (its schema: --schema).",
)
@schema_flag(lambda given: "dead-letters-summary" if given.get("summary") else "dead-letters", eager=False)
@config_options
def command(
    *,
    config: Config,
    topics: tuple[str, ...],
    reasons: tuple[str, ...],
    since: str | None,
    follow: bool,
    summary: bool,
    as_json: bool,
) -> None:
    """Show the records that could not be used: when, from where, why, and what they held; the oldest first.

    \b
    headrace dead-letters --since 1h --summary
    headrace dead-letters --since 1h --reason UNKNOWN_ENGINE
    headrace dead-letters --json | jq -r 'select(.reason == "MALFORMED").value_base64' | head -1 | base64 -d
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.dead_letters.choice import parse_choice
    from headrace.infra.dead_letters.printer import LetterPrinter
    from headrace.infra.dead_letters.summary import LetterSummary, summary_lines
    from headrace.infra.processes.stopping import stop_on_signals
    from headrace.infra.topic_readers.follow import follow_topic
    from headrace.schemas.topics import DEAD_LETTERS, topic_table
    from headrace.solver.clocks import wall_clock_ms

    if summary and follow:
        raise click.UsageError("--summary counts what is there; it does not go with --follow")
    choice = parse_choice(topics, reasons, since, wall_clock_ms())
    topic = topic_table(config.topics)[DEAD_LETTERS].name
    show = LetterPrinter(choice, _say, as_json=as_json)
    counted = LetterSummary(choice, _say)
    # Choice.since_ms is of the letters' own records, as the topic's times are.
    begin = choice.since_ms or None
    for record in follow_topic(config.kafka, topic, begin, stop_on_signals(), follow=follow, on_error=_complain()):
        (counted if summary else show)(record)
    if summary:
        groups = counted.groups()
        for line in map(_json, groups) if as_json else summary_lines(groups):
            click.echo(line)
        if not groups:
            _say(f"none of {counted.seen} in {topic}")
        return
    if not show.shown:
        _say(show.none_shown(topic))


def _json(group: "LetterGroup") -> str:
    from headrace.schemas.plain import to_plain

    return orjson.dumps(to_plain(group)).decode()


def _say(sentence: str) -> None:
    click.echo(f"headrace dead-letters: {sentence}", err=True)


def _complain() -> "Callable[[str], None]":
    from headrace.solver.clocks import wall_clock_ms
    from headrace.solver.complaints import Complaints

    def tell(sentence: str, _: int) -> None:
        _say(sentence)

    return Complaints(tell, wall_clock_ms).add
