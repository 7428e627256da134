"""Confluent framing as Confluent's own serializer writes it, against a registry: its client's mock, or a real one.

`HEADRACE_TEST_REGISTRY=http://127.0.0.1:8080/apis/ccompat/v7` names a real one (Confluent's, Apicurio, Karapace); the
client's own mock registry (`mock://`) stands in where it is not set.
"""

import os
import uuid
from typing import Any

import orjson
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headrace.schemas.avro_schemas import AvroSchema, parse, raw_schema
from headrace.schemas.bus.registry import Registry
from headrace.schemas.bus.settings import RegistrySettings
from headrace.schemas.codec import SchemaSource, decode, encode_confluent, must
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import EngineSignals, NetworkProbe
from headrace.schemas.state import EngineState
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.core.mapping.parse import parse_mapping
from headrace.streams.settings import StreamsSettings

pytestmark = pytest.mark.embedded

URL = os.environ.get("HEADRACE_TEST_REGISTRY", "")
REQUEST = {
    "type": "record",
    "name": "Request",
    "namespace": "team",
    "fields": [
        {"name": "pod", "type": "string"},
        {"name": "model", "type": "string"},
        {"name": "ttft_ms", "type": ["null", "double"], "default": None},
    ],
}
MAPPING = """
identity: {engine: ["{pod}"], model: ["{model}"]}
document: {labels: {pod: pod, model: model}}
fields: {ttft: {path: ttft_ms, unit: ms}}
"""


class _Mocked:
    """Our lookups over the client's own mock registry, which is in this process alone."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - its client has no types
        self._client = client

    def by_id(self, schema_id: int) -> AvroSchema | None:
        return parse(orjson.loads(self._client.get_schema(schema_id).schema_str))

    def by_guid(self, guid: bytes) -> AvroSchema | None:
        return parse(orjson.loads(self._client.get_schema_by_guid(str(uuid.UUID(bytes=guid))).schema_str))


@pytest.fixture(scope="module")
def client() -> Any:  # noqa: ANN401 - as above
    options = {"url": URL or "mock://headrace-tests"}
    return SchemaRegistryClient(options) if URL else SchemaRegistryClient.new_client(options)


@pytest.fixture(scope="module")
def registry(client: Any) -> SchemaSource:  # noqa: ANN401 - as above
    return Registry(RegistrySettings(url=URL)) if URL else _Mocked(client)


def serialized(client: Any, schema: Any, plain: Any, topic: str) -> bytes:  # noqa: ANN401 - as above
    made: Any = AvroSerializer
    write = made(client, orjson.dumps(schema).decode())
    value = write(plain, SerializationContext(topic, MessageField.VALUE))
    assert value is not None
    assert value[:1] == b"\x00"
    return value


def translated(registry: SchemaSource, values: list[bytes]) -> EngineState:
    translator = Translator(parse_mapping(MAPPING), DecodeOptions("avro", registry=registry))
    accumulator = EngineAccumulator("e1", StreamsSettings(min_coverage=0.0))
    for i, value in enumerate(values):
        found = translator.translate(RawRecord("team", 0, i, 1_000 * (i + 1), None, value), 10_000)
        assert found.rejects == ()
        packs = Packs("team", 0, "h", "bridge")
        packs.add(found)
        for packed in packs.take():
            signal = must(decode(EngineSignals, packed.value))
            accumulator.apply(signal, i, signal.period_end_ms)
    return accumulator.state()


def test_a_teams_own_records_of_a_registry_come_to_a_state(client: Any, registry: SchemaSource) -> None:  # noqa: ANN401 - as above
    topic = f"requests-{uuid.uuid4().hex[:8]}"
    plain = [{"pod": "e1", "model": "m", "ttft_ms": ms} for ms in (100.0, None, 300.0)]
    (latency,) = translated(registry, [serialized(client, REQUEST, each, topic) for each in plain]).latencies
    assert (latency.model, latency.count) == ("m", 2)
    assert latency.mean_s == pytest.approx(0.2)


def test_our_own_record_under_a_registrys_id_is_read_by_it(client: Any, registry: SchemaSource) -> None:  # noqa: ANN401 - as above
    probe = NetworkProbe("tokyo", "osaka", "probe-1", 1_000, 0.008)
    written = Schema(orjson.dumps(raw_schema("NetworkProbe")).decode(), "AVRO")
    schema_id = client.register_schema(f"probes-{uuid.uuid4().hex[:8]}-value", written)
    assert must(decode(NetworkProbe, encode_confluent(probe, schema_id), (), registry)) == probe
