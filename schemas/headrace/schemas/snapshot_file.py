"""A snapshot as a JSON file: `{"commit": {...}, "routes": [{...}, ...]}`, field by field as the records have them.

What `headrace solve` and `headrace tail` write and `headrace route` reads, without any broker. Reading checks it as any
reader of the topic would, digest included, and says all problems at once.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.codec import encode_body
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.plain import from_plain, to_plain
from headrace.schemas.plain_types import type_problems
from headrace.schemas.weights import RouteWeights, Snapshot, SnapshotCommit

P = TypeVar("P", RouteWeights, SnapshotCommit)


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot, indented, for people too; replaces what is there.

    Raises:
        InvalidInputError: the file cannot be written.
    """
    try:
        path.write_bytes(dump_snapshot(snapshot))
    except OSError as error:
        raise InvalidInputError(str(path), (f"cannot be written: {error.strerror}",)) from error


def read_snapshot(path: Path) -> Snapshot:
    """Read a snapshot.

    Raises:
        InvalidInputError: the file cannot be read, is not of this form, or the snapshot in it is not sound.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(str(path), (f"cannot be read: {error.strerror}",)) from error
    return parse_snapshot(content, str(path))


def dump_snapshot(snapshot: Snapshot) -> bytes:
    """Give the file's content."""
    return orjson.dumps(to_plain(snapshot), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def parse_snapshot(content: bytes, name: str = "snapshot") -> Snapshot:
    """Read a file's content; `name` is what an error calls it.

    Raises:
        InvalidInputError: it is not of this form, or the snapshot in it is not sound.
    """
    try:
        document: object = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(name, (f"no JSON: {error}",)) from error
    plain = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if not (isinstance(plain.get("commit"), dict) and isinstance(plain.get("routes"), list)):
        raise InvalidInputError(name, ('expected {"commit": {...}, "routes": [{...}, ...]}',))
    routes: list[object] = plain["routes"]
    problems = list(type_problems(SnapshotCommit, plain["commit"], "commit"))
    for i, item in enumerate(routes):
        problems += type_problems(RouteWeights, item, f"routes[{i}]")
    if not problems:
        return _sound(plain["commit"], cast("list[dict[str, Any]]", routes), name)
    raise InvalidInputError(name, tuple(problems))


def _sound(commit: dict[str, Any], routes: list[dict[str, Any]], name: str) -> Snapshot:
    """Build a snapshot from what has the right types, prove that every record can be written, and check it."""
    problems: list[str] = []
    made = _part(SnapshotCommit, commit, "commit", problems)
    parts = [_part(RouteWeights, item, f"routes[{i}]", problems) for i, item in enumerate(routes)]
    if problems or made is None:
        raise InvalidInputError(name, tuple(problems))
    snapshot = Snapshot(made, tuple(route for route in parts if route is not None))
    unsound = check_snapshot(snapshot)
    if unsound:
        raise InvalidInputError(name, unsound)
    return snapshot


def _part(kind: type[P], plain: Mapping[str, Any], at: str, problems: list[str]) -> P | None:
    """Build one record, and prove by its Avro schema that every field fits; else note why not."""
    record = from_plain(kind, plain)
    try:
        encode_body(record)
    except Exception as error:  # noqa: BLE001 - what an Avro writer raises is not said anywhere
        problems.append(f"{at}: {type(error).__name__}: {error}")
        return None
    return record
