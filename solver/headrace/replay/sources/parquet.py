"""A folder of history as Parquet files for notebooks: one a role, its records' own fields as columns.

    offset, partition, timestamp_ms, then the fields; nested ones (latencies, targets) as lists of structs

Opaque bytes (window panes, the memory of series) are left out. Written a row group at a time; a record that cannot be
read is left out and counted. Needs pyarrow: `pip install 'headrace[replay]'`.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as _arrow  # type: ignore[import-untyped]  # noqa: ICN001 - it ships no types: see `pa`
import pyarrow.parquet  # type: ignore[import-untyped]

from headrace.replay.core.merge import merged
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.avro_schemas import raw_schema
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.plain import to_plain
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import ROLES, SHADOW, SNAPSHOTS
from headrace.schemas.weights import SnapshotCommit

pa: Any = _arrow
ArrowType = Any

ROWS = 5_000
"""Rows of a group: what is held in memory."""
_PRIMITIVES = {
    "string": pa.string(),
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "bytes": pa.binary(),
}


def write_parquet(folder: Path) -> Mapping[str, int]:
    """Write `<role>.parquet` beside each role's files; commits of snapshots into a file of their own.

    Gives how many rows each file got.

    Raises:
        HistoryError: the folder holds no history, or a file of it is damaged.
    """
    history = HistoryFolder(folder)
    rows: dict[str, int] = {}
    for role in ROLES:
        if not history.places(role):
            continue
        kind = history.topics[role].record
        rows[role] = _write(folder / f"{role}.parquet", kind, _records(history, role))
        if role in (SNAPSHOTS, SHADOW):
            commits = _records(history, role, commits=True)
            rows[f"{role}.commits"] = _write(folder / f"{role}.commits.parquet", SnapshotCommit, commits)
    return rows


def _records(history: HistoryFolder, role: str, *, commits: bool = False) -> Iterator[RawRecord]:
    for record in merged([history.read(place) for place in history.places(role)]):
        if record.value is not None and (record.key == COMMIT_KEY) == commits:
            yield record


def _write(path: Path, kind: type[Any], records: Iterator[RawRecord]) -> int:
    fields = [field for field in raw_schema(kind.__name__)["fields"] if field["type"] != "bytes"]
    known: dict[str, ArrowType] = {}
    columns = [(field["name"], _type(field["type"], known)) for field in fields]
    schema = pa.schema(
        [("offset", pa.int64()), ("partition", pa.int32()), ("timestamp_ms", pa.int64()), *columns],
        metadata={"headrace.record": kind.__name__},
    )
    count = 0
    with pa.parquet.ParquetWriter(path, schema) as writer:
        while chunk := list(islice(records, ROWS)):
            rows = [row for record in chunk if (row := _row(kind, record)) is not None]
            writer.write_table(pa.Table.from_pylist(rows, schema))
            count += len(rows)
    return count


def _row(kind: type[Any], record: RawRecord) -> dict[str, Any] | None:
    decoded = decode(kind, record.value, record.headers)
    if isinstance(decoded, Rejected):
        return None
    place = {"offset": record.offset, "partition": record.partition, "timestamp_ms": record.timestamp_ms}
    return {**to_plain(decoded), **place}


def _type(avro: Any, known: dict[str, ArrowType]) -> ArrowType:  # noqa: ANN401 - JSON of any shape
    """Give Arrow's type for an Avro one; a named type that was told before is named alone."""
    if isinstance(avro, str):
        return _PRIMITIVES.get(avro) or known[avro.rpartition(".")[2]]
    if isinstance(avro, list):
        return _type(next(each for each in cast("list[Any]", avro) if each != "null"), known)
    match avro["type"]:
        case "array":
            return pa.list_(_type(avro["items"], known))
        case "enum":
            made: ArrowType = pa.string()
        case "record":
            made = pa.struct([(field["name"], _type(field["type"], known)) for field in avro["fields"]])
        case other:
            return _type(other, known)
    known[avro["name"]] = made
    return made
