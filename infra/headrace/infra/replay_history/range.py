"""Which stretch of history a command means, and where it lies: on the broker, or in a folder that was exported.

--from 2026-01-02T03:04Z --to 10m      an instant (UTC unless it says), an age, or ms since the epoch
--dir DIR                              a folder; it has its own range
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from headrace.infra.configuration.config import Config
from headrace.infra.kafka_edge import require_topics
from headrace.infra.weights_tail.since import parse_since
from headrace.replay.core.history import Span
from headrace.replay.sources.export import Exporter
from headrace.replay.sources.manifest import Manifest
from headrace.schemas.codec import SchemaSource
from headrace.schemas.errors import InvalidInputError
from headrace.solver.clocks import wall_clock_ms

EPOCH_MS_DIGITS = 12
"""A number of at least so many digits is an instant in ms."""


def parse_range(from_text: str, to_text: str | None) -> Span:
    """Read a range; it ends now where it does not say.

    Raises:
        InvalidInputError: an end is neither an instant nor an age.
        HistoryError: it ends before it begins.
    """
    now_ms = wall_clock_ms()
    return Span(_instant(from_text, "--from", now_ms), now_ms if to_text is None else _instant(to_text, "--to", now_ms))


def _instant(text: str, flag: str, now_ms: int) -> int:
    if text.isascii() and text.isdigit():
        if len(text) >= EPOCH_MS_DIGITS:
            return int(text)
        raise InvalidInputError("range", (f"{flag} is {text!r}; expected an instant, an age (10m), or epoch ms",))
    try:
        return parse_since(text, now_ms, "range").at_ms
    except InvalidInputError:
        problem = f"{flag} is {text!r}; expected an age (30s, 10m, 2h, 1d), an ISO 8601 instant, or ms since the epoch"
        raise InvalidInputError("range", (problem,)) from None


def export_to(config: Config, span: Span, folder: Path, topics: Sequence[str] = ()) -> Manifest:
    """Write a range into a folder, telling on a terminal what is being read.

    Topics of the team's own are in it where the bridge reads them, and where `topics` names them.

    Raises:
        UnreachableError: the broker does not answer.
        MissingTopicError: a topic that `topics` names is not there; one that the configuration names is a finding.
        HistoryError: as `Exporter.export` says.
    """
    require_topics(config.kafka, topics, ours=False)
    with told_on_terminal() as told:
        foreign = [source.topic for source in config.bridge.sources.values()]
        return Exporter(config.kafka, config.topics, span, folder, told, [*foreign, *topics]).export()


@contextmanager
def history_folder(
    config: Config, folder: Path | None, from_text: str | None, to_text: str | None, topics: Sequence[str] = ()
) -> Generator[Path]:
    """Give the folder to read: the one that is named, or one that lasts as long as the command.

    Raises:
        InvalidInputError: neither a folder nor a range is named, or both are.
    """
    if (folder is None) == (from_text is None):
        problem = "give either --dir DIR, a folder that `headrace export` wrote, or --from TIME, a range on the broker"
        raise InvalidInputError("range", (problem,))
    if folder is not None:
        yield folder
        return
    span = parse_range(from_text or "", to_text)
    with TemporaryDirectory(prefix="headrace-history-") as made:
        export_to(config, span, Path(made), topics)
        yield Path(made)


def registry_of(config: Config) -> SchemaSource | None:
    """Give what looks up schemas of Confluent framing; None where no registry is configured."""
    if not config.registry.url:
        return None
    from headrace.schemas.bus.registry import Registry  # noqa: PLC0415 - of an extra

    return Registry(config.registry)


@contextmanager
def told_on_terminal() -> Generator[Callable[[str, int], None]]:
    """Give a function that keeps one line of a terminal up to date; silent where there is none."""
    stream = click.get_text_stream("stderr")
    shown = stream.isatty()

    def tell(what: str, count: int) -> None:
        if shown:
            stream.write(f"\r\x1b[K{what}: {count:,} records")
            stream.flush()

    try:
        yield tell
    finally:
        if shown:
            stream.write("\r\x1b[K")
            stream.flush()
