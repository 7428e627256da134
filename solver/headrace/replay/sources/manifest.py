"""What lies in a folder of exported history: `manifest.json` beside the files.

    {format, from_ms, to_ms, ticks, topics: {prefix, names, partitions}, parts: [{role, partition, file, ...}],
     findings: [...]}

The topics' names are those that the records were written under; decision records name their inputs by them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, cast

import orjson

from headrace.replay.core.history import Finding, Found, HistoryError, Span
from headrace.schemas.topics import ROLES, TopicSettings

FORMAT = "headrace.history/1"
FILE = "manifest.json"


FOREIGN = "foreign/"
"""Begins the role of a topic of the team's own; its name follows."""
MAX_TOLD = 10

_WORDS: Mapping[type, str] = {str: "text", dict: "an object", list: "a list"}
_TOP: Mapping[str, type] = {"from_ms": int, "to_ms": int, "ticks": int, "topics": dict, "parts": list, "findings": list}
_TOPICS: Mapping[str, type] = {"prefix": str, "names": dict, "partitions": int}
_PART: Mapping[str, type] = {
    "role": str,
    "partition": int,
    "file": str,
    "records": int,
    "first_offset": int,
    "next_offset": int,
}
_FINDING: Mapping[str, type] = {"found": str, "topic": str, "partition": int, "count": int, "sentence": str}


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
    if not isinstance(found, dict) or "format" not in found:
        raise HistoryError(f"{path} is no manifest: it has no format; this is {FORMAT!r}")
    plain = cast("dict[str, Any]", found)
    if plain["format"] != FORMAT:
        raise HistoryError(f"{path} is of form {plain['format']!r}; this is {FORMAT!r}")
    problems = tuple(_problems(plain))
    if problems:
        more = f"; and {len(problems) - MAX_TOLD} more" if len(problems) > MAX_TOLD else ""
        raise HistoryError(f"{path} is no manifest: {'; '.join(problems[:MAX_TOLD])}{more}")
    topics = plain["topics"]
    return Manifest(
        Span(plain["from_ms"], plain["to_ms"]),
        plain["ticks"],
        TopicSettings(prefix=topics["prefix"], names=topics["names"], partitions=topics["partitions"]),
        tuple(Part(**{name: part[name] for name in _PART}) for part in plain["parts"]),
        tuple(
            Finding(Found(each["found"]), each["topic"], each["partition"], each["count"], each["sentence"])
            for each in plain["findings"]
        ),
    )


def _problems(plain: Mapping[str, Any]) -> Iterator[str]:
    """Say what of a manifest is not as `write_manifest` writes it."""
    yield from _mistyped(plain, _TOP, "")
    if isinstance(plain.get("topics"), dict):
        yield from _mistyped(plain["topics"], _TOPICS, "topics.")
    for name, fields in (("parts", _PART), ("findings", _FINDING)):
        listed = plain.get(name)
        for number, each in enumerate(cast("list[object]", listed) if isinstance(listed, list) else ()):
            where = f"{name}[{number}]"
            if isinstance(each, dict):
                yield from _mistyped(cast("dict[str, Any]", each), fields, f"{where}.")
            else:
                yield f"{where} is {each!r:.60}; expected an object"
    # What is of the right type may still mean nothing.
    for part in _objects(plain, "parts"):
        role, file = part.get("role"), part.get("file")
        if isinstance(role, str) and role not in ROLES and not role.startswith(FOREIGN):
            yield f"role is {role!r}; expected one of {', '.join(ROLES)}, or {FOREIGN}TOPIC"
        if isinstance(file, str) and (PurePath(file).is_absolute() or ".." in PurePath(file).parts):
            yield f"file is {file!r}; expected one in the folder"
    for finding in _objects(plain, "findings"):
        found = finding.get("found")
        if isinstance(found, str) and found not in [each.value for each in Found]:
            yield f"found is {found!r}; expected one of {', '.join(Found)}"


def _objects(plain: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found: object = plain.get(name)
    if not isinstance(found, list):
        return []
    return [cast("dict[str, Any]", each) for each in cast("list[object]", found) if isinstance(each, dict)]


def _mistyped(plain: Mapping[str, Any], fields: Mapping[str, type], where: str) -> Iterator[str]:
    for name, kind in fields.items():
        value: object = plain.get(name)
        if name == "partition" and value is None and fields is _FINDING and name in plain:
            continue
        if name not in plain:
            yield f"{where}{name} is missing"
        elif type(value) is not kind or (kind is int and cast("int", value) < 0):
            words = "a number that is not negative" if kind is int else _WORDS[kind]
            yield f"{where}{name} is {value!r:.60}; expected {words}"
