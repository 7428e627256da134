"""One partition's records in an Avro object container file: bytes as they lay in the log, with offset and timestamp.

    {offset, timestamp_ms, key, value, headers}      key and value may be null

Topic and partition are in the file's metadata. Blocks are compressed (deflate); a file is written and read in a stream,
block by block. Any Avro reader opens it. Source of the form: Avro specification, "Object Container Files".
"""

import io
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import fastavro
from fastavro.write import Writer

from headrace.replay.core.columnar.batch import Batch
from headrace.replay.core.columnar.log_block import read_block
from headrace.replay.core.history import DamagedError, Place
from headrace.replay.sources.container_end import Ends, read_end
from headrace.schemas.raw import RawRecord

SYNC_BYTES = 256 * 1024
COMPRESSION_LEVEL = 1
SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "KafkaRecord",
        "namespace": "headrace.history",
        "doc": "A Kafka record as it lay in the log.",
        "fields": [
            {"name": "offset", "type": "long"},
            {"name": "timestamp_ms", "type": "long"},
            {"name": "key", "type": ["null", "bytes"]},
            {"name": "value", "type": ["null", "bytes"]},
            {
                "name": "headers",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Header",
                        "fields": [{"name": "name", "type": "string"}, {"name": "value", "type": "bytes"}],
                    },
                },
            },
        ],
    }
)


class ContainerWriter:
    """Writes one partition's file. `close` or leave the context, or the last block is missing."""

    def __init__(self, path: Path, place: Place) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("wb")
        metadata = {"headrace.topic": place[0], "headrace.partition": str(place[1])}
        self._writer: Any = Writer(
            self._file, SCHEMA, "deflate", SYNC_BYTES, metadata, compression_level=COMPRESSION_LEVEL
        )
        self.count = 0

    def write(self, record: RawRecord) -> None:
        """Add a record."""
        headers = [{"name": name, "value": value} for name, value in record.headers]
        self._writer.write(
            {
                "offset": record.offset,
                "timestamp_ms": record.timestamp_ms,
                "key": record.key,
                "value": record.value,
                "headers": headers,
            }
        )
        self.count += 1

    def close(self) -> None:
        """Write what is left."""
        if not self._file.closed:
            self._writer.flush()
            self._file.close()


def read_container(path: Path, place: Place) -> Iterator[RawRecord]:
    """Give a file's records in its order.

    Raises:
        DamagedError: the file is not there, is none of ours, or is damaged; what was whole before has been given.
    """
    last = _Last()
    with _told_damaged(path, last), path.open("rb") as file:
        for found in fastavro.reader(file):
            record = _record(place, cast("dict[str, Any]", found))
            last.offset = record.offset
            yield record


def read_batches(path: Path, place: Place) -> Iterator[Batch]:
    """Give a file's records in its order, a block at a time.

    Raises:
        DamagedError: as of `read_container`.
    """
    last = _Last()
    with _told_damaged(path, last), path.open("rb") as file:
        reader: Any = fastavro.block_reader(file)
        for block in reader:
            batch = read_block(place, block.bytes_.getvalue(), block.num_records, _odd)
            if len(batch):
                last.offset = int(batch.offset[-1])
                yield batch


class _Last:
    offset: int | None = None


@contextmanager
def _told_damaged(path: Path, last: _Last) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # damaged bytes raise nearly anything inside an Avro reader
        if read_end(path).ends is Ends.CUT:
            where = "in its first block" if last.offset is None else f"after offset {last.offset}"
            raise DamagedError(f"{path} is cut short {where}: export again") from error
        after = "from its beginning" if last.offset is None else f"after offset {last.offset}"
        raise DamagedError(f"{path} is damaged {after}: {type(error).__name__}: {error}") from error


def _record(place: Place, plain: dict[str, Any]) -> RawRecord:
    headers = tuple((each["name"], each["value"]) for each in plain["headers"])
    return RawRecord(*place, plain["offset"], plain["timestamp_ms"], plain["key"], plain["value"], headers)


def _odd(place: Place, data: bytes, at: int) -> tuple[RawRecord, int]:
    """Read one record where it lies in a block; gives it, and where it ends."""
    body = io.BytesIO(data)
    body.seek(at)
    plain = cast("dict[str, Any]", fastavro.schemaless_reader(body, SCHEMA, None))
    return _record(place, plain), body.tell()
