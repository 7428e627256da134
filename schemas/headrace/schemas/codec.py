"""Records to bytes and back: Avro bodies, single-object framing by default, Confluent framing where a registry is used.

    single object   C3 01 | CRC-64-AVRO of the schema, little-endian | body      (Avro spec, "Single-object encoding")
    Confluent       00 | schema id, 4 bytes big-endian | body                    (wire format)
    Confluent       header `__value_schema_id` = 01 | GUID, 16 bytes; bare body  (header form)

Every reader accepts all three. Bytes that cannot be read are an outcome, `Rejected`, never an exception: nothing that
another process wrote may stop a reader.
"""

import io
import struct
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar, cast

import fastavro

from headrace.schemas.avro_reader import reader_of
from headrace.schemas.avro_schemas import AvroSchema, by_fingerprint, fingerprint, parse, raw_schema, schema
from headrace.schemas.avro_writer import writer_of
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.errors import HeadraceError
from headrace.schemas.plain import from_plain
from headrace.schemas.records import Record

R = TypeVar("R")

SINGLE_OBJECT_MARKER: Final = b"\xc3\x01"
SCHEMA_ID_HEADER: Final = "__value_schema_id"
MAX_RECORD_BYTES: Final = 16 * 1024 * 1024
"""A value above this is refused before it is parsed: a length field of hostile bytes must not allocate memory."""

_CONFLUENT_MAGIC: Final = b"\x00"
_GUID_MAGIC: Final = b"\x01"
_PARSED: Final = "__fastavro_parsed__"
_prefixes: dict[str, bytes] = {}


class SchemaSource(Protocol):
    """Where writer schemas of Confluent framing are looked up; a registry client, or a mapping in a test."""

    def by_id(self, schema_id: int) -> AvroSchema | None:
        """Give the schema with this registry id, best parsed already, or None where the registry has none."""
        ...

    def by_guid(self, guid: bytes) -> AvroSchema | None:
        """Give the schema with this 16-byte GUID, or None where the registry has none."""
        ...


class UnreadableError(HeadraceError):
    """A record that must be readable is not: raised by `must`, for records that this process wrote itself."""


def encode(record: Record) -> bytes:
    """Frame a record as an Avro single object: self-describing for every reader that ships the schema."""
    return prefix(type(record)) + writer_of(cast("type", type(record)))(record)


def prefix(kind: type[Record]) -> bytes:
    """Give what stands before the Avro body of a record of this kind: marker and fingerprint."""
    name = kind.__name__
    found = _prefixes.get(name)
    if found is None:
        found = _prefixes[name] = SINGLE_OBJECT_MARKER + fingerprint(raw_schema(name))
    return found


def encode_confluent(record: Record, schema_id: int) -> bytes:
    """Frame a record in the Confluent wire format under a registry's id for its schema."""
    return _CONFLUENT_MAGIC + struct.pack(">I", schema_id) + encode_body(record)


def encode_body(record: Record) -> bytes:
    """Give the bare Avro body: what a digest is taken over, whatever the framing."""
    return writer_of(cast("type", type(record)))(record)


def decode(
    expected: type[R],
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    registry: SchemaSource | None = None,
) -> R | Rejected:
    """Read a value of the expected record type in any of the three framings.

    Headers are looked at before the magic byte, since a bare body may begin with any byte. Returns `Rejected` with
    MALFORMED, TOO_LARGE, UNKNOWN_SCHEMA or WRONG_RECORD; a tombstone (None) is for the caller, and is refused here.
    """
    if value is None:
        return Rejected(RejectReason.MALFORMED, "value is null: a tombstone holds no record")
    if len(value) > MAX_RECORD_BYTES:
        return Rejected(RejectReason.TOO_LARGE, f"value has {len(value)} bytes; at most {MAX_RECORD_BYTES}")
    found = _writer_schema(value, headers, registry)
    if isinstance(found, Rejected):
        return found
    writer, start = found
    return _read(expected, writer, value, start)


def body_of(value: bytes, headers: Sequence[tuple[str, bytes | None]] = ()) -> bytes:
    """Give the bare Avro body of a value that `decode` could read, as its writer wrote it.

    Not what `encode_body` makes of the record: where the writer's schema is an older one, that has other bytes.
    """
    if any(k == SCHEMA_ID_HEADER and v and v[:1] == _GUID_MAGIC and len(v) == 17 for k, v in headers):
        return value
    return value[len(SINGLE_OBJECT_MARKER) + 8 :] if value[:2] == SINGLE_OBJECT_MARKER else value[5:]


