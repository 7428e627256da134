"""What OTLP does that is peculiar, in protobuf and in JSON: both forms must agree."""

import json

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from headrace.schemas.dead_letters import RejectReason
from headrace.streams.core.decode.contract import (
    Decoded,
    DecodeOptions,
    Explicit,
    Exponential,
    Kind,
    Temporality,
)
from headrace.streams.core.decode.edge import decode
from telemetry_inputs import T0, read, reasons, records


def otlp(**metric: object) -> str:
    return json.dumps(
        {
            "resourceMetrics": [
                {
                    "resource": {"attributes": [{"key": "service.instance.id", "value": {"stringValue": "i"}}]},
                    "scopeMetrics": [{"metrics": [{"name": "m", **metric}]}],
                }
            ]
        }
    )


def histogram(temporality: object = 2, **point: object) -> str:
    whole = {"timeUnixNano": f"{T0}000000", "count": "3", "sum": 1.5, "bucketCounts": ["1", "2"], "explicitBounds": [1]}
    return otlp(histogram={"aggregationTemporality": temporality, "dataPoints": [{**whole, **point}]})


def as_proto(document: str) -> bytes:
    """Give the protobuf of an OTLP JSON document by protobuf's own JSON reader: a second opinion on the form."""
    from google.protobuf import json_format

    return json_format.Parse(document, MetricsData()).SerializeToString()


def both(document: str) -> Decoded:
    """Decode both forms; they must agree."""
    from_json, from_proto = read("otlp_json", document), read("otlp_proto", as_proto(document))
    assert from_json.points == from_proto.points
    assert reasons(from_json) == reasons(from_proto)
    return from_json


def test_otlp_says_since_when_a_cumulative_point_counts_and_0_is_not_said() -> None:
    assert both(histogram(startTimeUnixNano=f"{T0 - 60_000}000000")).points[0].start_ms == T0 - 60_000
    assert both(histogram(startTimeUnixNano="0")).points[0].start_ms is None


def test_otlp_temporality_1_is_delta_2_is_cumulative_and_0_is_refused_rather_than_guessed() -> None:
    assert both(histogram(1)).points[0].temporality is Temporality.DELTA
    assert both(histogram(2)).points[0].temporality is Temporality.CUMULATIVE
    assert reasons(both(histogram(0))) == [RejectReason.INCONSISTENT]
    assert read("otlp_json", histogram("AGGREGATION_TEMPORALITY_DELTA")).points[0].temporality is Temporality.DELTA


def test_otlp_no_recorded_value_is_missing_and_not_zero() -> None:
    for document in (
        histogram(flags=1, count="0", sum=0, bucketCounts=[], explicitBounds=[]),
        otlp(gauge={"dataPoints": [{"timeUnixNano": f"{T0}000000", "flags": 1}]}),
        otlp(gauge={"dataPoints": [{"timeUnixNano": f"{T0}000000"}]}),
    ):
        (point,) = both(document).points
        assert point.is_missing
        assert point.value is None


def test_otlp_nan_gauge_is_missing_and_an_infinite_one_is_rejected() -> None:
    nan, inf = ({"timeUnixNano": f"{T0}000000", "asDouble": v} for v in ("NaN", "Infinity"))
    assert both(otlp(gauge={"dataPoints": [nan]})).points[0].is_missing
    assert reasons(both(otlp(gauge={"dataPoints": [inf]}))) == [RejectReason.NOT_FINITE]


def test_otlp_bucket_counts_are_one_more_than_the_bounds_and_add_up_to_the_count() -> None:
    assert both(histogram()).points[0].histogram == Explicit((1.0,), (1, 2), 3, 1.5)
    assert reasons(both(histogram(bucketCounts=["3"]))) == [RejectReason.INCONSISTENT]
    assert reasons(both(histogram(count="4"))) == [RejectReason.INCONSISTENT]
    assert reasons(both(histogram(explicitBounds=[1, 1], bucketCounts=["1", "1", "1"]))) == [RejectReason.INCONSISTENT]


def test_otlp_histogram_without_buckets_still_has_its_count_and_sum() -> None:
    assert both(histogram(bucketCounts=[], explicitBounds=[])).points[0].histogram == Explicit((), (3,), 3, 1.5)


def test_otlp_64_bit_integers_are_texts_in_json_and_lose_no_digit() -> None:
    big = 2**53 + 1
    assert both(
        otlp(histogram={"aggregationTemporality": 1, "dataPoints": [{"count": "0", "timeUnixNano": f"{T0}000000"}]})
    )
    assert reasons(both(histogram(count=str(big), bucketCounts=["0", str(big)]))) == [RejectReason.OUT_OF_RANGE]


def test_otlp_sums_are_counters_where_they_only_rise_and_gauges_else() -> None:
    points = [{"timeUnixNano": f"{T0}000000", "asInt": "7"}]
    up = otlp(sum={"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": points})
    updown = otlp(sum={"aggregationTemporality": 2, "dataPoints": points})
    assert [(p.kind, p.value) for p in both(up).points] == [(Kind.COUNTER, 7.0)]
    assert [(p.kind, p.temporality) for p in both(updown).points] == [(Kind.GAUGE, Temporality.INSTANT)]


