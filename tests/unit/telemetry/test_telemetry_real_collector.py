"""What a real OpenTelemetry Collector wrote to Apache Kafka: ten scrapes of one vLLM server, over three partitions.

Recorded with Collector 0.165.0: the Prometheus receiver, scraping vLLM's exposition text every 2 s, the batch
processor, Kafka exporters for otlp_proto and otlp_json in one pipeline. The text was made up: ten requests between two
scrapes, 0.2 s to the first token, 0.02 s between tokens, 2 s in all, 0.05 s queued; 7 running, 2 waiting, half of the
cache used.
"""

import pytest

from headrace.schemas.codec import decode, must
from headrace.schemas.raw import RawRecord
from headrace.schemas.series import TbotKind
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState
from headrace.schemas.topics import SIGNALS_ENGINE
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.partitioner import partition_of
from headrace.streams.core.trial.sniff import sniff
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import mapped, records

FILES = {"otlp_proto": "otel_collector_real_proto", "otlp_json": "otel_collector_real_json"}
ENGINE = "127.0.0.1:18000"
SECONDS = {Metric.TTFT: 0.2, Metric.TBOT: 0.02, Metric.E2E: 2.0, Metric.QUEUE: 0.05}


def state_of(carrier: str, found: list[RawRecord]) -> EngineState:
    translator = Translator(load_preset("vllm_v1"), DecodeOptions(carrier))
    fold, stored = (
        KeyedFold(KINDS[SIGNALS_ENGINE], StreamsSettings(window_ms=30_000, grace_ms=3_000), 8),
        dict[bytes, bytes](),
    )
    for offset, record in enumerate(found):
        translated, packs = translator.translate(record, record.timestamp_ms), Packs("t", record.partition, "h", "b")
        assert translated.rejects == ()
        packs.add(translated)
        for packed in packs.take():
            at = partition_of(packed.key, 8)
            raw = RawRecord("s", at, offset, record.timestamp_ms, packed.key, packed.value)
            stored.update(fold.fold([raw], stored.get, None).states)
    assert list(stored) == [ENGINE.encode()]
    return must(decode(EngineState, stored[ENGINE.encode()]))


def test_both_encodings_are_found_out_and_hold_the_same_readings() -> None:
    sniffed = [sniff(records(file)) for file in FILES.values()]
    assert [each and each.carrier for each in sniffed] == list(FILES)
    proto, json = (
        [reading._replace(place=0) for reading in mapped(carrier, records(file)).readings]
        for carrier, file in FILES.items()
    )
    assert proto == json
    # The old name of the KV cache's use, which is there too, does not speak.
    assert len(proto) == 10 * 7


@pytest.mark.parametrize("carrier", FILES)
def test_ten_scrapes_over_three_partitions_come_to_what_was_served(carrier: str) -> None:
    state = state_of(carrier, list(records(FILES[carrier])))
    assert (state.running, state.waiting, state.kv_usage, state.period_ms) == (7.0, 2.0, 0.5, 1_992)
    found = {latency.metric: latency for latency in state.latencies}
    assert set(found) == set(SECONDS)
    for metric, latency in found.items():
        assert latency.count == 90
        assert latency.mean_s == pytest.approx(SECONDS[metric])
    assert found[Metric.TBOT].tbot_kind is TbotKind.REQUEST_MEAN


def test_partitions_that_are_read_one_behind_the_other_within_the_grace_give_the_same_state() -> None:
    found = list(records(FILES["otlp_proto"]))
    for i in range(0, len(found) - 1, 2):
        # Neighbours lie on two partitions, two seconds apart at most.
        found[i], found[i + 1] = found[i + 1], found[i]
    in_order = state_of("otlp_proto", list(records(FILES["otlp_proto"])))
    swapped = state_of("otlp_proto", found)
    assert (swapped.latencies, swapped.late) == (in_order.latencies, in_order.late)
