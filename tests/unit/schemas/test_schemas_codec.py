import struct

import pytest

from headrace.schemas.avro_schemas import AvroSchema, fingerprint, raw_schema
from headrace.schemas.codec import (
    MAX_RECORD_BYTES,
    SCHEMA_ID_HEADER,
    UnreadableError,
    decode,
    encode,
    encode_body,
    encode_confluent,
    must,
)
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.signals import (
    Demand,
    Distribution,
    EngineSignals,
    EngineStatus,
    Health,
    Metric,
    NetworkProbe,
    Vantage,
)

PROBE = NetworkProbe("B", "site-c", "gateway-1", 1_700_000_000_000, 0.025)
SIGNALS = EngineSignals(
    engine_id="engine-b",
    source="engine-b/0",
    vantage=Vantage.ENGINE,
    period_start_ms=0,
    period_end_ms=1000,
    distributions=(Distribution("llama", Metric.TTFT, 3, 0.3, None, 0.2, 0, -20, (1, 2)),),
    status=EngineStatus(Health.HEALTHY, 4, 3, None, 7.0, 0.0, 0.25),
)
GUID = bytes(range(16))


class Registry:
    """A registry that knows one schema, as id 7 and under GUID."""

    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema

    def by_id(self, schema_id: int) -> AvroSchema | None:
        return self.schema if schema_id == 7 else None

    def by_guid(self, guid: bytes) -> AvroSchema | None:
        return self.schema if guid == GUID else None


REGISTRY = Registry(raw_schema("NetworkProbe"))


def rejection(outcome: object) -> RejectReason:
    assert isinstance(outcome, Rejected)
    return outcome.reason


def test_a_single_object_begins_with_the_marker_and_the_little_endian_fingerprint() -> None:
    assert encode(PROBE)[:2] == b"\xc3\x01"
    assert encode(PROBE)[2:10] == fingerprint(raw_schema("NetworkProbe"))


def test_the_fingerprint_is_the_specifications_example_in_little_endian_order() -> None:
    # Avro's own test vector: CRC-64-AVRO of "int" is 0x7275d51a3f395c8f.
    assert fingerprint({"type": "int"}) == struct.pack("<Q", 0x7275D51A3F395C8F)


def test_docs_do_not_change_the_fingerprint_so_a_better_sentence_is_no_new_schema() -> None:
    raw = raw_schema("NetworkProbe")
    assert fingerprint({**raw, "doc": "other words"}) == fingerprint(raw)


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (encode(PROBE), ()),
        (encode_confluent(PROBE, 7), ()),
        (encode_body(PROBE), ((SCHEMA_ID_HEADER, b"\x01" + GUID),)),
    ],
    ids=["single object", "confluent", "confluent header"],
)
def test_every_framing_reads_back_to_the_same_record(value: bytes, headers: tuple[tuple[str, bytes], ...]) -> None:
    assert decode(NetworkProbe, value, headers, REGISTRY) == PROBE


def test_nested_records_enums_and_nulls_survive_the_round_trip() -> None:
    assert decode(EngineSignals, encode(SIGNALS)) == SIGNALS


def test_a_missing_round_trip_stays_missing_and_does_not_become_zero() -> None:
    lost = NetworkProbe("B", "site-c", "g", 0, None)
    assert must(decode(NetworkProbe, encode(lost))).rtt_s is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, RejectReason.MALFORMED),
        (b"", RejectReason.MALFORMED),
        (b"{}", RejectReason.MALFORMED),
        (b"\xc3\x01", RejectReason.MALFORMED),
        (b"\x00\x00", RejectReason.MALFORMED),
        (b"\xc3\x01" + b"\x07" * 8, RejectReason.UNKNOWN_SCHEMA),
        (encode(PROBE)[:-3], RejectReason.MALFORMED),
        (encode(PROBE) + b"\x00", RejectReason.MALFORMED),
        (encode(PROBE)[:10] + b"\xff" * 40, RejectReason.MALFORMED),
        (encode(SIGNALS), RejectReason.WRONG_RECORD),
        (b"\xc3\x01" + b"\x00" * MAX_RECORD_BYTES, RejectReason.TOO_LARGE),
        (encode_confluent(PROBE, 7), RejectReason.UNKNOWN_SCHEMA),
    ],
    ids=lambda v: "bytes" if isinstance(v, bytes) and len(v) > 20 else str(v),
)
def test_bytes_that_cannot_be_read_are_rejected_with_a_reason(value: bytes | None, reason: RejectReason) -> None:
    assert rejection(decode(NetworkProbe, value)) is reason


def test_an_id_or_guid_that_the_registry_does_not_know_is_an_unknown_schema() -> None:
    assert rejection(decode(NetworkProbe, encode_confluent(PROBE, 8), (), REGISTRY)) is RejectReason.UNKNOWN_SCHEMA
    header = ((SCHEMA_ID_HEADER, b"\x01" + b"\xff" * 16),)
    assert rejection(decode(NetworkProbe, encode_body(PROBE), header, REGISTRY)) is RejectReason.UNKNOWN_SCHEMA


def test_a_foreign_schema_with_an_extra_field_is_read_and_the_field_is_left_out() -> None:
    raw = raw_schema("Demand")
    wider = {**raw, "fields": [*raw["fields"], {"name": "team", "type": "string", "default": ""}]}
    demand = Demand("B", "m", "default", "g", 0, 1000, 5, 1, 0)
    body = encode_body(demand) + b"\x06abc"
    assert decode(Demand, b"\x00\x00\x00\x00\x07" + body, (), Registry(wider)) == demand


def test_an_enum_value_of_a_newer_writer_reads_as_unknown() -> None:
    raw = raw_schema("EngineSignals")
    fields = [
        {**f, "type": {**f["type"], "symbols": ["SATELLITE", *f["type"]["symbols"]]}} if f["name"] == "vantage" else f
        for f in raw["fields"]
    ]
    # Symbol 0 of the newer writer is one that this reader has never heard of.
    body = bytearray(encode_body(SIGNALS))
    at = body.index(b"engine-b/0") + len(b"engine-b/0")
    body[at] = 0
    read = must(decode(EngineSignals, b"\x00\x00\x00\x00\x07" + bytes(body), (), Registry({**raw, "fields": fields})))
    assert read.vantage is Vantage.UNKNOWN


def test_must_raises_what_decode_only_reports() -> None:
    with pytest.raises(UnreadableError, match="MALFORMED"):
        must(decode(NetworkProbe, b"?"))


def test_a_schema_header_without_a_value_is_none_and_the_value_is_read_by_its_own_framing() -> None:
    header = ((SCHEMA_ID_HEADER, None),)
    assert decode(NetworkProbe, encode(PROBE), header) == PROBE
    assert rejection(decode(NetworkProbe, b"junk", header)) is RejectReason.MALFORMED
