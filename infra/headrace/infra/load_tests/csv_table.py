"""A CSV file as rows with their line numbers: header line, UTF-8 with or without a mark, gzipped or not.

Cells are apart by commas; by semicolons or tabs where the header has these and no comma. Lines above the header that
begin with `#` are passed over.
"""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from headrace.schemas.errors import InvalidInputError

MAX_BYTES = 64 * 1024 * 1024
DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row: its line in the file, and its cells by column, without blanks around them."""

    line: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A file's stem, its columns in order, its rows.

    Attributes:
        name: the stem.
        columns: in order.
        rows: those of as many cells as the header.
        torn: (line, what is wrong) of all other rows, so that they may be told with everything else.
        called: what the file calls a column, where that is not its name here.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[CsvRow, ...]
    torn: tuple[tuple[int, str], ...] = ()
    called: Mapping[str, str] = field(default_factory=dict[str, str])


def read_csv(source: str) -> CsvTable:
    """Read a file, or a table that ships, by its name without ending: `silicon_curves_agg`.

    Raises:
        InvalidInputError: no such file, no text, no header, no row, columns given twice.
    """
    path = Path(source)
    shipped = resources.files("headrace.infra.data") / f"{source}.csv.gz"
    try:
        content = shipped.read_bytes() if not path.exists() and "/" not in source and shipped.is_file() else _read(path)
        text = _unpacked(content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InvalidInputError(source, (f"cannot be read: {error}",)) from error
    return _parsed(source, path.name.split(".")[0], text)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _unpacked(content: bytes) -> bytes:
    if content.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"more than {MAX_BYTES} bytes")
    return content


def _split_above(text: str) -> tuple[int, str]:
    """Give how many lines of remarks stand above the header, and the text without them."""
    above = 0
    while text.startswith("#"):
        text = text.partition("\n")[2]
        above += 1
    return above, text


def _parsed(source: str, name: str, text: str) -> CsvTable:
    above, text = _split_above(text)
    header = text.partition("\n")[0]
    delimiter = next((mark for mark in DELIMITERS if mark in header), DELIMITERS[0])
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        columns = tuple(cell.strip() for cell in next(reader, list[str]()))
        lines = [(above + reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InvalidInputError(source, (f"row {above + reader.line_num}: {error}",)) from error
    problems = [f"column {column!r} is given {n} times" for column, n in Counter(columns).items() if n > 1]
    if not lines:
        problems.append("there is no row below the header" if columns else "the file is empty")
    if problems:
        raise InvalidInputError(source, tuple(problems))
    width = len(columns)
    rows = tuple(
        CsvRow(line, {column: cell.strip() for column, cell in zip(columns, row, strict=True)})
        for line, row in lines
        if len(row) == width
    )
    torn = tuple(
        (line, f"row {line} has {len(row)} cells; the header has {width}") for line, row in lines if len(row) != width
    )
    return CsvTable(name, columns, rows, torn)