def test_otlp_summary_is_a_count_and_a_sum() -> None:
    document = otlp(summary={"dataPoints": [{"timeUnixNano": f"{T0}000000", "count": "4", "sum": 2.0}]})
    assert both(document).points[0].histogram == Explicit((), (4,), 4, 2.0)


def exponential(**more: object) -> str:
    whole = {"timeUnixNano": f"{T0}000000", "count": "6", "sum": 3.0, "scale": 3, "zeroCount": "1"}
    sides = {"positive": {"offset": -9, "bucketCounts": ["1", "0", "3"]}, "negative": {"bucketCounts": ["1"]}}
    return otlp(exponentialHistogram={"aggregationTemporality": 1, "dataPoints": [{**whole, **sides, **more}]})


def test_otlp_exponential_histogram_keeps_its_buckets_and_counts_what_is_not_positive_as_zero() -> None:
    found = both(exponential(min=-1.0, max=0.6)).points[0].histogram
    assert found == Exponential(3, 2, -9, (1, 0, 3), 6, 3.0, -1.0, 0.6)
    assert reasons(both(exponential(scale=40))) == [RejectReason.OUT_OF_RANGE]
    assert reasons(both(exponential(count="7"))) == [RejectReason.INCONSISTENT]


def test_otlp_attributes_of_any_scalar_kind_are_labels_and_the_points_own_win() -> None:
    attributes = [
        {"key": "server.port", "value": {"intValue": "8000"}},
        {"key": "ok", "value": {"boolValue": True}},
        {"key": "service.instance.id", "value": {"stringValue": "point"}},
        {"key": "nested", "value": {"kvlistValue": {"values": []}}},
    ]
    (point,) = both(otlp(gauge={"dataPoints": [{"timeUnixNano": f"{T0}000000", "attributes": attributes}]})).points
    assert point.labels == (("ok", "true"), ("server.port", "8000"), ("service.instance.id", "point"))


def test_otlp_time_0_is_the_messages_own() -> None:
    assert both(otlp(gauge={"dataPoints": [{"asDouble": 1.0}]})).points[0].time_ms == T0


def test_one_bad_point_does_not_spoil_the_batch() -> None:
    points = [{"timeUnixNano": "1", "asDouble": 1.0}, {"asDouble": 2.0}]
    found = read("otlp_json", otlp(gauge={"dataPoints": points}))
    assert [p.value for p in found.points] == [2.0]
    assert reasons(found) == [RejectReason.OUT_OF_RANGE]


def test_points_that_are_not_wanted_are_counted_by_name_and_not_read() -> None:
    for name, carrier in (("otel_kafka_otlp_json", "otlp_json"), ("otel_kafka_otlp_proto", "otlp_proto")):
        options = DecodeOptions(carrier, wanted=frozenset(["vllm:num_requests_running"]))
        found = decode(records(name)[0], options)
        assert [p.name for p in found.points] == ["vllm:num_requests_running"]
        assert found.skipped["vllm:request_success_total"] == 4
        assert sum(found.skipped.values()) == 23


def test_a_batch_with_more_points_than_allowed_is_refused_whole() -> None:
    for name, carrier in (("otel_kafka_otlp_json", "otlp_json"), ("otel_kafka_otlp_proto", "otlp_proto")):
        found = decode(records(name)[0], DecodeOptions(carrier, max_points=5))
        assert (found.points, reasons(found)) == ((), [RejectReason.TOO_LARGE])


@pytest.mark.parametrize(
    "broken",
    [
        "[]",
        "{",
        '{"x": 1}',
        '{"resourceMetrics": {}}',
        '{"resourceMetrics": [1]}',
        '{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"gauge": {}}]}]}]}',
    ],
)
def test_json_that_is_no_otlp_is_malformed(broken: str) -> None:
    assert reasons(read("otlp_json", broken)) == [RejectReason.MALFORMED]


@pytest.mark.parametrize(
    "point",
    [
        {"count": -1},
        {"count": "1.5"},
        {"timeUnixNano": "soon"},
        {"timeUnixNano": -4},
        {"sum": "much"},
        {"flags": "a"},
        {"bucketCounts": 3},
        {"explicitBounds": ["x"]},
        {"attributes": [{"key": "a", "value": 3}]},
        {"count": True},
    ],
)
def test_json_points_with_a_wrong_value_are_rejected_by_name(point: dict[str, object]) -> None:
    found = read("otlp_json", histogram(**point))
    assert (found.points, len(found.rejects)) == ((), 1)
    assert found.rejects[0].detail.startswith("m: ")


def test_a_metric_without_data_holds_nothing() -> None:
    assert read("otlp_json", otlp()) == Decoded()
    assert read("otlp_proto", as_proto(otlp())) == Decoded()


def test_bytes_that_are_no_protobuf_are_malformed() -> None:
    assert reasons(read("otlp_proto", b"\xff\xff\xff")) == [RejectReason.MALFORMED]
    assert reasons(read("otlp_proto", b"\x12\x00")) == [RejectReason.MALFORMED]