def decode_plain(
    value: bytes, headers: Sequence[tuple[str, bytes | None]] = (), registry: SchemaSource | None = None
) -> tuple[str, dict[str, Any]] | Rejected:
    """Read a value of any record type: (its schema's name, its fields as dicts, lists and primitives).

    For foreign records, whose schema a registry knows. `Rejected` as `decode` says, and where the value is no record.
    """
    if len(value) > MAX_RECORD_BYTES:
        return Rejected(RejectReason.TOO_LARGE, f"value has {len(value)} bytes; at most {MAX_RECORD_BYTES}")
    found = _writer_schema(value, headers, registry)
    if isinstance(found, Rejected):
        return found
    writer, start = found
    body = io.BytesIO(value)
    body.seek(start)
    try:
        plain: object = fastavro.schemaless_reader(body, writer, None)
    except Exception as error:  # noqa: BLE001 - hostile bytes raise nearly anything inside an Avro reader
        return Rejected(RejectReason.MALFORMED, f"no {writer.get('name')}: {type(error).__name__}: {error}"[:300])
    if not isinstance(plain, dict):
        return Rejected(RejectReason.WRONG_RECORD, f"value is {plain!r:.60}; expected a record")
    if body.tell() != len(value):
        return Rejected(RejectReason.MALFORMED, f"{len(value) - body.tell()} bytes follow the {writer['name']}")
    return str(writer["name"]), cast("dict[str, Any]", plain)


def must(outcome: R | Rejected) -> R:
    """Give the decoded record, or raise UnreadableError: for tests and for bytes of our own."""
    if isinstance(outcome, Rejected):
        raise UnreadableError(f"{outcome.reason}: {outcome.detail}")
    return outcome


def _read(expected: type[R], writer: AvroSchema, value: bytes, start: int) -> R | Rejected:
    if str(writer["name"]).rpartition(".")[2] != expected.__name__:
        return Rejected(RejectReason.WRONG_RECORD, f"value is a {writer['name']}; expected {expected.__name__}")
    try:
        if writer is schema(expected.__name__):
            record, end = reader_of(cast("type", expected))(value, start)
        else:
            body = io.BytesIO(value)
            body.seek(start)
            plain = fastavro.schemaless_reader(body, writer, schema(expected.__name__))
            record, end = from_plain(expected, cast("dict[str, Any]", plain)), body.tell()
    except Exception as error:  # noqa: BLE001 - hostile bytes raise nearly anything inside an Avro reader
        return Rejected(RejectReason.MALFORMED, f"no {expected.__name__}: {type(error).__name__}: {error}"[:300])
    if end != len(value):
        return Rejected(RejectReason.MALFORMED, f"{len(value) - end} bytes follow the {expected.__name__}")
    return cast("R", record)


def _writer_schema(
    value: bytes, headers: Sequence[tuple[str, bytes | None]], registry: SchemaSource | None
) -> tuple[AvroSchema, int] | Rejected:
    guid = next((v for k, v in headers if k == SCHEMA_ID_HEADER and v and v[:1] == _GUID_MAGIC and len(v) == 17), None)
    if guid is not None:
        found = None if registry is None else registry.by_guid(guid[1:])
        return _registered(found, registry, f"GUID {guid[1:].hex()}", 0)
    if value[:2] == SINGLE_OBJECT_MARKER and len(value) >= 10:
        writer = by_fingerprint().get(value[2:10])
        if writer is None:
            return Rejected(RejectReason.UNKNOWN_SCHEMA, f"no schema has the fingerprint {value[2:10].hex()}")
        return writer, 10
    if value[:1] == _CONFLUENT_MAGIC and len(value) >= 5:
        schema_id = int.from_bytes(value[1:5], "big")
        found = None if registry is None else registry.by_id(schema_id)
        return _registered(found, registry, f"id {schema_id}", 5)
    return Rejected(RejectReason.MALFORMED, f"no Avro framing: the value begins with {value[:10].hex() or 'nothing'}")


def _registered(
    found: AvroSchema | None, registry: SchemaSource | None, name: str, start: int
) -> tuple[AvroSchema, int] | Rejected:
    if registry is None:
        return Rejected(RejectReason.UNKNOWN_SCHEMA, f"Confluent framing with {name}, and no registry is configured")
    if found is None:
        return Rejected(RejectReason.UNKNOWN_SCHEMA, f"the registry has no schema with {name}")
    return found if _PARSED in found else parse(found), start
