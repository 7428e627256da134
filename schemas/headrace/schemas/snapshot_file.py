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
from headrace.schemas.weights import RouteWeights, Snapshot, SnapshotCommit

P = TypeVar("P", RouteWeights, SnapshotCommit)


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot, indented, for people too; replaces what is there."""
    path.write_bytes(dump_snapshot(snapshot))


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
    problems: list[str] = []
    commit = _part(SnapshotCommit, plain["commit"], "commit", problems)
    routes = [_part(RouteWeights, item, f"routes[{i}]", problems) for i, item in enumerate(plain["routes"])]
    if problems or commit is None:
        raise InvalidInputError(name, tuple(problems))
    snapshot = Snapshot(commit, tuple(route for route in routes if route is not None))
    unsound = check_snapshot(snapshot)
    if unsound:
        raise InvalidInputError(name, unsound)
    return snapshot


def _part(kind: type[P], plain: Mapping[str, Any], at: str, problems: list[str]) -> P | None:
    """Build one record, and prove by its Avro schema that every field is of its type; else note why not."""
    try:
        record = from_plain(kind, plain)
        encode_body(record)
    except KeyError as error:
        problems.append(f"{at}: field {error} is missing")
    except Exception as error:  # noqa: BLE001 - any JSON may be here, and an Avro writer raises nearly anything
        problems.append(f"{at}: {type(error).__name__}: {error}")
    else:
        return record
    return None
