"""The Avro schemas as they ship: one file per record in `avro/`, and those of every release in `avro/released/`.

A reader finds a writer's schema by its CRC-64-AVRO fingerprint (Avro specification, "Schema Fingerprints"), so it reads
what any release wrote without a registry.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, cast

import fastavro
import fastavro.schema

from headrace.schemas.records import RECORD_TYPES

_FOLDER = resources.files("headrace.schemas") / "avro"
AvroSchema = dict[str, Any]


def schema_name(record_name: str) -> str:
    """Give the file name of a record's schema without its ending: `EngineSignals` is `engine_signals`."""
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(record_name))


@cache
def raw_schema(record_name: str) -> AvroSchema:
    """Give a record's Avro schema as it stands in its file, docs included."""
    return cast("AvroSchema", json.loads((_FOLDER / f"{schema_name(record_name)}.avsc").read_text("utf-8")))


@cache
def schema(record_name: str) -> AvroSchema:
    """Give a record's Avro schema, parsed."""
    return parse(raw_schema(record_name))


def parse(raw: Mapping[str, Any]) -> AvroSchema:
    """Parse a schema from any source.

    Raises:
        fastavro.schema.SchemaParseException: it is no schema.
    """
    return cast("AvroSchema", fastavro.parse_schema(dict(raw), _force=True))


def fingerprint(raw: Mapping[str, Any]) -> bytes:
    """Give the CRC-64-AVRO fingerprint of a schema's parsing canonical form, 8 bytes, little-endian."""
    canonical = fastavro.schema.to_parsing_canonical_form(dict(raw))
    return bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


@cache
def by_fingerprint() -> Mapping[bytes, AvroSchema]:
    """Give every schema this build can read: the released ones, and today's, which win where they are the same."""
    known = {fingerprint(raw): parse(raw) for raw in released().values()}
    names = [kind.__name__ for kind in RECORD_TYPES]
    known.update({fingerprint(raw_schema(name)): schema(name) for name in names})
    return known


@cache
def released() -> Mapping[tuple[str, str], AvroSchema]:
    """Give the schemas of every release as {(release, file name without ending): schema}."""
    folder = _FOLDER / "released"
    if not folder.is_dir():
        return {}
    return {
        (release.name, file.name.removesuffix(".avsc")): json.loads(file.read_text("utf-8"))
        for release in folder.iterdir()
        for file in release.iterdir()
    }
