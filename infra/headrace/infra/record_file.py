"""Records in a file: one JSON object a line (`*.jsonl`), or the bytes of a single message (anything else).

    {"topic", "partition", "offset", "timestamp_ms", "key_b64", "headers": [[name, base64], ...], "value_b64"}

key_b64 and value_b64 may be null. Other fields of a line are ignored.
"""

import base64
import binascii
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import orjson

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.raw import RawRecord

MAX_PROBLEMS: Final = 20


def read_records(path: Path, limit: int | None = None) -> tuple[RawRecord, ...]:
    """Read the first `limit` records of a file; all where it is None.

    Raises:
        InvalidInputError: the file cannot be read, or a line of it is no record; every such line is named.
    """
    try:
        if path.suffix != ".jsonl":
            stat_ms = path.stat().st_mtime_ns // 1_000_000
            return (RawRecord(path.name, 0, 0, stat_ms, None, path.read_bytes()),)
        with path.open("rb") as lines:
            return _parse(islice(lines, limit), str(path))
    except OSError as error:
        raise InvalidInputError(str(path), (f"cannot be read: {error.strerror}",)) from error


def _parse(lines: Iterator[bytes], name: str) -> tuple[RawRecord, ...]:
    records: list[RawRecord] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(orjson.loads(line)))
        except (ValueError, TypeError, KeyError, binascii.Error) as error:
            problems.append(f"line {number} is no record: {type(error).__name__}: {error}")
            if len(problems) >= MAX_PROBLEMS:
                break
    if problems:
        raise InvalidInputError(name, tuple(problems))
    return tuple(records)


def _record(line: object) -> RawRecord:
    if not isinstance(line, dict):
        raise TypeError("expected an object")
    fields = cast("dict[str, Any]", line)
    return RawRecord(
        topic=str(fields["topic"]),
        partition=int(fields["partition"]),
        offset=int(fields["offset"]),
        timestamp_ms=int(fields["timestamp_ms"]),
        key=_bytes(fields.get("key_b64")),
        value=_bytes(fields.get("value_b64")),
        headers=tuple((str(name), _bytes(value) or b"") for name, value in fields.get("headers") or ()),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
