"""The Avro files against the record types, against themselves, and against every released version of them."""

import io
import typing
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_many

from headrace.schemas.avro_schemas import AvroSchema, by_fingerprint, parse, raw_schema, released, schema, schema_name
from headrace.schemas.codec import decode, encode
from headrace.schemas.plain import from_plain, to_plain
from headrace.schemas.records import RECORD_TYPES, Record

NAMES = {schema_name(kind.__name__): kind for kind in RECORD_TYPES}


def named_types(node: object) -> list[AvroSchema]:
    """Every record and enum in a schema, outermost first."""
    if isinstance(node, list):
        return [found for item in node for found in named_types(item)]
    if not isinstance(node, dict):
        return []
    own = [node] if node.get("type") in ("record", "enum") else []
    inner = [f["type"] for f in node.get("fields", [])] + [node.get("items"), node.get("type")]
    return own + [found for item in inner if isinstance(item, (dict, list)) for found in named_types(item)]


@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_the_file_and_the_record_type_have_the_same_fields_in_the_same_order(kind: type[Record]) -> None:
    assert [f["name"] for f in raw_schema(kind.__name__)["fields"]] == list(typing.get_type_hints(kind))


@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_every_record_field_and_enum_has_a_doc_that_is_a_sentence(kind: type[Record]) -> None:
    for named in named_types(raw_schema(kind.__name__)):
        docs = {named["name"]: named["doc"], **{f["name"]: f["doc"] for f in named.get("fields", [])}}
        assert {name: doc for name, doc in docs.items() if not doc.endswith(".")} == {}


@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_every_enum_has_a_default_so_that_an_older_reader_reads_a_newer_symbol(kind: type[Record]) -> None:
    for named in named_types(raw_schema(kind.__name__)):
        if named["type"] == "enum":
            assert named["default"] == "UNKNOWN"
            assert named["default"] in named["symbols"]


@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_a_nullable_field_defaults_to_null_and_units_stand_last_in_names(kind: type[Record]) -> None:
    for named in named_types(raw_schema(kind.__name__)):
        for field in named.get("fields", []):
            if isinstance(field["type"], list):
                assert field["type"][0] == "null"
                assert field["default"] is None
            if ", seconds" in field["doc"]:
                assert field["name"].endswith("_s")
            if "ms since the epoch" in field["doc"]:
                assert field["name"].endswith("_ms")


@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_records_of_any_content_survive_bytes_and_plain_values(kind: type[Record]) -> None:
    for plain in generate_many(schema(kind.__name__), 50):
        record = from_plain(kind, typing.cast("dict[str, Any]", plain))
        assert decode(kind, encode(record)) == record
        assert from_plain(kind, to_plain(record)) == record


def test_there_is_a_release_to_stay_compatible_with_and_no_record_of_it_is_gone() -> None:
    names = {name for _, name in released()}
    assert names
    # A record may be newer than every release.
    assert names <= set(NAMES)


@pytest.mark.parametrize(("release", "name"), sorted(released()))
def test_todays_reader_reads_what_a_release_wrote(release: str, name: str) -> None:
    old, kind = released()[release, name], NAMES[name]
    for plain in generate_many(parse(old), 20):
        body = io.BytesIO()
        fastavro.schemaless_writer(body, parse(old), plain)
        body.seek(0)
        read = fastavro.schemaless_reader(body, parse(old), schema(kind.__name__))
        assert isinstance(from_plain(kind, typing.cast("dict[str, Any]", read)), kind)


@pytest.mark.parametrize(("release", "name"), sorted(released()))
def test_a_field_that_a_release_did_not_have_is_nullable_with_a_default(release: str, name: str) -> None:
    before = {f["name"] for f in released()[release, name]["fields"]}
    added = [f for f in raw_schema(NAMES[name].__name__)["fields"] if f["name"] not in before]
    assert [f["name"] for f in added if "default" not in f] == []


def test_every_readable_schema_has_its_own_fingerprint() -> None:
    assert len(by_fingerprint()) >= len(RECORD_TYPES)
