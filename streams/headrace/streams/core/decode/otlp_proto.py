"""OTLP metrics in protobuf, as the OpenTelemetry Collector's Kafka exporter writes them: one message is one batch.

A batch holds many resources and hundreds of points; its key is null by default, so one engine's series may be spread
over partitions. One bad point is rejected, the batch goes on.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode import otlp_points
from headrace.streams.core.decode.contract import (
    MAX_LABELS,
    Decoded,
    DecodeOptions,
    Explicit,
    Exponential,
    Gathering,
    Kind,
    Labels,
    Point,
    Refusal,
    Temporality,
)
from headrace.streams.core.decode.values import explicit, labels, scalar

_Attributes = Sequence[Any]
_Message = Any
"""A protobuf message; which one, its caller has found out by WhichOneof."""
_Pairs = tuple[tuple[str, str], ...]
_Histogram = Explicit | Exponential | None


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the points of a batch."""
    message = MetricsData()
    try:
        message.ParseFromString(record.value or b"")
    except DecodeError as error:
        raise Refusal(RejectReason.MALFORMED, f"no OTLP metrics: {error}") from None
    found = Gathering(options)
    reader = _Batch(found, options, record.timestamp_ms)
    found.opened(len(message.resource_metrics))
    for resource_metrics in message.resource_metrics:
        resource = tuple(_pairs(resource_metrics.resource.attributes))
        reader.seen.clear()
        found.opened(len(resource_metrics.scope_metrics))
        for scope_metrics in resource_metrics.scope_metrics:
            found.opened(len(scope_metrics.metrics))
            for metric in scope_metrics.metrics:
                if reader.read(metric, resource):
                    found.bound()
    if not message.resource_metrics:
        raise Refusal(RejectReason.MALFORMED, "a batch without resourceMetrics")
    return found.decoded()


class _Batch:
    """The points of one message as they are read: in place, handed out by `decode`."""

    __slots__ = ("_found", "_otherwise_ms", "_wanted", "seen")

    def __init__(self, found: Gathering, options: DecodeOptions, otherwise_ms: int) -> None:
        self._found = found
        self._wanted = options.wanted
        self._otherwise_ms = otherwise_ms
        # Within a resource most points carry one of few attribute sets: each set is made into labels once.
        self.seen: dict[_Pairs, Labels] = {}

    def read(self, metric: _Message, resource: _Pairs) -> bool:
        """Take one metric's points; say whether there may now be more of anything than before."""
        shape = metric.WhichOneof("data")
        found, name = self._found, metric.name
        if shape is None:
            return False
        body = getattr(metric, shape)
        points = body.data_points
        if self._wanted is not None and name not in self._wanted:
            found.skipped[name] = found.skipped.get(name, 0) + len(points)
            return False
        try:
            kind, temporality = _kind(shape, body, name)
        except Refusal as refusal:
            found.reject(refusal.rejected.reason, refusal.rejected.detail)
            return True
        read, unit = _READERS[shape], metric.unit
        for point in points:
            try:
                time_ms = otlp_points.instant_ms(point.time_unix_nano, self._otherwise_ms)
                value, histogram = (None, None) if point.flags & otlp_points.NO_RECORDED_VALUE else read(point)
                start_ms = otlp_points.start_ms(point.start_time_unix_nano, time_ms)
                known = self._labels(point.attributes, resource)
            except Refusal as refusal:
                found.reject(refusal.rejected.reason, f"{name[:80]}: {refusal.rejected.detail}")
                continue
            index = len(found.points)
            found.points.append(Point(name, known, kind, temporality, time_ms, start_ms, value, histogram, unit, index))
        return True

    def _labels(self, attributes: _Attributes, resource: _Pairs) -> Labels:
        pairs = tuple(_pairs(attributes))
        known = self.seen.get(pairs)
        if known is None:
            known = self.seen[pairs] = _joined(resource, pairs)
        return known


def _kind(shape: str, body: _Message, name: str) -> tuple[Kind, Temporality]:
    if shape == "gauge":
        return Kind.GAUGE, Temporality.INSTANT
    if shape == "summary":
        return Kind.HISTOGRAM, Temporality.CUMULATIVE
    if shape == "sum" and not body.is_monotonic:
        return Kind.GAUGE, Temporality.INSTANT
    kind = Kind.COUNTER if shape == "sum" else Kind.HISTOGRAM
    return kind, otlp_points.temporality(body.aggregation_temporality, name)


def _number(point: _Message) -> tuple[float | None, _Histogram]:
    which = point.WhichOneof("value")
    if which is None:
        return None, None
    value: float = getattr(point, which)
    return (float(value) if math.isfinite(value) else scalar(value, "value")), None


def _explicit(point: _Message) -> tuple[float | None, _Histogram]:
    total = point.sum if point.HasField("sum") else None
    extremes = (point.min if point.HasField("min") else None, point.max if point.HasField("max") else None)
    # Without buckets a histogram may say its count and sum alone.
    counts = list(point.bucket_counts) or [point.count]
    return None, explicit(list(point.explicit_bounds), counts, point.count, total, extremes)


def _exponential(point: _Message) -> tuple[float | None, _Histogram]:
    whole = (
        point.count,
        point.sum if point.HasField("sum") else None,
        point.min if point.HasField("min") else None,
        point.max if point.HasField("max") else None,
    )
    positive = (point.positive.offset, list(point.positive.bucket_counts))
    negative = list(point.negative.bucket_counts)
    return None, otlp_points.exponential(point.scale, point.zero_count, positive, negative, whole)


def _summary(point: _Message) -> tuple[float | None, _Histogram]:
    return None, explicit((), (point.count,), point.count, point.sum)


_NUMBERS = ("int_value", "double_value")
_READERS = {
    "gauge": _number,
    "sum": _number,
    "histogram": _explicit,
    "exponential_histogram": _exponential,
    "summary": _summary,
}


@lru_cache(maxsize=16_384)
def _joined(resource: _Pairs, pairs: _Pairs) -> Labels:
    """Give the labels of a series; the same ones come with every batch."""
    return labels([*resource, *pairs])


def _pairs(attributes: _Attributes) -> list[tuple[str, str]]:
    if len(attributes) > MAX_LABELS:
        raise Refusal(RejectReason.TOO_LARGE, f"{len(attributes)} attributes; at most {MAX_LABELS}")
    found: list[tuple[str, str]] = []
    for attribute in attributes:
        value = attribute.value
        which = value.WhichOneof("value")
        if which == "string_value":
            found.append((attribute.key, value.string_value))
        elif which in _NUMBERS:
            found.append((attribute.key, str(getattr(value, which))))
        elif which == "bool_value":
            found.append((attribute.key, "true" if value.bool_value else "false"))
    return found
