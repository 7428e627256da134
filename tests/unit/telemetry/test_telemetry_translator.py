"""One source record to readings by target: every carrier to the same state, and what becomes of the rest."""

from dataclasses import replace

import pytest

from headrace.schemas.avro_schemas import AvroSchema, raw_schema
from headrace.schemas.check_signals import Signal, check_signal
from headrace.schemas.codec import decode, encode, encode_body, encode_confluent, must
from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, Vantage
from headrace.schemas.state import EngineState
from headrace.schemas.topics import SIGNALS_ENGINE
from headrace.streams.core.canonical.packs import MAX_READINGS, Packs
from headrace.streams.core.canonical.translator import Translated, Translator
from headrace.streams.core.decode.contract import DecodeOptions, Point
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.mapping.parse import load_preset, parse_mapping
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import ENGINE, T0, VLLM_FILES, records, scrapes, text, vllm_mapping

NOW = T0 + 1_000_000
VLLM = load_preset("vllm_v1")
WINDOW = StreamsSettings(window_ms=30_000)
COUNTED = """
identity: {engine: ["{pod}"], model: ["{model}"], cluster: ["{region}"]}
fields:
  arrivals: {names: [{name: requests_total}]}
"""


def signals(carrier: str, found: tuple[RawRecord, ...], *, together: bool = False) -> list[Signal]:
    translator = Translator(VLLM if carrier != "prom_text" else vllm_mapping(), DecodeOptions(carrier))
    packs, out = Packs("team", 0, VLLM.hash, "bridge"), list[Signal]()
    for record in found:
        packs.add(translator.translate(record, NOW))
        out += [] if together else taken(packs)
    return [*out, *taken(packs)]


def taken(packs: Packs) -> list[Signal]:
    return [must(decode(packed.kind, packed.value)) for packed in packs.take()]


def state_of(found: list[Signal]) -> EngineState:
    fold, stored = KeyedFold(KINDS[SIGNALS_ENGINE], WINDOW, 8), dict[bytes, bytes]()
    signals_of_it = [
        RawRecord("s", partition_of(s.key, 8), i, NOW, s.key, encode(s))
        for i, s in enumerate(found)
        if isinstance(s, EngineSignals)
    ]
    done = fold.fold(signals_of_it, stored.get, None)
    assert done.rejected == ()
    return must(decode(EngineState, done.states[ENGINE.encode()]))


@pytest.mark.parametrize("name", [n for n in VLLM_FILES if n != "telegraf_influx_v2"])
def test_every_carrier_of_the_same_scrapes_comes_to_the_same_ttft(name: str) -> None:
    # Two scrapes of each: the first is a baseline; the third, of one carrier, is left out.
    state = state_of(signals(VLLM_FILES[name], tuple(r for r in records(name) if r.timestamp_ms < T0 + 29_000)))
    ttft = next(latency for latency in state.latencies if latency.metric == "TTFT")
    assert (ttft.count, state.running, state.kv_usage) == (38, 34.0, 0.475)
    assert ttft.mean_s == pytest.approx(0.10693, abs=1e-4)
    assert (state.period_ms, state.coverage, state.replicas_reporting) == (15_000, 0.5, 1)


def test_exposition_text_of_four_scrapes_shows_the_restart_as_what_was_served_since() -> None:
    state = state_of(signals("prom_text", scrapes()))
    ttft = next(latency for latency in state.latencies if latency.metric == "TTFT")
    assert ttft.count > 0
    assert state.coverage == 1.0
    assert state.late == 0


@pytest.mark.parametrize("name", ["prometheus_kafka_adapter_json", "telegraf_json", "otel_kafka_otlp_proto"])
def test_packing_many_records_into_one_signal_changes_no_state(name: str) -> None:
    carrier = VLLM_FILES[name]
    apart, packed = signals(carrier, records(name)), signals(carrier, records(name), together=True)
    assert len(packed) < len(apart)
    one, other = state_of(apart), state_of(packed)
    assert replace(one, applied_offset=0) == replace(other, applied_offset=0)


def test_what_is_made_is_a_sound_signal_with_its_lineage() -> None:
    made = signals("otlp_proto", records("otel_kafka_otlp_proto"))
    assert [check_signal(s, NOW) for s in made] == [None] * len(made)
    first = made[0]
    assert isinstance(first, EngineSignals)
    assert first.lineage is not None
    assert (first.lineage.topic, first.lineage.partition, first.lineage.mapping_hash) == ("team", 0, VLLM.hash)
    assert [each.index for each in first.series or ()] == list(range(len(first.series or ())))


