"""What lies in a folder of exported history: `manifest.json` beside the files.

    {format, from_ms, to_ms, ticks, topics: {prefix, names, partitions}, parts: [{role, partition, file, ...}],
     findings: [...]}

The topics' names are those that the records were written under; decision records name their inputs by them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson

from headrace.replay.core.history import Finding, Found, HistoryError, Span
from headrace.schemas.topics import TopicSettings

FORMAT = "headrace.history/1"
FILE = "manifest.json"


FOREIGN = "foreign/"
"""Begins the role of a topic of the team's own; its name follows."""


@dataclass(frozen=True, slots=True)
class Part:
    """One partition's file. Offsets are those of its first record and after its last; both 0 where it is empty.

    `role` is that of one of our topics, or `foreign/` and the full name of one of the team's own.
    """

    role: str
    partition: int
    file: str
    records: int
    first_offset: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder holds; `ticks` is how many snapshots were published in the range."""

    span: Span
    ticks: int
    topics: TopicSettings
    parts: tuple[Part, ...]
    findings: tuple[Finding, ...] = ()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it, last of all: a folder without it was not finished."""
    document = {
        "format": FORMAT,
        "from_ms": manifest.span.from_ms,
        "to_ms": manifest.span.to_ms,
        "ticks": manifest.ticks,
        "topics": {
            "prefix": manifest.topics.prefix,
            "names": dict(manifest.topics.names),
            "partitions": manifest.topics.partitions,
        },
        "parts": [
            {
                "role": part.role,
                "partition": part.partition,
                "file": part.file,
                "records": part.records,
                "first_offset": part.first_offset,
                "next_offset": part.next_offset,
            }
            for part in manifest.parts
        ],
        "findings": [plain_finding(each) for each in manifest.findings],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


def plain_finding(finding: Finding) -> dict[str, Any]:
    """Give a finding as JSON's types."""
    return {
        "found": finding.found.value,
        "topic": finding.topic,
        "partition": finding.partition,
        "count": finding.count,
        "sentence": finding.sentence,
    }


def read_manifest(folder: Path) -> Manifest:
    """Read a folder's manifest.

    Raises:
        HistoryError: there is none, or it is of another form.
    """
    path = folder / FILE
    try:
        found: object = orjson.loads(path.read_bytes())
    except OSError as error:
        raise HistoryError(
            f"{folder} holds no history: {FILE} {error.strerror or error}; `headrace export --out` makes one"
        ) from error
    except orjson.JSONDecodeError as error:
        raise HistoryError(f"{path} is no JSON: {error}") from error
    try:
        plain = cast("dict[str, Any]", found)
        if plain["format"] != FORMAT:
            raise HistoryError(f"{path} is of form {plain['format']!r}; this is {FORMAT!r}")
        topics = plain["topics"]
        return Manifest(
            Span(plain["from_ms"], plain["to_ms"]),
            plain["ticks"],
            TopicSettings(prefix=topics["prefix"], names=topics["names"], partitions=topics["partitions"]),
            tuple(Part(**part) for part in plain["parts"]),
            tuple(
                Finding(Found(each["found"]), each["topic"], each["partition"], each["count"], each["sentence"])
                for each in plain["findings"]
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"{path} is no manifest: {type(error).__name__}: {error}") from error
