"""A fleet behind an OpenTelemetry Collector: its Kafka exporter's batches (OTLP protobuf, no key), values invented.

Every engine serves the same requests each period, so what a window should hold is that many times over.
"""

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from telemetry_inputs import records

TTFT_A_PERIOD = 200
"""Requests of one engine and period: the first scrape of the samples counts that many."""


def engine_id(number: int) -> str:
    """Give an engine's name."""
    return f"vllm-{number}"


def batch(engines: int, period: int, at_ms: int) -> bytes:
    """Give one message: a scrape of every engine after `period` whole periods; period 0 has counted one."""
    source, whole = MetricsData(), MetricsData()
    source.ParseFromString(records("otel_kafka_otlp_proto")[0].value or b"")
    for number in range(engines):
        resource = whole.resource_metrics.add()
        resource.CopyFrom(source.resource_metrics[0])
        for attribute in resource.resource.attributes:
            if attribute.key in ("service.instance.id", "k8s.pod.name"):
                attribute.value.string_value = engine_id(number)
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                body = getattr(metric, metric.WhichOneof("data"))
                for point in body.data_points:
                    point.time_unix_nano = at_ms * 1_000_000
                    point.start_time_unix_nano = 0
                    if metric.HasField("histogram"):
                        point.count *= period + 1
                        point.sum *= period + 1
                        for i, count in enumerate(point.bucket_counts):
                            point.bucket_counts[i] = count * (period + 1)
    return whole.SerializeToString()
