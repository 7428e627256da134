"""What Vector does that is peculiar: one sentence, one trap."""

import json

import pytest

from headrace.schemas.dead_letters import RejectReason
from headrace.streams.core.decode.contract import (
    DecodeOptions,
    Explicit,
    Exponential,
    Temporality,
)
from headrace.streams.core.decode.edge import decode
from telemetry_inputs import T0, read, reasons, records, text


def vector(**body: object) -> str:
    return json.dumps({"name": "m", "kind": "absolute", "timestamp": "2026-08-22T12:00:00.000Z", **body})


def buckets(*pairs: tuple[object, int], count: int, total: object = 1.0) -> dict[str, object]:
    return {"buckets": [{"upper_limit": limit, "count": n} for limit, n in pairs], "count": count, "sum": total}


def test_vector_removes_infinity_so_the_overflow_is_the_count_less_the_sum() -> None:
    (point,) = read("vector_json", vector(aggregated_histogram=buckets((0.1, 2), (0.5, 3), count=9))).points
    assert point.histogram == Explicit((0.1, 0.5), (2, 3, 4), 9, 1.0)


def test_vector_infinity_may_be_the_text_inf_or_null() -> None:
    for limit in ("inf", None):
        (point,) = read("vector_json", vector(aggregated_histogram=buckets((0.1, 2), (limit, 3), count=5))).points
        assert point.histogram == Explicit((0.1,), (2, 3), 5, 1.0)


def test_vector_buckets_that_hold_more_than_the_count_are_rejected() -> None:
    found = read("vector_json", vector(aggregated_histogram=buckets((0.1, 9), count=5)))
    assert reasons(found) == [RejectReason.INCONSISTENT]


def test_vector_native_json_is_the_same_inside_metric() -> None:
    for record in records("vector_json"):
        wrapped = text(b'{"metric":' + (record.value or b"") + b"}", record.timestamp_ms)
        assert decode(wrapped, DecodeOptions("vector_json")) == decode(record, DecodeOptions("vector_json"))


def test_vector_incremental_is_a_delta_over_its_interval_and_an_incremental_gauge_is_refused() -> None:
    (point,) = read("vector_json", vector(kind="incremental", interval_ms=10_000, counter={"value": 3})).points
    assert (point.temporality, point.start_ms) == (Temporality.DELTA, T0 - 10_000)
    assert reasons(read("vector_json", vector(kind="incremental", gauge={"value": 3}))) == [RejectReason.INCONSISTENT]


def test_vector_distribution_holds_samples_with_rates() -> None:
    samples = [{"value": 0.5, "rate": 2}, {"value": 0.0, "rate": 1}, {"value": 1.0}, {"value": 9.0, "rate": 0}]
    (point,) = read("vector_json", vector(kind="incremental", distribution={"samples": samples})).points
    assert point.histogram == Exponential(3, 1, -9, (2, 0, 0, 0, 0, 0, 0, 0, 1), 4, 2.0, 0.0, 1.0)
    (none,) = read("vector_json", vector(kind="incremental", distribution={"samples": []})).points
    assert none.histogram == Exponential(3, 0, 0, (), 0, 0.0)


def test_vector_summary_namespace_lines_and_arrays() -> None:
    one = vector(namespace="ns", aggregated_summary={"quantiles": [], "count": 3, "sum": 6.0})
    for value in (f"{one}\n{one}\n", f"[{one},{one}]"):
        found = read("vector_json", value)
        assert [(p.name, p.histogram) for p in found.points] == [("ns_m", Explicit((), (3,), 3, 6.0))] * 2


@pytest.mark.parametrize(
    "body",
    ["{", '{"name":"m"}', '{"name":"m","kind":"absolute"}', '{"name":"m","kind":"absolute","set":{}}', "{}\n{", "4"],
)
def test_vector_events_that_cannot_be_used_are_malformed(body: str) -> None:
    assert set(reasons(read("vector_json", body))) == {RejectReason.MALFORMED}


def test_vector_gauge_without_a_value_is_missing_and_what_is_not_wanted_is_skipped() -> None:
    assert read("vector_json", vector(gauge={})).points[0].is_missing
    options = DecodeOptions("vector_json", wanted=frozenset())
    assert decode(text(vector(gauge={})), options).skipped == {"m": 1}
