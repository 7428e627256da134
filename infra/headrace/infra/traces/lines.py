"""Lines of trace files, plain or gzipped: CSV rows by column, JSON objects; what is wrong is told with its line."""

import csv
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

from headrace.infra.configuration.document_text import read_json
from headrace.schemas.errors import InvalidInputError

T = TypeVar("T")
MAX_PROBLEMS = 10
_GZIP = b"\x1f\x8b"


def csv_rows(file: Path, needed: Iterable[str]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Give (line, {column: text}) of a CSV file with a header.

    Raises:
        InvalidInputError: it cannot be read, or columns are missing.
    """
    with _opened(file) as lines:
        reader = csv.DictReader(lines)
        missing = [column for column in needed if column not in (reader.fieldnames or ())]
        if missing:
            has = ", ".join(reader.fieldnames or ()) or "nothing"
            raise InvalidInputError(str(file), (f"columns {', '.join(missing)} are missing; it has {has}",))
        for row in reader:
            yield reader.line_num, row


def json_lines(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give (line, object) of a file with one JSON object a line; a line that is none is an empty object.

    Raises:
        InvalidInputError: it cannot be read.
    """
    with _opened(file) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    found: Any = read_json(line)
                except ValueError:
                    found = None
                yield number, cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def each(file: Path, rows: Iterable[tuple[int, Mapping[str, Any]]], read: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """Read every row.

    Raises:
        InvalidInputError: with the first ten rows that cannot be read, and why.
    """
    out: list[T] = []
    problems: list[str] = []
    for number, row in rows:
        try:
            out.append(read(row))
        except (KeyError, ValueError, TypeError) as error:
            told = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            problems.append(f"line {number}: {told}")
            if len(problems) == MAX_PROBLEMS:
                break
    if problems:
        raise InvalidInputError(str(file), tuple(problems))
    return out


def number(row: Mapping[str, Any], column: str) -> float:
    """Read a finite number, at least 0.

    Raises:
        KeyError: there is no such column.
        ValueError: it is no such number.
    """
    value = float(row[column])
    if not 0.0 <= value < 1e15:
        raise ValueError(f"{column} is {row[column]!r}; a number, at least 0")
    return value


def _opened(file: Path) -> TextIO:
    try:
        with file.open("rb") as begin:
            packed = begin.read(2) == _GZIP
        return (
            gzip.open(file, "rt", encoding="utf-8", newline="") if packed else file.open(encoding="utf-8", newline="")
        )
    except OSError as error:
        raise InvalidInputError(str(file), (f"cannot be read: {error.strerror}",)) from error
