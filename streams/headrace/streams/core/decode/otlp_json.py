"""OTLP metrics in JSON (protobuf's JSON form): lowerCamelCase, 64-bit integers as strings, enums as numbers or names.

Fields that are not there have protobuf's defaults: 0, "", false. One bad point is rejected, the batch goes on.
"""

from collections.abc import Mapping
from typing import Any

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode import otlp_points
from headrace.streams.core.decode.contract import (
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
from headrace.streams.core.decode.values import (
    count,
    explicit,
    json_value,
    labels,
    mapping,
    number,
    scalar,
    sequence,
    text,
)

_Json = Mapping[str, Any]
_SHAPES = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")
_TEMPORALITY = {"AGGREGATION_TEMPORALITY_DELTA": 1, "AGGREGATION_TEMPORALITY_CUMULATIVE": 2}


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the points of a batch."""
    document = mapping(json_value(record.value), "the message")
    if "resourceMetrics" not in document:
        raise Refusal(RejectReason.MALFORMED, "a batch without resourceMetrics")
    found = Gathering(options)
    for resource_metrics in _opened(document, "resourceMetrics", found):
        resource = _pairs(_object(resource_metrics, "resource"))
        for scope_metrics in _opened(resource_metrics, "scopeMetrics", found):
            for metric in _opened(scope_metrics, "metrics", found):
                try:
                    _metric(metric, resource, record.timestamp_ms, options, found)
                except Refusal as refusal:
                    found.reject(refusal.rejected.reason, refusal.rejected.detail)
                found.bound()
    return found.decoded()


def _metric(
    metric: _Json, resource: dict[str, str], otherwise_ms: int, options: DecodeOptions, found: Gathering
) -> None:
    name = text(metric.get("name"), "metric.name")
    shape = next((shape for shape in _SHAPES if shape in metric), None)
    if shape is None:
        return
    body = _object(metric, shape)
    points = _items(body, "dataPoints")
    if options.wanted is not None and name not in options.wanted:
        found.skipped[name] = found.skipped.get(name, 0) + len(points)
        return
    kind, temporality = _kind(shape, body, name)
    unit = str(metric.get("unit", ""))[:40]
    for point in points:
        try:
            time_ms = otlp_points.instant_ms(_nanoseconds(point, "timeUnixNano"), otherwise_ms)
            start_ms = otlp_points.start_ms(_nanoseconds(point, "startTimeUnixNano"), time_ms)
            missing = count(point.get("flags", 0), "flags") & otlp_points.NO_RECORDED_VALUE
            value, histogram = (None, None) if missing else _READERS[shape](point)
            known: Labels = labels({**resource, **_pairs(point)}.items())
        except Refusal as refusal:
            found.reject(refusal.rejected.reason, f"{name[:80]}: {refusal.rejected.detail}")
            continue
        index = len(found.points)
        found.points.append(Point(name, known, kind, temporality, time_ms, start_ms, value, histogram, unit, index))


def _kind(shape: str, body: _Json, name: str) -> tuple[Kind, Temporality]:
    if shape == "gauge":
        return Kind.GAUGE, Temporality.INSTANT
    if shape == "summary":
        return Kind.HISTOGRAM, Temporality.CUMULATIVE
    if shape == "sum" and body.get("isMonotonic") is not True:
        return Kind.GAUGE, Temporality.INSTANT
    spelled: object = body.get("aggregationTemporality", 0)
    found = _TEMPORALITY.get(spelled, 0) if isinstance(spelled, str) else count(spelled, "aggregationTemporality")
    return Kind.COUNTER if shape == "sum" else Kind.HISTOGRAM, otlp_points.temporality(found, name)


def _number(point: _Json) -> tuple[float | None, Explicit | Exponential | None]:
    if "asDouble" in point:
        return scalar(point["asDouble"], "asDouble"), None
    return (scalar(point["asInt"], "asInt") if "asInt" in point else None), None


def _explicit(point: _Json) -> tuple[float | None, Explicit | Exponential | None]:
    total_count = _integer(point, "count")
    bounds = [number(bound, "explicitBounds") for bound in _array(point, "explicitBounds")]
    counts = [_whole(each, "bucketCounts") for each in _array(point, "bucketCounts")] or [total_count]
    extremes = (_optional(point, "min"), _optional(point, "max"))
    return None, explicit(bounds, counts, total_count, _optional(point, "sum"), extremes)


def _exponential(point: _Json) -> tuple[float | None, Explicit | Exponential | None]:
    positive, negative = _object(point, "positive"), _object(point, "negative")
    buckets = [[_whole(each, "bucketCounts") for each in _array(side, "bucketCounts")] for side in (positive, negative)]
    whole = (_integer(point, "count"), _optional(point, "sum"), _optional(point, "min"), _optional(point, "max"))
    scale, offset = _signed(point, "scale"), _signed(positive, "offset")
    zeros = _integer(point, "zeroCount")
    return None, otlp_points.exponential(scale, zeros, (offset, buckets[0]), buckets[1], whole)


def _summary(point: _Json) -> tuple[float | None, Explicit | Exponential | None]:
    total_count = _integer(point, "count")
    return None, explicit((), (total_count,), total_count, _optional(point, "sum") or 0.0)


_READERS = {
    "gauge": _number,
    "sum": _number,
    "histogram": _explicit,
    "exponentialHistogram": _exponential,
    "summary": _summary,
}


def _opened(parent: _Json, name: str, found: Gathering) -> list[_Json]:
    found.opened(len(_array(parent, name)))
    return _items(parent, name)


def _items(parent: _Json, name: str) -> list[_Json]:
    return [mapping(item, f"an entry of {name}") for item in _array(parent, name)]


def _array(parent: _Json, name: str) -> list[Any]:
    found: Any = parent.get(name)
    return [] if found is None else list(sequence(found, name))


def _object(parent: _Json, name: str) -> _Json:
    found: object = parent.get(name)
    return {} if found is None else mapping(found, name)


def _whole(value: object, name: str) -> int:
    # A 64-bit integer is a string in JSON; through a float it would lose its last digits.
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        value = int(value)
    return count(value, name)


def _integer(point: _Json, name: str) -> int:
    return _whole(point.get(name, 0), name)


def _nanoseconds(point: _Json, name: str) -> int:
    value: object = point.get(name, 0)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise Refusal(RejectReason.MALFORMED, f"{name} is {value!r:.60}; expected nanoseconds since the epoch")


def _signed(point: _Json, name: str) -> int:
    value: object = point.get(name, 0)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Refusal(RejectReason.MALFORMED, f"{name} is {value!r:.60}; expected a whole number")


def _optional(point: _Json, name: str) -> float | None:
    found: object = point.get(name)
    return None if found is None else number(found, name)


def _pairs(parent: _Json) -> dict[str, str]:
    found: dict[str, str] = {}
    for attribute in _items(parent, "attributes"):
        key: object = attribute.get("key")
        for which, value in _object(attribute, "value").items():
            if isinstance(key, str) and which in ("stringValue", "intValue", "doubleValue", "boolValue"):
                found[key] = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return found
