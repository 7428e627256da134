"""Reads headrace's topics with nothing of headrace but its schema files: kcat's output in, a JSON line a record out.

    kcat -C -q -e -b kafka-1:9092 -t headrace.weights -f '%K %k %R%s' |
        python infra/examples/decode_records.py schemas/headrace/schemas/avro/*.avsc | jq .

Needs fastavro and no other package. A value is an Avro single object: C3 01, the CRC-64-AVRO fingerprint of its schema,
little-endian, the body. A null value takes its key back. A value of a schema that was not given is told by its
fingerprint; older ones are in `avro/released`. (In Confluent's framing, where a registry is configured, kcat decodes by
itself: `-s value=avro -r URL`.)
"""

import io
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

MARKER = b"\xc3\x01"


def by_fingerprint(files: list[str]) -> dict[bytes, Any]:
    """Give each schema file's parsed schema by the eight bytes that stand before its records."""
    found: dict[bytes, Any] = {}
    for file in files:
        raw = json.loads(Path(file).read_text("utf-8"))
        hexadecimal = fingerprint(to_parsing_canonical_form(raw), "CRC-64-AVRO")
        found[bytes.fromhex(hexadecimal)] = fastavro.parse_schema(raw)
    return found


def messages(stream: BinaryIO) -> Iterator[tuple[bytes, bytes | None]]:
    """Split kcat's `%K %k %R%s` into keys and values; the length of a null value is -1."""
    while length := b"".join(iter(lambda: stream.read(1).strip(), b"")):
        key = stream.read(max(int(length), 0))
        stream.read(1)
        (size,) = struct.unpack(">i", stream.read(4))
        yield key, None if size < 0 else stream.read(size)


def decoded(value: bytes | None, schemas: dict[bytes, Any]) -> dict[str, Any]:
    """Give a value as a line says it."""
    if value is None:
        return {"record": None}
    schema = schemas.get(value[2:10]) if value[:2] == MARKER else None
    if schema is None:
        return {"unknown": value[:10].hex()}
    return {"record": schema["name"], "value": fastavro.schemaless_reader(io.BytesIO(value[10:]), schema, None)}


def main() -> None:
    """Print a line a message; bytes are base64 to JSON's `latin-1` of Avro's own JSON encoding."""
    schemas = by_fingerprint(sys.argv[1:])
    for key, value in messages(sys.stdin.buffer):
        line = {"key": key.decode("utf-8", "replace"), **decoded(value, schemas)}
        print(json.dumps(line, default=lambda raw: raw.decode("latin-1")), flush=True)


if __name__ == "__main__":
    main()
