"""OTLP metrics in protobuf, as the OpenTelemetry Collector's Kafka exporter writes them: one message is one batch.

A batch holds many resources and hundreds of points; its key is null by default, so one engine's series may be spread
over partitions. One bad point is rejected, the batch goes on.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

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
from headrace.streams.core.decode.otlp_wire import MetricsData
from headrace.streams.core.decode.values import explicit, labels, scalar
from headrace.streams.core.recent import Recent

MAX_KNOWN: Final = 32_768
MAX_KNOWN_BYTES: Final = 16_000_000
"""Attribute sets whose labels are remembered, and the bytes of what they were made from."""
_Message = Any
"""A protobuf message; which one, its caller has found out by WhichOneof."""
_Attributes = tuple[bytes, ...]
_Pairs = tuple[tuple[str, str], ...]
_Histogram = Explicit | Exponential | None
_resources: Final[Recent[bytes, _Pairs]] = Recent(2_048, 4_000_000)
known_labels: Final[Recent[tuple[bytes, _Attributes], Labels]] = Recent(MAX_KNOWN, MAX_KNOWN_BYTES)
"""Labels by a resource's bytes and those of a point's attributes: the same ones come with every batch."""


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
        reader.begin(resource_metrics.resource)
        found.opened(len(resource_metrics.scope_metrics))
        for scope_metrics in resource_metrics.scope_metrics:
            found.opened(len(scope_metrics.metrics))
            for metric in scope_metrics.metrics:
                if reader.read(metric):
                    found.bound()
    if not message.resource_metrics:
        raise Refusal(RejectReason.MALFORMED, "a batch without resourceMetrics")
    return found.decoded()


class _Batch:
    """The points of one message as they are read: in place, handed out by `decode`."""

    __slots__ = ("_found", "_otherwise_ms", "_resource", "_seen", "_wanted")

    def __init__(self, found: Gathering, options: DecodeOptions, otherwise_ms: int) -> None:
        self._found = found
        self._wanted = options.wanted
        self._otherwise_ms = otherwise_ms
        self._resource = b""
        # Within a resource most points carry one of few attribute sets.
        self._seen: dict[_Attributes, Labels] = {}

    def begin(self, resource: bytes) -> None:
        """Go on to the metrics of this resource."""
        self._resource = resource
        self._seen = {}

    def read(self, metric: _Message) -> bool:
        """Take one metric's points; say whether there may now be more of anything than before."""
        shape = metric.WhichOneof("data")
        found, name = self._found, metric.name
        if shape is None:
            return False
        body = getattr(metric, shape)
        if self._wanted is not None and name not in self._wanted:
            found.skipped[name] = found.skipped.get(name, 0) + len(body.data_points)
            return False
        try:
            kind, temporality = _kind(shape, body, name)
        except Refusal as refusal:
            found.reject(refusal.rejected.reason, refusal.rejected.detail)
            return True
        read, unit, points, seen = _READERS[shape], metric.unit, found.points, self._seen
        for point in body.data_points:
            try:
                time_ms = otlp_points.instant_ms(point.time_unix_nano, self._otherwise_ms)
                value, histogram = (None, None) if point.flags & otlp_points.NO_RECORDED_VALUE else read(point)
                start_ns = point.start_time_unix_nano
                start_ms = otlp_points.start_ms(start_ns, time_ms) if start_ns else None
                attributes = tuple(point.attributes)
                known = seen.get(attributes)
                if known is None:
                    known = seen[attributes] = _labels(self._resource, attributes)
            except Refusal as refusal:
                found.reject(refusal.rejected.reason, f"{name[:80]}: {refusal.rejected.detail}")
                continue
            points.append(Point(name, known, kind, temporality, time_ms, start_ms, value, histogram, unit, len(points)))
        return True


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
    observations = point.count
    # Without buckets a histogram may say its count and sum alone.
    counts = tuple(point.bucket_counts) or (observations,)
    return None, explicit(tuple(point.explicit_bounds), counts, observations, total, extremes)


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


def _labels(resource: bytes, attributes: _Attributes) -> Labels:
    """Give the labels of a series.

    Raises:
        Refusal: the attributes are none, or more than a series may have.
    """
    key = (resource, attributes)
    known = known_labels.get(key)
    if known is None:
        if len(attributes) > MAX_LABELS:
            raise Refusal(RejectReason.TOO_LARGE, f"{len(attributes)} attributes; at most {MAX_LABELS}")
        try:
            pairs = _pairs([KeyValue.FromString(each) for each in attributes])
        except DecodeError as error:
            raise Refusal(RejectReason.MALFORMED, f"attributes are no OTLP: {error}") from None
        known = labels([*_of_resource(resource), *pairs])
        known_labels.put(key, known, len(resource) + sum(map(len, attributes)))
    return known


def _of_resource(resource: bytes) -> _Pairs:
    known = _resources.get(resource)
    if known is None:
        try:
            known = _pairs(Resource.FromString(resource).attributes)
        except DecodeError as error:
            raise Refusal(RejectReason.MALFORMED, f"the resource is no OTLP: {error}") from None
        _resources.put(resource, known, len(resource))
    return known


def _pairs(attributes: Sequence[KeyValue]) -> _Pairs:
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
    return tuple(found)
