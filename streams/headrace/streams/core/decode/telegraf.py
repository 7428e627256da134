"""Telegraf's Prometheus metrics -> points: the two shapes that its line protocol and its JSON share.

    metric_version 1   measurement = family; fields gauge | counter | value | count, sum, and one per bucket bound or
                       quantile: bounds are cumulative counts
    metric_version 2   measurement = `prometheus`; fields = full names; a bucket's bound is the tag `le`

Telegraf drops fields that are NaN, so a message may have none: no recorded value. Tags are labels; `url`, where
Telegraf scraped, also gives `instance`, as Prometheus itself would name it.
"""

from collections.abc import Mapping
from typing import Any

from headrace.streams.core.decode.contract import (
    DecodeOptions,
    Explicit,
    Gathering,
    Kind,
    Labels,
    Point,
    Temporality,
)
from headrace.streams.core.decode.prom_adapter import is_wanted
from headrace.streams.core.decode.values import INFINITY, count, explicit, from_cumulative, labels, number, scalar

VERSION_2 = "prometheus"
_SCALARS = {
    "gauge": (Kind.GAUGE, Temporality.INSTANT),
    "counter": (Kind.COUNTER, Temporality.CUMULATIVE),
    "value": (Kind.UNTYPED, Temporality.INSTANT),
}
_UNTYPED = (Kind.UNTYPED, Temporality.INSTANT)


def add_metric(
    measurement: str,
    tags: Mapping[str, str],
    fields: Mapping[str, Any],
    time_ms: int,
    options: DecodeOptions,
    found: Gathering,
) -> None:
    """Add the points of one Telegraf metric to what was found.

    Raises:
        Refusal: its tags are too many, or its fields are neither shape.
    """
    known = labels(_with_instance(tags).items())
    first_shape = measurement != VERSION_2 and _is_first_shape(fields)
    if not first_shape:
        for name, value in fields.items():
            if not is_wanted(name, options.wanted):
                found.skipped[name] = found.skipped.get(name, 0) + 1
            elif not isinstance(value, str | bool):
                _add(found, name, known, _UNTYPED, time_ms, scalar(value, name))
        return
    if not is_wanted(measurement, options.wanted):
        found.skipped[measurement] = found.skipped.get(measurement, 0) + 1
        return
    if not fields:
        _add(found, measurement, known, _UNTYPED, time_ms, None)
    elif "count" in fields:
        kind = (Kind.HISTOGRAM, Temporality.CUMULATIVE)
        _add(found, measurement, known, kind, time_ms, _histogram(fields))
    for name, kind in _SCALARS.items():
        if name in fields:
            _add(found, measurement, known, kind, time_ms, scalar(fields[name], name))


def _add(
    found: Gathering,
    name: str,
    known: Labels,
    kind: tuple[Kind, Temporality],
    time_ms: int,
    value: float | Explicit | None,
) -> None:
    scalar_value, histogram = (None, value) if isinstance(value, Explicit) else (value, None)
    place = len(found.points)
    found.points.append(Point(name, known, *kind, time_ms, None, scalar_value, histogram, "", place))


def _is_first_shape(fields: Mapping[str, Any]) -> bool:
    return all(name in _SCALARS or name in ("count", "sum") or _as_bound(name) is not None for name in fields)


def _as_bound(name: str) -> float | None:
    try:
        found = float(name)
    except ValueError:
        return None
    return found if found == found and found != -INFINITY else None  # noqa: PLR0124 - only NaN differs from itself


def _histogram(fields: Mapping[str, Any]) -> Explicit:
    total_count = count(fields["count"], "count")
    total = number(fields["sum"], "sum") if "sum" in fields else None
    bounds = [name for name in fields if name not in ("count", "sum") and name not in _SCALARS]
    if not any(_as_bound(name) == INFINITY for name in bounds):
        # Without +Inf the numbers are a summary's quantiles.
        return explicit((), (total_count,), total_count, total)
    buckets = {number(name, "a bound"): count(fields[name], f"the bucket {name[:20]}") for name in bounds}
    return from_cumulative(buckets, total_count, total)


def _with_instance(tags: Mapping[str, str]) -> Mapping[str, str]:
    url = tags.get("url")
    if url is None or "instance" in tags:
        return tags
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return {**tags, "instance": host} if host else tags
