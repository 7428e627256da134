"""OTLP's metrics messages as this carrier's decoder reads them: the same bytes, with attributes left as they are.

    Resource, KeyValue, AnyValue      declared as bytes: on the wire a message inside another is nothing else
    the rest                          as opentelemetry/proto/metrics/v1/metrics.proto declares it, less exemplars

Attributes are most of a batch, and the same with every scrape: as bytes they are looked up whole instead of being taken
apart one by one. Those that are new are parsed with the messages of `opentelemetry-proto`. A test holds the two
declarations against each other, field by field.

Source: OpenTelemetry protocol, metrics v1; Protocol Buffers encoding, "Submessages".
"""

from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_PACKAGE = "headrace.otlp"
_T = FieldDescriptorProto
_BYTES, _STRING, _DOUBLE, _BOOL = _T.TYPE_BYTES, _T.TYPE_STRING, _T.TYPE_DOUBLE, _T.TYPE_BOOL
_INT32, _UINT32, _UINT64, _SINT32 = _T.TYPE_INT32, _T.TYPE_UINT32, _T.TYPE_UINT64, _T.TYPE_SINT32
_FIXED64, _SFIXED64 = _T.TYPE_FIXED64, _T.TYPE_SFIXED64

_Field = tuple[int, str, Any, str]
"""Number, name, type or the name of a message, and what it is: "one", "many", "maybe" (presence is told), or the name
of the choice that it is part of."""

_NUMBER: Final[tuple[_Field, ...]] = (
    (7, "attributes", _BYTES, "many"),
    (2, "start_time_unix_nano", _FIXED64, "one"),
    (3, "time_unix_nano", _FIXED64, "one"),
    (4, "as_double", _DOUBLE, "value"),
    (6, "as_int", _SFIXED64, "value"),
    (8, "flags", _UINT32, "one"),
)
MESSAGES: Final[dict[str, tuple[_Field, ...]]] = {
    "MetricsData": ((1, "resource_metrics", "ResourceMetrics", "many"),),
    "ResourceMetrics": ((1, "resource", _BYTES, "one"), (2, "scope_metrics", "ScopeMetrics", "many")),
    "ScopeMetrics": ((2, "metrics", "Metric", "many"),),
    "Metric": (
        (1, "name", _STRING, "one"),
        (3, "unit", _STRING, "one"),
        (5, "gauge", "Gauge", "data"),
        (7, "sum", "Sum", "data"),
        (9, "histogram", "Histogram", "data"),
        (10, "exponential_histogram", "ExponentialHistogram", "data"),
        (11, "summary", "Summary", "data"),
    ),
    "Gauge": ((1, "data_points", "NumberDataPoint", "many"),),
    "Sum": (
        (1, "data_points", "NumberDataPoint", "many"),
        (2, "aggregation_temporality", _INT32, "one"),
        (3, "is_monotonic", _BOOL, "one"),
    ),
    "Histogram": (
        (1, "data_points", "HistogramDataPoint", "many"),
        (2, "aggregation_temporality", _INT32, "one"),
    ),
    "ExponentialHistogram": (
        (1, "data_points", "ExponentialHistogramDataPoint", "many"),
        (2, "aggregation_temporality", _INT32, "one"),
    ),
    "Summary": ((1, "data_points", "SummaryDataPoint", "many"),),
    "NumberDataPoint": _NUMBER,
    "HistogramDataPoint": (
        (9, "attributes", _BYTES, "many"),
        (2, "start_time_unix_nano", _FIXED64, "one"),
        (3, "time_unix_nano", _FIXED64, "one"),
        (4, "count", _FIXED64, "one"),
        (5, "sum", _DOUBLE, "maybe"),
        (6, "bucket_counts", _FIXED64, "many"),
        (7, "explicit_bounds", _DOUBLE, "many"),
        (10, "flags", _UINT32, "one"),
        (11, "min", _DOUBLE, "maybe"),
        (12, "max", _DOUBLE, "maybe"),
    ),
    "ExponentialHistogramDataPoint": (
        (1, "attributes", _BYTES, "many"),
        (2, "start_time_unix_nano", _FIXED64, "one"),
        (3, "time_unix_nano", _FIXED64, "one"),
        (4, "count", _FIXED64, "one"),
        (5, "sum", _DOUBLE, "maybe"),
        (6, "scale", _SINT32, "one"),
        (7, "zero_count", _FIXED64, "one"),
        (8, "positive", "Buckets", "one"),
        (9, "negative", "Buckets", "one"),
        (10, "flags", _UINT32, "one"),
        (12, "min", _DOUBLE, "maybe"),
        (13, "max", _DOUBLE, "maybe"),
    ),
    "Buckets": ((1, "offset", _SINT32, "one"), (2, "bucket_counts", _UINT64, "many")),
    "SummaryDataPoint": (
        (7, "attributes", _BYTES, "many"),
        (2, "start_time_unix_nano", _FIXED64, "one"),
        (3, "time_unix_nano", _FIXED64, "one"),
        (4, "count", _FIXED64, "one"),
        (5, "sum", _DOUBLE, "one"),
        (8, "flags", _UINT32, "one"),
    ),
}
"""Every message and its fields. Enums are declared as the integers that they are on the wire."""


def _declared(name: str, fields: tuple[_Field, ...]) -> DescriptorProto:
    made = DescriptorProto(name=name)
    choices = sorted({what for *_, what in fields} - {"one", "many", "maybe"})
    for choice in choices:
        made.oneof_decl.add(name=choice)
    for number, field, kind, what in fields:
        one = made.field.add(
            name=field, number=number, label=_T.LABEL_REPEATED if what == "many" else _T.LABEL_OPTIONAL
        )
        if isinstance(kind, str):
            one.type, one.type_name = _T.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
        else:
            one.type = kind
        if what in choices:
            one.oneof_index = choices.index(what)
        if what == "maybe":
            # What proto3 calls an optional field: a choice of its own, whose presence is told.
            one.proto3_optional, one.oneof_index = True, len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{field}")
    return made


def _file() -> FileDescriptorProto:
    made = FileDescriptorProto(name="headrace/otlp_wire.proto", package=_PACKAGE, syntax="proto3")
    made.message_type.extend(_declared(name, fields) for name, fields in MESSAGES.items())
    return made


_pool = DescriptorPool()
_pool.Add(_file())
MetricsData: Any = GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.MetricsData"))
"""The message that a record of this carrier holds."""
