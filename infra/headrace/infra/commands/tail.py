"""`headrace tail`: follows the weights and says what each snapshot moved, and why; decisions and dead letters too."""

from typing import TYPE_CHECKING, Any

import click
import orjson

from headrace.infra.command_line.schema_flag import schema_flag
from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headrace.infra.weights_tail.fold import Notice, Shown
    from headrace.infra.weights_tail.printers import Printer
    from headrace.infra.weights_tail.since import Since
    from headrace.schemas.ids import RouteKey
    from headrace.schemas.weights import Snapshot

POLL_S = 0.2
PATIENCE_MS = 5_000
"""How long a tail is silent about having to wait."""
WHAT = ("weights", "decisions", "dead-letters")
RECENT_MS = 10_000
"""How far back decisions are told where nobody says since when."""


def _schema(given: "Mapping[str, Any]") -> str:
    what: str = given.get("what") or WHAT[0]
    if what != "weights":
        return what
    return "tail-diff" if given.get("diff") else "tail-redacted" if given.get("redact") else "tail"


@click.command()
@click.argument("what", type=click.Choice(WHAT), default=WHAT[0], is_eager=True)
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
@click.option(
    "--diff", is_flag=True, is_eager=True, help="A line a move: how much of whose traffic, where to, and why."
)
@click.option("--explain", is_flag=True, help="As --diff, with the reasons of each engine of a move.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line (its schema: --schema).")
@click.option(
    "--redact", is_flag=True, is_eager=True, help="JSON lines that may leave the company: no addresses, no rates."
)
@schema_flag(_schema, eager=False)
@config_options
def command(
    *,
    config: Config,
    what: str,
    clusters: tuple[str, ...],
    models: tuple[str, ...],
    since_text: str | None,
    follow: bool,
    every: bool,
    diff: bool,
    explain: bool,
    as_json: bool,
    redact: bool,
) -> None:
    """Show what moved in the weights, from where to where, and why; or the solver's decisions, or dead letters.

    Moves below 0.5 % of a route's traffic are told once they add up to it; every 30 s without any a line says so.
    With --json a line, for every snapshot, is {"commit": {...}, "routes": [...], "removed": [...]}; routes are those
    written since the line before, all of them in the first line. How much --since finds of the weights depends on what
    compaction has merged.

    \b
    headrace tail --cluster tokyo --since 5m
    headrace tail --diff                              # who lost how much to whom, and why
    headrace tail decisions --json | jq .shed_rps
    headrace tail --redact --since 2h --no-follow     # for people outside; engines' names by redact.secret
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.processes.stopping import stop_on_signals
    from headrace.infra.weights_tail.fold import Notice
    from headrace.infra.weights_tail.since import parse_since
    from headrace.infra.weights_tail.unmatched import unmatched
    from headrace.solver.clocks import wall_clock_ms

    since = None if since_text is None else parse_since(since_text, wall_clock_ms(), versions=what != WHAT[2])
    if what != WHAT[0]:
        if clusters or models or every or diff or explain or redact:
            raise click.UsageError(
                f"--cluster, --model, --all, --diff, --explain and --redact are of weights, not of {what}"
            )
        show = _show_decisions if what == WHAT[1] else _show_dead_letters
        show(config, since, stop_on_signals(), follow=follow, as_json=as_json)
        return
    _check_together(diff=diff, explain=explain, as_json=as_json, redact=redact)

    def wanted(route: "RouteKey") -> bool:
        return (not clusters or route.cluster in clusters) and (not models or route.model in models)

    told = False
    if redact:
        printer = _redacting_printer(config, wanted)
    else:
        printer = _printer(wanted, every=every, diff=diff or explain, explain=explain, as_json=as_json)
    for event in _events(config, since, stop_on_signals(), printer.skip, follow=follow):
        if isinstance(event, Notice):
            _say(event.sentence)
            continue
        printer.show(event)
        missing = None if told else unmatched(event.snapshot, clusters, models)
        told = True
        if missing is not None:
            _say(missing)
    if not follow:
        printer.end()


def _check_together(*, diff: bool, explain: bool, as_json: bool, redact: bool) -> None:
    if redact and (diff or explain):
        raise click.UsageError("--redact is of whole snapshots; --diff and --explain name engines and rates in words")
    if explain and as_json:
        raise click.UsageError("--explain is for people; with --json each line of --diff has its cause")


def _printer(
    wanted: "Callable[[RouteKey], bool]", *, every: bool, diff: bool, explain: bool, as_json: bool
) -> "Printer":
    from headrace.infra.weights_tail.diff import Diff
    from headrace.infra.weights_tail.moves import Moves
    from headrace.infra.weights_tail.printers import DiffPrinter, JsonPrinter, TablePrinter

    if diff:
        return DiffPrinter(Diff(wanted, every=every), as_json=as_json, explain=explain)
    return JsonPrinter(wanted) if as_json else TablePrinter(Moves(wanted, every=every))


def _redacting_printer(config: Config, wanted: "Callable[[RouteKey], bool]") -> "Printer":
    from headrace.infra.redaction.secret import open_redaction
    from headrace.infra.weights_tail.printers import RedactedPrinter

    return RedactedPrinter(open_redaction(config.redact, _say), wanted)


def _show_decisions(
    config: Config, since: "Since | None", stopped: "Callable[[], bool]", *, follow: bool, as_json: bool
) -> None:
    from headrace.infra.topic_readers.follow import follow_topic
    from headrace.infra.weights_tail.decision_line import DecisionLines
    from headrace.schemas.codec import decode
    from headrace.schemas.dead_letters import Rejected
    from headrace.schemas.decisions import SolveRecord
    from headrace.schemas.plain import to_plain
    from headrace.schemas.topics import DECISIONS, topic_table
    from headrace.solver.clocks import wall_clock_ms

    from_ms = wall_clock_ms() - RECENT_MS if since is None else None if since.version else since.at_ms
    name = topic_table(config.topics)[DECISIONS].name
    lines, shown = DecisionLines(), 0
    for raw in follow_topic(config.kafka, name, from_ms, stopped, follow=follow):
        record = decode(SolveRecord, raw.value, raw.headers)
        if isinstance(record, Rejected):
            _say(f"{raw.topic}/{raw.partition}/{raw.offset} is no decision: {record.detail}")
            continue
        line = lines.offer(record)
        if since is None or record.version >= since.version:
            click.echo(orjson.dumps(to_plain(record)) if as_json else line)
            shown += 1
    if not follow and not shown:
        recent = f"{RECENT_MS // 1000} s ago; --since 5m looks further back"
        _say(f"nothing in {name} since {recent if since is None else since.text}")


def _show_dead_letters(
    config: Config, since: "Since | None", stopped: "Callable[[], bool]", *, follow: bool, as_json: bool
) -> None:
    from headrace.infra.dead_letters.choice import Choice
    from headrace.infra.dead_letters.printer import LetterPrinter
    from headrace.infra.topic_readers.follow import follow_topic
    from headrace.schemas.topics import DEAD_LETTERS, topic_table

    show = LetterPrinter(Choice(since_ms=0 if since is None else since.at_ms), _say, as_json=as_json)
    name = topic_table(config.topics)[DEAD_LETTERS].name
    for raw in follow_topic(config.kafka, name, None if since is None else since.at_ms, stopped, follow=follow):
        show(raw)
    if not follow and not show.shown:
        _say(f"nothing in {name}" + ("" if since is None else f" since {since.text}"))


def _events(
    config: Config,
    since: "Since | None",
    stopped: "Callable[[], bool]",
    passed: "Callable[[Snapshot], None]",
    *,
    follow: bool,
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
    fold = TailFold(since, passed)
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
