"""Vector's metric events in JSON; `native_json` is the same inside {"metric": ...}.

Buckets are per bucket, with +Inf removed: what the count holds beyond their sum is the overflow. An infinite
`upper_limit` is the text "inf". `incremental` is DELTA, `absolute` CUMULATIVE. A `distribution` holds samples with
rates. A name's namespace is put before it with `_`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.histogram import SCALE, bucket_index
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import (
    MAX_COUNT,
    Decoded,
    DecodeOptions,
    Explicit,
    Exponential,
    Gathering,
    Kind,
    Point,
    Refusal,
    Temporality,
)
from headrace.streams.core.decode.values import (
    INFINITY,
    as_list,
    count,
    explicit,
    json_labels,
    labels,
    mapping,
    number,
    rfc3339,
    scalar,
    sequence,
    text,
)

_TEMPORALITY = {"absolute": Temporality.CUMULATIVE, "incremental": Temporality.DELTA}
_Json = Mapping[str, Any]


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the points of a message: one event, an array of events, or one a line."""
    payload = record.value or b""
    try:
        document: object = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        document = _lines(payload, options, error)
    found = Gathering(options)
    found.read_each(as_list(document), _event, record.timestamp_ms, options)
    return found.decoded()


def _lines(payload: bytes, options: DecodeOptions, error: Exception) -> list[object]:
    lines = [line for line in payload.split(b"\n") if line.strip()]
    if not 1 < len(lines) <= options.max_points:
        raise Refusal(RejectReason.MALFORMED, f"no JSON: {error}")
    try:
        return [orjson.loads(line) for line in lines]
    except orjson.JSONDecodeError:
        raise Refusal(RejectReason.MALFORMED, f"no JSON, as a whole or by lines: {error}") from None


def _event(event: object, otherwise_ms: int, options: DecodeOptions, found: Gathering) -> None:
    document = mapping(event, "the event")
    if "metric" in document and "name" not in document:
        document = mapping(document["metric"], "metric")
    name = text(document.get("name"), "name")
    namespace: object = document.get("namespace")
    if isinstance(namespace, str) and namespace:
        name = f"{namespace}_{name}"
    if options.wanted is not None and name not in options.wanted:
        found.skipped[name] = found.skipped.get(name, 0) + 1
        return
    stamp: object = document.get("timestamp")
    time_ms = otherwise_ms if stamp is None else rfc3339(text(stamp, "timestamp"), "timestamp")
    known = labels(json_labels(document.get("tags") or {}, "tags").items())
    start_ms = None
    interval: object = document.get("interval_ms")
    temporality = _TEMPORALITY.get(str(document.get("kind")))
    if temporality is None:
        raise Refusal(RejectReason.MALFORMED, f"kind is {document.get('kind')!r:.40}; absolute or incremental")
    if temporality is Temporality.DELTA and interval is not None:
        start_ms = max(0, time_ms - count(interval, "interval_ms"))
    kind, value, histogram = _measured(document)
    if kind is Kind.GAUGE:
        if temporality is Temporality.DELTA:
            raise Refusal(RejectReason.INCONSISTENT, f"{name[:80]}: an incremental gauge: its base is not known")
        temporality = Temporality.INSTANT
    index = len(found.points)
    found.points.append(Point(name, known, kind, temporality, time_ms, start_ms, value, histogram, "", index))


def _measured(document: _Json) -> tuple[Kind, float | None, Explicit | Exponential | None]:
    for shape, kind in (("gauge", Kind.GAUGE), ("counter", Kind.COUNTER)):
        if shape in document:
            value: object = mapping(document[shape], shape).get("value")
            return kind, None if value is None else scalar(value, f"{shape}.value"), None
    for shape, read in _HISTOGRAMS:
        if shape in document:
            return Kind.HISTOGRAM, None, read(mapping(document[shape], shape))
    raise Refusal(RejectReason.MALFORMED, f"no value that is read: {', '.join(sorted(document))[:120]}")


def _aggregated_histogram(body: _Json) -> Explicit:
    bounds: list[float] = []
    counts: list[int] = []
    overflow = 0
    for bucket in sequence(body.get("buckets", []), "buckets"):
        entry = mapping(bucket, "a bucket")
        limit, observations = _limit(entry.get("upper_limit")), count(entry.get("count"), "a bucket's count")
        if limit == INFINITY:
            overflow += observations
        else:
            bounds.append(limit)
            counts.append(observations)
    total_count = count(body.get("count"), "count")
    beyond = total_count - sum(counts) - overflow
    if beyond < 0:
        raise Refusal(RejectReason.INCONSISTENT, f"buckets hold {total_count - beyond}; the count is {total_count}")
    return explicit(bounds, [*counts, overflow + beyond], total_count, _sum(body))


def _aggregated_summary(body: _Json) -> Explicit:
    total_count = count(body.get("count"), "count")
    return explicit((), (total_count,), total_count, _sum(body))


def _distribution(body: _Json) -> Exponential:
    """Give the samples in our own layout: their values are exact, so no bound of the source is lost."""
    buckets: dict[int, int] = {}
    zeros, total = 0, 0.0
    lowest, highest = INFINITY, -INFINITY
    for sample in sequence(body.get("samples", []), "samples"):
        entry = mapping(sample, "a sample")
        value, rate = scalar(entry.get("value"), "a sample's value"), count(entry.get("rate", 1), "a sample's rate")
        if value is None or rate == 0:
            continue
        total += value * rate
        lowest, highest = min(lowest, value), max(highest, value)
        if value <= 0.0:
            zeros += rate
        else:
            at = bucket_index(value)
            buckets[at] = buckets.get(at, 0) + rate
    total_count = zeros + sum(buckets.values())
    if total_count > MAX_COUNT:
        raise Refusal(RejectReason.OUT_OF_RANGE, f"a distribution's count is {total_count}; at most {MAX_COUNT}")
    if not total_count:
        return Exponential(SCALE, 0, 0, (), 0, 0.0)
    first, last = min(buckets, default=0), max(buckets, default=-1)
    counts = tuple(buckets.get(i, 0) for i in range(first, last + 1))
    return Exponential(SCALE, zeros, first, counts, total_count, total, lowest, highest)


_HISTOGRAMS: tuple[tuple[str, Callable[[_Json], Explicit | Exponential]], ...] = (
    ("aggregated_histogram", _aggregated_histogram),
    ("aggregated_summary", _aggregated_summary),
    ("distribution", _distribution),
)


def _limit(value: object) -> float:
    return INFINITY if value is None else number(value, "upper_limit")


def _sum(body: _Json) -> float | None:
    found: object = body.get("sum")
    return None if found is None else number(found, "sum")