def test_a_pack_that_grows_too_large_becomes_several() -> None:
    translator, record = Translator(VLLM, DecodeOptions("otlp_proto")), records("otel_kafka_otlp_proto")[0]
    packs = Packs("team", 0, VLLM.hash, "bridge")
    for offset in range(600):
        packs.add(translator.translate(replace(record, offset=offset), NOW))
    made = [each for each in taken(packs) if isinstance(each, EngineSignals)]
    assert len(made) > 1
    assert max(len(each.series or ()) for each in made) <= MAX_READINGS
    assert max(len(encode(s)) for s in made) < 1024 * 1024
    assert list(packs.take()) == []


def translated(mapping: str, value: str) -> Translated:
    return Translator(parse_mapping(mapping), DecodeOptions("prom_text")).translate(text(value), NOW)


def test_counters_of_arrivals_become_the_demand_of_their_cluster() -> None:
    found = translated(COUNTED, 'requests_total{pod="g1",model="m",region="eu"} 7\n')
    packs = Packs("team", 0, "h", "bridge")
    packs.add(found)
    (demand,) = taken(packs)
    assert isinstance(demand, Demand)
    assert (demand.key, demand.offered) == (b"eu|m|default", 0)
    assert [each.value for each in demand.series or ()] == [7.0]


def test_arrivals_of_no_cluster_are_refused_and_the_rest_goes_on() -> None:
    value = 'requests_total{pod="g1",model="m"} 7\nrequests_total{pod="g1",model="m",region="eu"} 7\n'
    found = translated(COUNTED, value)
    assert [each.reason for each in found.rejects] == [RejectReason.BAD_IDENTIFIER]
    assert "write identity.cluster" in found.rejects[0].detail
    assert len(found.readings) == 1
    assert not found.is_unusable


def test_a_clock_in_the_future_is_refused_by_its_original_bytes_not_by_the_fold() -> None:
    record = replace(records("otel_kafka_otlp_proto")[0])
    found = Translator(VLLM, DecodeOptions("otlp_proto")).translate(record, T0 - 3_600_000)
    assert {each.reason for each in found.rejects} == {RejectReason.TIME_IN_FUTURE}
    assert found.is_unusable


def test_names_that_no_field_asks_for_are_counted() -> None:
    found = translated(COUNTED, 'other{pod="g1"} 1\nrequests_total{pod="g1",model="m",region="eu"} 7\n')
    assert found.unmatched == {"other": 1}
    assert found.points == 2


def test_canonical_signals_pass_with_their_lineage() -> None:
    signal = EngineSignals("e1", "s", Vantage.ENGINE, 0, 1_000, (), None)
    record = RawRecord("team", 3, 9, NOW, b"e1", encode(signal))
    found = Translator(VLLM, DecodeOptions("avro")).translate(record, NOW)
    (passed,) = found.signals
    assert isinstance(passed, EngineSignals)
    assert passed.lineage is not None
    assert (passed.lineage.partition, passed.lineage.offset) == (3, 9)


def test_a_mappings_python_that_raises_refuses_the_record_and_nothing_else() -> None:
    def rewrite(*_: object) -> list[Point]:
        raise RuntimeError("no such thing")

    translator = Translator(VLLM, DecodeOptions("otlp_proto"), rewrite)
    found = translator.translate(records("otel_kafka_otlp_proto")[0], NOW)
    assert [each.reason for each in found.rejects] == [RejectReason.MALFORMED]
    assert "RuntimeError: no such thing" in found.rejects[0].detail


def test_a_canonical_signal_under_a_registrys_id_or_guid_passes_as_one_in_single_object_framing_does() -> None:
    signal = EngineSignals("e1", "s", Vantage.ENGINE, 0, 1_000, (), None)

    class Known:
        """A registry that knows one schema, by either name."""

        def by_id(self, schema_id: int) -> AvroSchema | None:
            return raw_schema("EngineSignals") if schema_id == 7 else None

        def by_guid(self, guid: bytes) -> AvroSchema | None:
            return raw_schema("EngineSignals") if guid == b"g" * 16 else None

    translator = Translator(VLLM, DecodeOptions("avro", registry=Known()))
    by_id = RawRecord("team", 0, 1, NOW, None, encode_confluent(signal, 7))
    by_guid = RawRecord("team", 0, 2, NOW, None, encode_body(signal), (("__value_schema_id", b"\x01" + b"g" * 16),))
    for record in (by_id, by_guid, RawRecord("team", 0, 3, NOW, None, encode(signal))):
        (passed,) = translator.translate(record, NOW).signals
        assert isinstance(passed, EngineSignals)
        assert replace(passed, lineage=None) == signal
    unknown = translator.translate(RawRecord("team", 0, 4, NOW, None, encode_confluent(signal, 8)), NOW)
    assert [each.reason for each in unknown.rejects] == [RejectReason.UNKNOWN_SCHEMA]
