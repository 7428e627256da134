"""JSON, MessagePack, CloudEvents and Avro: what becomes a document, and what a signal."""

import json
import struct

import msgpack
import orjson
import pytest

from headrace.schemas import avro_schemas
from headrace.schemas.avro_schemas import AvroSchema
from headrace.schemas.codec import SCHEMA_ID_HEADER, encode
from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, Vantage
from headrace.streams.core.decode.contract import (
    Decoded,
    DecodeOptions,
)
from headrace.streams.core.decode.edge import decode
from telemetry_inputs import SAMPLES, T0, read, reasons, records, text


def test_json_may_be_an_object_an_array_or_one_object_a_line() -> None:
    for value in ('{"a":1}', '[{"a":1},{"a":1}]', '{"a":1}\n{"a":1}\n'):
        assert [d.body for d in read("json", value).documents] == [{"a": 1}] * (1 if len(value) < 10 else 2)
    assert reasons(read("json", '[{"a":1},2]')) == [RejectReason.MALFORMED]
    assert reasons(read("json", '{"a":1}\n{')) == [RejectReason.MALFORMED]
    assert reasons(read("json", "{")) == [RejectReason.MALFORMED]


def dynamo() -> dict[str, object]:
    found: dict[str, object] = json.loads((SAMPLES / "dynamo_forward_pass_metrics.json").read_text())
    return found


def test_dynamo_by_name_and_by_position_are_the_same_document() -> None:
    metrics = dynamo()
    by_position = [list(v.values()) if isinstance(v, dict) else v for v in metrics.values()]
    for packed in (metrics, by_position, [*by_position, "a newer field"]):
        (document,) = read("msgpack", msgpack.packb(packed)).documents
        assert document.body == metrics


@pytest.mark.parametrize("packed", [msgpack.packb(3), msgpack.packb([1, 2]), b"\xc1", b"\x91" * 5000, b"\x81\xff\xff"])
def test_messagepack_that_is_neither_is_malformed(packed: bytes) -> None:
    assert reasons(read("msgpack", packed)) == [RejectReason.MALFORMED]


def test_cloudevents_in_both_modes_hold_the_same_document() -> None:
    binary, structured = (decode(record, DecodeOptions("json")) for record in records("cloudevents"))
    assert binary.documents[0].body == structured.documents[0].body
    assert binary.documents[0].body["ttft"]["count"] == 38


def envelope(**fields: object) -> Decoded:
    headers = (("Content-Type", b"application/cloudevents+json; charset=UTF-8"),)
    return decode(RawRecord("t", 0, 0, T0, None, orjson.dumps(fields), headers), DecodeOptions("json"))


def test_cloudevents_data_may_be_json_a_text_or_base64_and_must_be_there() -> None:
    assert envelope(data={"a": 1}).documents[0].body == {"a": 1}
    assert envelope(data='{"a":1}').documents[0].body == {"a": 1}
    assert envelope(data_base64="eyJhIjoxfQ==").documents[0].body == {"a": 1}
    assert reasons(envelope(data_base64="no base64!")) == [RejectReason.MALFORMED]
    assert reasons(envelope(id="1")) == [RejectReason.MALFORMED]


def test_cloudevents_batches_and_broken_envelopes_are_malformed() -> None:
    for content_type, value in (
        (b"application/cloudevents-batch+json", b"[]"),
        (b"application/cloudevents+json", b"{"),
    ):
        record = RawRecord("t", 0, 0, T0, None, value, (("content-type", content_type),))
        assert reasons(decode(record, DecodeOptions("json"))) == [RejectReason.MALFORMED]


FOREIGN: AvroSchema = {
    "type": "record",
    "name": "Latency",
    "namespace": "acme",
    "fields": [{"name": "engine", "type": "string"}, {"name": "ttft_ms", "type": ["null", "double"], "default": None}],
}


class Schemas:
    """A registry with one schema, by id 7 and by a GUID of ones."""

    def by_id(self, schema_id: int) -> AvroSchema | None:
        return FOREIGN if schema_id == 7 else None

    def by_guid(self, guid: bytes) -> AvroSchema | None:
        return FOREIGN if guid == b"\x01" * 16 else None


BODY = b"\x04e1\x02" + struct.pack("<d", 112.5)


@pytest.mark.parametrize(
    ("value", "headers"),
    [(b"\x00\x00\x00\x00\x07" + BODY, ()), (BODY, ((SCHEMA_ID_HEADER, b"\x01" + b"\x01" * 16),))],
    ids=["magic byte", "header"],
)
def test_avro_of_a_foreign_schema_is_a_document_in_both_confluent_framings(
    value: bytes, headers: tuple[tuple[str, bytes], ...]
) -> None:
    record = RawRecord("t", 0, 0, T0, None, value, headers)
    found = decode(record, DecodeOptions("avro", registry=Schemas()))
    assert [d.body for d in found.documents] == [{"engine": "e1", "ttft_ms": 112.5}]
    assert reasons(decode(record, DecodeOptions("avro"))) == [RejectReason.UNKNOWN_SCHEMA]


def test_avro_looks_at_headers_before_the_magic_byte() -> None:
    body = b"\x00\x02" + struct.pack("<d", 1.0)  # an empty text: the body begins with the magic byte
    record = RawRecord("t", 0, 0, T0, None, body, ((SCHEMA_ID_HEADER, b"\x01" + b"\x01" * 16),))
    found = decode(record, DecodeOptions("avro", registry=Schemas()))
    assert [d.body for d in found.documents] == [{"engine": "", "ttft_ms": 1.0}]


def test_avro_of_our_own_is_a_signal() -> None:
    signals = (
        EngineSignals("e", "s", Vantage.ENGINE, 1, 2, (), None),
        Demand("c", "m", "default", "s", 1, 2, 3, 0, 0),
    )
    for signal in signals:
        assert decode(text(encode(signal)), DecodeOptions("avro")).signals == (signal,)


def test_avro_samples_of_a_schema_that_nobody_has_say_which() -> None:
    found = [decode(record, DecodeOptions("avro")).rejects[0] for record in records("avro_framings")]
    assert [each.reason for each in found] == [RejectReason.UNKNOWN_SCHEMA] * 3
    assert "47f8c09529579629" in found[0].detail
    assert "id 100042" in found[1].detail
    assert "3f1c2d4e5a6b4c7d8e9f001122334455" in found[2].detail


@pytest.mark.parametrize("cut", [3, 12, 14])
def test_avro_that_is_cut_or_too_long_is_malformed(cut: int) -> None:
    record = b"\x00\x00\x00\x00\x07" + BODY
    options = DecodeOptions("avro", registry=Schemas())
    assert reasons(decode(text(record[:cut]), options)) == [RejectReason.MALFORMED]
    assert reasons(decode(text(record + b"x"), options)) == [RejectReason.MALFORMED]


def test_avro_that_is_no_record_or_cut_inside_our_own_is_rejected() -> None:
    class Text(Schemas):
        def by_id(self, schema_id: int) -> AvroSchema | None:  # noqa: ARG002 - the protocol's
            return avro_schemas.parse({"type": "enum", "name": "E", "symbols": ["A"]})

    assert reasons(decode(text(b"\x00\x00\x00\x00\x07\x00"), DecodeOptions("avro", registry=Text()))) == [
        RejectReason.WRONG_RECORD
    ]
    whole = encode(EngineSignals("e", "s", Vantage.ENGINE, 1, 2, (), None))
    assert reasons(decode(text(whole[:-1]), DecodeOptions("avro"))) == [RejectReason.MALFORMED]
