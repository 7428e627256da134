"""Documents to readings: one request, one period, or one engine's own numbers, found by JMESPath."""

import json

import pytest

from headrace.streams.core.decode.contract import (
    DecodeOptions,
    Document,
    Explicit,
    Exponential,
    Temporality,
)
from headrace.streams.core.decode.edge import decode
from headrace.streams.core.mapping.documents import MappedDocuments, map_documents
from headrace.streams.core.mapping.parse import load_preset, parse_mapping
from headrace.streams.core.mapping.reading import Field, TbotKind
from telemetry_inputs import SAMPLES, T0, records

REQUESTS = """
vantage: CLIENT
where: status != 'error'
document: {time: ts, labels: {engine: engine, model: model, cluster: cluster, class: tenant_class, warm: warm}}
identity: {engine: ["{engine}"], model: ["{model}"], cluster: ["{cluster}"], class: ["{class}"]}
fields:
  ttft: {path: ttft_ms, unit: ms}
  tbot: {path: tpot_ms, unit: ms, tbot_kind: request_mean}
  kv_usage: {path: kv}
  arrivals: {each: 1}
  retries: {path: retries}
"""


def request(**fields: object) -> MappedDocuments:
    body = {"ts": "2026-08-22T12:00:00.000Z", "engine": "e", "model": "m", "status": "ok", "ttft_ms": 112.5, **fields}
    return map_documents([Document(body, T0 + 9, 0)], parse_mapping(REQUESTS))


def test_one_request_is_one_observation_in_seconds() -> None:
    found = request(tpot_ms=10, cluster="c", tenant_class="batch", warm=True)
    ttft, tbot, arrivals = found.readings
    assert ttft.histogram == Exponential(3, 0, -26, (1,), 1, 0.1125, 0.1125, 0.1125)
    assert (tbot.tbot_kind, tbot.temporality, tbot.time_ms) == (TbotKind.REQUEST_MEAN, Temporality.DELTA, T0)
    assert (arrivals.value, arrivals.identity.cluster, arrivals.identity.request_class) == (1.0, "c", "batch")


def test_null_or_absent_is_missing_and_not_zero() -> None:
    found = request(tpot_ms=None)
    assert [r.field for r in found.readings] == [Field.TTFT, Field.ARRIVALS]
    assert found.missing == {"tbot": 1, "kv_usage": 1, "retries": 1}
    assert request(tpot_ms="NaN").missing["tbot"] == 1


def test_a_duration_below_zero_came_from_two_clocks_and_is_clamped_and_recorded() -> None:
    found = request(ttft_ms=-3.0)
    assert found.readings[0].histogram == Exponential(3, 1, 0, (), 1, 0.0, 0.0, 0.0)
    assert found.clamped == {"ttft": 1}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"ttft_ms": "soon"}, "expected a number"),
        ({"ttft_ms": float("inf")}, "finite"),
        ({"kv": 1.5}, "0 to 1"),
        ({"retries": -1}, "0 to"),
        ({"ts": None}, "document.time 'ts' found nothing"),
        ({"ts": "when"}, "RFC 3339"),
        ({"engine": None}, "write identity.engine"),
    ],
)
def test_documents_with_a_wrong_value_say_which(fields: dict[str, object], says: str) -> None:
    assert says in request(**fields).rejects[0].detail


def test_where_leaves_documents_out_and_a_mapping_without_documents_refuses_them() -> None:
    assert request(status="error") == MappedDocuments(left_out=1)
    assert "no section document" in map_documents([Document({}, 0, 0)], load_preset("tgi")).rejects[0].detail
    strange = map_documents([Document({"a": 1}, 0, 0)], parse_mapping(REQUESTS.replace("status != 'error'", "a")))
    assert "expected true or false" in strange.rejects[0].detail


def test_the_request_sample_maps_whole() -> None:
    documents = [decode(r, DecodeOptions("json")).documents[0] for r in records("custom_request_json")]
    found = map_documents(documents, parse_mapping(REQUESTS))
    ok = [d for d in documents if d.body["status"] != "error"]
    assert found.left_out == 40 - len(ok)
    assert sum(r.field is Field.TTFT for r in found.readings) == len(ok)
    assert found.missing.get("tbot", 0) == sum(d.body["tpot_ms"] is None for d in ok)


SUMMARY = """
document: {time: window_end, start: window_start, labels: {engine: engine_id, model: model}}
identity: {engine: ["{engine}"], model: ["{model}"]}
fields:
  ttft:
    unit: s
    histogram: {count: ttft.count, sum: ttft.sum_s, bounds: ttft.explicit.bounds_s, counts: ttft.explicit.counts}
  e2e: {histogram: {count: e2e.count, sum: e2e.sum_s}}
"""


def test_a_document_may_hold_a_periods_histogram() -> None:
    documents = [decode(r, DecodeOptions("json")).documents[0] for r in records("cloudevents")]
    found = map_documents(documents, parse_mapping(SUMMARY))
    assert [(r.start_ms, r.time_ms, r.histogram) for r in found.readings] == [
        (T0, T0 + 15_000, Explicit((0.05, 0.1, 0.25, 0.5), (3, 20, 14, 1, 0), 38, 4.1))
    ] * 2
    assert found.missing == {"e2e": 2}


def test_a_document_whose_start_is_after_its_end_is_refused() -> None:
    body = {"window_end": 1_000_000_000_000, "window_start": 1_000_000_000_001, "engine_id": "e", "model": "m"}
    found = map_documents([Document(body, 0, 0)], parse_mapping(SUMMARY))
    assert "after document.time" in found.rejects[0].detail


def test_a_document_may_have_count_and_sum_alone() -> None:
    body = {"window_end": "1787400015", "engine_id": "e", "model": "m", "e2e": {"count": 2, "sum_s": 3.0}}
    (found,) = map_documents([Document(body, 0, 0)], parse_mapping(SUMMARY)).readings
    assert (found.time_ms, found.histogram) == (T0 + 15_000, Explicit((), (2,), 2, 3.0))


def test_dynamo_metrics_add_up_by_jmespath() -> None:
    forward = """
document: {labels: {worker: worker_id, rank: dp_rank}}
identity: {engine: ["{worker}"], model: [m], rank: ["{rank}"]}
fields:
  running: {path: "sum([scheduled_requests.num_prefill_requests, scheduled_requests.num_decode_requests])"}
  waiting: {path: "sum([queued_requests.num_prefill_requests, queued_requests.num_decode_requests])"}
"""
    body = json.loads((SAMPLES / "dynamo_forward_pass_metrics.json").read_text())
    found = map_documents([Document(body, T0, 0)], parse_mapping(forward)).readings
    assert [(r.field, r.value, r.time_ms) for r in found] == [(Field.RUNNING, 38.0, T0), (Field.WAITING, 3.0, T0)]
    assert found[0].identity.rank == "0"


def test_a_path_that_asks_of_a_value_what_it_has_not_finds_nothing() -> None:
    broken = REQUESTS.replace("path: kv", "path: sum(engine)")
    found = map_documents([Document({"ts": 1, "engine": "e", "model": "m", "status": ""}, 0, 0)], parse_mapping(broken))
    assert found.missing["kv_usage"] == 1
