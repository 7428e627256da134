"""Every engine that has a preset: two scrapes as its project documents them, by several carriers, to the same state.

Names, types, units and labels are the projects' own; values are invented. Between the scrapes an engine serves 10
requests: 0.2 s to the first token, 0.02 s between tokens, 2 s in all, 0.05 s queued.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE as CUMULATIVE
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA as DELTA
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as OtlpMetric
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from headrace.schemas.codec import decode, encode, must
from headrace.schemas.histogram import bucket_index
from headrace.schemas.raw import RawRecord
from headrace.schemas.series import TbotKind
from headrace.schemas.signals import EngineSignals, Metric
from headrace.schemas.state import EngineState
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.core.mapping.model import TelemetryMapping
from headrace.streams.core.mapping.parse import parse_mapping
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import T0

PERIOD_MS = 5_000
SECONDS = {"TTFT": 0.2, "TBOT": 0.02, "E2E": 2.0, "QUEUE": 0.05}
SERVED = 10


@dataclass(frozen=True)
class Engine:
    """What one engine exposes: distributions as (metric, name, units in a second), gauges as (name, labels, value)."""

    preset: str
    labels: dict[str, str]
    distributions: tuple[tuple[str, str, float], ...]
    gauges: tuple[tuple[str, dict[str, str], float], ...]
    status: tuple[float | None, float | None, float | None] = (7.0, 2.0, 0.5)
    kind: TbotKind | None = None
    more: str = ""

    @property
    def mapping(self) -> TelemetryMapping:
        return parse_mapping(f"preset: {self.preset}\n{self.more}")


VLLM = {"model_name": "m", "engine": "0", "instance": "e"}
SGLANG = {"model_name": "m", "engine_type": "unified", "instance": "e"}
SGLANG_RANK = {"tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0"}
TRITON = {"model": "m", "version": "1", "instance": "e"}
ENGINES = {
    "vllm v1": Engine(
        "vllm_v1",
        VLLM,
        (
            ("TTFT", "vllm:time_to_first_token_seconds", 1),
            ("TBOT", "vllm:request_time_per_output_token_seconds", 1),
            ("E2E", "vllm:e2e_request_latency_seconds", 1),
            ("QUEUE", "vllm:request_queue_time_seconds", 1),
        ),
        (
            ("vllm:num_requests_running", {}, 7),
            ("vllm:num_requests_waiting", {}, 2),
            ("vllm:kv_cache_usage_perc", {}, 0.5),
            # The old name beside the new one, as for two releases: not a second cache.
            ("vllm:gpu_cache_usage_perc", {}, 0.5),
        ),
        kind=TbotKind.REQUEST_MEAN,
    ),
    "sglang": Engine(
        "sglang",
        SGLANG,
        (
            ("TTFT", "sglang:time_to_first_token_seconds", 1),
            ("TBOT", "sglang:inter_token_latency_seconds", 1),
            ("E2E", "sglang:e2e_request_latency_seconds", 1),
            ("QUEUE", "sglang:queue_time_seconds", 1),
        ),
        (
            # With priorities: the sum without one, and each of them; another tensor-parallel rank repeats it all.
            ("sglang:num_running_reqs", {**SGLANG_RANK, "priority": ""}, 7),
            ("sglang:num_running_reqs", {**SGLANG_RANK, "priority": "1"}, 5),
            ("sglang:num_running_reqs", {**SGLANG_RANK, "priority": "2"}, 2),
            ("sglang:num_running_reqs", {**SGLANG_RANK, "tp_rank": "1", "priority": ""}, 7),
            ("sglang:num_queue_reqs", {**SGLANG_RANK, "priority": ""}, 2),
            ("sglang:num_queue_reqs", {**SGLANG_RANK, "priority": "1"}, 2),
            ("sglang:token_usage", SGLANG_RANK, 0.5),
        ),
        kind=TbotKind.PER_OUTPUT,
    ),
    "tgi": Engine(
        "tgi",
        {"instance": "e"},
        (
            ("TBOT", "tgi_request_mean_time_per_token_duration", 1),
            ("E2E", "tgi_request_duration", 1),
            ("QUEUE", "tgi_request_queue_duration", 1),
        ),
        (("tgi_batch_current_size", {}, 7), ("tgi_queue_size", {}, 2)),
        status=(7.0, 2.0, None),
        kind=TbotKind.REQUEST_MEAN,
        more="labels: {model: m}",
    ),
    "trtllm-serve": Engine(
        "trtllm",
        {"model_name": "m", "engine_type": "undefined", "instance": "e"},
        (
            ("TTFT", "trtllm_time_to_first_token_seconds", 1),
            ("TBOT", "trtllm_time_per_output_token_seconds", 1),
            ("E2E", "trtllm_e2e_request_latency_seconds", 1),
            ("QUEUE", "trtllm_request_queue_time_seconds", 1),
        ),
        (
            ("trtllm_num_requests_running", {}, 7),
            ("trtllm_num_requests_waiting", {}, 2),
            ("trtllm_kv_cache_utilization", {}, 0.5),
        ),
        kind=TbotKind.REQUEST_MEAN,
    ),
    "triton": Engine(
        "triton",
        TRITON,
        (("TTFT", "nv_inference_first_response_histogram_ms", 1_000),),
        (
            # Active ones are those that are scheduled and those that wait; the server counts the latter too.
            ("nv_trt_llm_request_metrics", {"request_type": "active"}, 9),
            ("nv_trt_llm_request_metrics", {"request_type": "scheduled"}, 7),
            ("nv_trt_llm_request_metrics", {"request_type": "waiting"}, 2),
            ("nv_trt_llm_request_metrics", {"request_type": "max"}, 512),
            ("nv_inference_pending_request_count", {}, 2),
            ("nv_trt_llm_kv_cache_block_metrics", {"kv_cache_block_type": "fraction"}, 0.5),
            ("nv_trt_llm_kv_cache_block_metrics", {"kv_cache_block_type": "used"}, 3060),
        ),
    ),
    "dynamo": Engine(
        "dynamo",
        {"model": "m", "instance": "e"},
        (
            ("TTFT", "dynamo_frontend_time_to_first_token_seconds", 1),
            ("TBOT", "dynamo_frontend_inter_token_latency_seconds", 1),
            ("E2E", "dynamo_frontend_request_duration_seconds", 1),
        ),
        (
            ("dynamo_frontend_active_requests", {}, 7),
            ("dynamo_frontend_inflight_requests", {}, 7),
            ("dynamo_frontend_queued_requests", {}, 2),
        ),
        status=(7.0, 2.0, None),
        kind=TbotKind.PER_OUTPUT,
        more="vantage: ENGINE",
    ),
    "ray serve": Engine(
        "ray_serve",
        {"model_name": "m", "engine": "0", "deployment": "d", "replica": "e", "ReplicaId": "e", "instance": "h"},
        (
            ("TTFT", "ray_vllm_time_to_first_token_seconds", 1),
            ("TBOT", "ray_vllm_inter_token_latency_seconds", 1),
            ("E2E", "ray_vllm_e2e_request_latency_seconds", 1),
            ("QUEUE", "ray_vllm_request_queue_time_seconds", 1),
        ),
        (
            ("ray_vllm_num_requests_running", {}, 7),
            ("ray_vllm_num_requests_waiting", {}, 2),
            ("ray_vllm_kv_cache_usage_perc", {}, 0.5),
        ),
        kind=TbotKind.PER_OUTPUT,
        more="identity: {engine: '{replica}'}",
    ),
    "otel genai, of an SDK": Engine(
        "otel_genai",
        {"server.address": "e", "server.port": "80", "gen_ai.response.model": "m", "gen_ai.operation.name": "chat"},
        (
            ("TTFT", "gen_ai.server.time_to_first_token", 1),
            ("TBOT", "gen_ai.server.time_per_output_token", 1),
            ("E2E", "gen_ai.server.request.duration", 1),
        ),
        (),
        status=(None, None, None),
        kind=TbotKind.REQUEST_MEAN,
        more="identity: {engine: '{server.address}'}",
    ),
    "otel genai, of a Prometheus exporter": Engine(
        "otel_genai",
        {"server_address": "e", "server_port": "80", "gen_ai_response_model": "m"},
        (
            ("TTFT", "gen_ai_server_time_to_first_token_seconds", 1),
            ("TBOT", "gen_ai_server_time_per_output_token_seconds", 1),
            ("E2E", "gen_ai_server_request_duration_seconds", 1),
        ),
        (),
        status=(None, None, None),
        kind=TbotKind.REQUEST_MEAN,
        more="identity: {engine: '{server_address}'}",
    ),
}


def labelled(name: str, labels: dict[str, str]) -> str:
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in labels.items()) + "}"


def exposition(engine: Engine, served: int) -> str:
    lines: list[str] = []
    for metric, name, unit in engine.distributions:
        value, labels = SECONDS[metric] * unit, engine.labels
        lines.append(f"# TYPE {name} histogram")
        lines += [
            f"{labelled(name + '_bucket', {**labels, 'le': le})} {count}"
            for le, count in ((f"{0.9 * value:g}", 0), (f"{1.1 * value:g}", served), ("+Inf", served))
        ]
        lines.append(f"{labelled(name + '_sum', labels)} {served * value}")
        lines.append(f"{labelled(name + '_count', labels)} {served}")
    for name, labels, value in engine.gauges:
        lines.append(f"{labelled(name, {**engine.labels, **labels})} {value}")
    return "\n".join([*lines, ""])


Shape = Callable[[OtlpMetric, dict[str, str], int, float, int], None]


def explicit(metric: OtlpMetric, labels: dict[str, str], served: int, value: float, at_ms: int) -> None:
    metric.histogram.aggregation_temporality = CUMULATIVE
    point = metric.histogram.data_points.add(count=served, sum=served * value, time_unix_nano=at_ms * 1_000_000)
    point.explicit_bounds.extend((0.9 * value, 1.1 * value))
    point.bucket_counts.extend((0, served, 0))
    attribute(point, labels)


def exponential(metric: OtlpMetric, labels: dict[str, str], served: int, value: float, at_ms: int) -> None:
    """Native histograms, as a Collector receives them of Prometheus."""
    metric.exponential_histogram.aggregation_temporality = CUMULATIVE
    points = metric.exponential_histogram.data_points
    point = points.add(count=served, sum=served * value, scale=3, time_unix_nano=at_ms * 1_000_000)
    point.positive.offset = bucket_index(value)
    point.positive.bucket_counts.append(served)
    attribute(point, labels)


def delta(metric: OtlpMetric, labels: dict[str, str], served: int, value: float, at_ms: int) -> None:
    explicit(metric, labels, min(served, SERVED), value, at_ms)
    metric.histogram.aggregation_temporality = DELTA
    metric.histogram.data_points[0].start_time_unix_nano = (at_ms - PERIOD_MS) * 1_000_000


def summary(metric: OtlpMetric, labels: dict[str, str], served: int, value: float, at_ms: int) -> None:
    point = metric.summary.data_points.add(count=served, sum=served * value, time_unix_nano=at_ms * 1_000_000)
    point.quantile_values.add(quantile=0.5, value=value)
    attribute(point, labels)


def attribute(point: object, labels: dict[str, str]) -> None:
    for name, value in labels.items():
        point.attributes.add(key=name).value.string_value = value  # type: ignore[attr-defined]  # any data point


def otlp(engine: Engine, served: int, at_ms: int, shape: Shape) -> bytes:
    data = MetricsData()
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    for metric, name, unit in engine.distributions:
        shape(metrics.add(name=name), engine.labels, served, SECONDS[metric] * unit, at_ms)
    for name, labels, value in engine.gauges:
        point = metrics.add(name=name).gauge.data_points.add(as_double=value, time_unix_nano=at_ms * 1_000_000)
        attribute(point, {**engine.labels, **labels})
    return data.SerializeToString()


def scrapes(engine: Engine, carrier: str) -> Iterator[tuple[str, RawRecord]]:
    shapes = {"otlp": explicit, "otlp exponential": exponential, "otlp delta": delta, "otlp summary": summary}
    for i, served in enumerate((SERVED, 2 * SERVED)):
        at_ms = T0 + PERIOD_MS * i
        if carrier in shapes:
            yield "otlp_proto", RawRecord("t", 0, i, at_ms, None, otlp(engine, served, at_ms, shapes[carrier]))
            continue
        value = exposition(engine, served)
        if carrier == "text with underscores":
            value = value.replace("vllm:", "vllm_").replace("sglang:", "sglang_")
        if carrier == "text with suffixes cut":
            value = value.replace("_seconds", "")
        yield "prom_text", RawRecord("t", 0, i, at_ms, None, value.encode())


def state_of(engine: Engine, carrier: str) -> EngineState:
    accumulator, translator = EngineAccumulator("e", StreamsSettings(min_coverage=0.0)), None
    for decoder, record in scrapes(engine, carrier):
        translator = translator or Translator(engine.mapping, DecodeOptions(decoder))
        translated, packs = translator.translate(record, record.timestamp_ms), Packs("t", 0, "h", "bridge")
        assert translated.rejects == ()
        packs.add(translated)
        (packed,) = packs.take()
        assert packed.key == b"e"
        accumulator.apply(must(decode(EngineSignals, packed.value)), record.offset, record.timestamp_ms)
    return must(decode(EngineState, encode(accumulator.state())))


TEXTS = ("text", "text with underscores", "text with suffixes cut")
CARRIERS = ("otlp", "otlp exponential", "otlp delta", "otlp summary")


@pytest.mark.parametrize(
    ("name", "carrier"),
    [
        (n, c)
        for n in ENGINES
        for c in (*CARRIERS, *TEXTS)
        if "." not in ENGINES[n].distributions[0][1] or c not in TEXTS
    ],
)
def test_two_scrapes_of_an_engine_come_to_what_it_served_between_them(name: str, carrier: str) -> None:
    engine = ENGINES[name]
    state = state_of(engine, carrier)
    assert (state.running, state.waiting, state.kv_usage) == engine.status
    found = {latency.metric: latency for latency in state.latencies}
    assert set(found) == {Metric(metric) for metric, _, _ in engine.distributions}
    for metric, latency in found.items():
        # Deltas count from the first message on.
        assert latency.count == (2 * SERVED if carrier == "otlp delta" else SERVED)
        assert latency.mean_s == pytest.approx(SECONDS[metric])
        assert latency.model == "m"
        if carrier == "otlp summary":
            assert latency.p50_s is None
        else:
            assert latency.p50_s == pytest.approx(SECONDS[metric], rel=0.12)
    if Metric.TBOT in found:
        assert found[Metric.TBOT].tbot_kind is engine.kind


def test_a_dynamo_frontend_sees_the_network_too_so_its_latencies_are_kept_apart() -> None:
    engine = ENGINES["dynamo"]
    translator = Translator(parse_mapping("preset: dynamo"), DecodeOptions("prom_text"))
    accumulator = EngineAccumulator("e", StreamsSettings())
    for _, record in scrapes(engine, "text"):
        packs = Packs("t", 0, "h", "bridge")
        packs.add(translator.translate(record, record.timestamp_ms))
        (packed,) = packs.take()
        accumulator.apply(must(decode(EngineSignals, packed.value)), record.offset, record.timestamp_ms)
    state = accumulator.state()
    assert (state.latencies, state.running) == ((), None)
    assert accumulator.ledger is not None
    assert accumulator.ledger.apart_ms == T0 + PERIOD_MS
