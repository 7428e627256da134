"""`--mapping [TOPIC=]FILE`: history with a team's own telemetry translated by another mapping.

The carrier is what the configuration says of that topic's source, else what the mapping names; without TOPIC= the
history must hold exactly one topic of the team's own.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.infra.configuration.bridge_sources import source_translator
from headrace.infra.configuration.config import Config
from headrace.infra.replay_history.range import registry_of
from headrace.replay.runs.mapped import mapped_folder
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.errors import InvalidInputError
from headrace.streams.bridge.settings import SourceSettings
from headrace.streams.core.canonical.translator import Translator


def named_topics(texts: Sequence[str]) -> tuple[str, ...]:
    """Give the topics that mappings are named for, to be taken in where the range is read from the broker."""
    return tuple(topic for topic, _ in map(_split, texts) if topic)


@contextmanager
def mapped_history(config: Config, folder: Path, texts: Sequence[str]) -> Generator[Path | None]:
    """Give a folder with the signals that the mappings make, which lasts as long as the command; None without any.

    Raises:
        InvalidInputError: a mapping cannot be read, has no carrier, or is for no topic of this history; all are told.
        HistoryError: the history does not hold the topic.
    """
    if not texts:
        yield None
        return
    translators = _translators(config, HistoryFolder(folder).foreign, texts)
    with TemporaryDirectory(prefix="headrace-mapped-") as made:
        yield mapped_folder(folder, Path(made), translators, registry_of(config))


def _translators(config: Config, held: Sequence[str], texts: Sequence[str]) -> dict[str, Translator]:
    problems: list[str] = []
    found: dict[str, Translator] = {}
    known = {source.topic: source for source in config.bridge.sources.values()}
    for text in texts:
        topic, file = _split(text)
        if not topic and len(held) != 1:
            told = ", ".join(held) or "none: `headrace export --topic NAME` takes one in"
            problems.append(f"--mapping is {text!r} without a topic; the history holds {told}; write TOPIC={file}")
            continue
        topic = topic or held[0]
        if topic in found:
            problems.append(f"--mapping names {topic} twice")
            continue
        source = replace(known.get(topic, SourceSettings(topic)), mapping=file, preset="")
        try:
            found[topic] = source_translator(source, registry_of(config))
        except InvalidInputError as error:
            problems += [f"--mapping {text}: {problem}" for problem in error.problems]
    if problems:
        raise InvalidInputError("mapping", tuple(problems))
    return found


def _split(text: str) -> tuple[str, str]:
    topic, equals, file = text.partition("=")
    return (topic, file) if equals else ("", text)
