"""Points and documents to readings: aliases, identity, units, what is refused, and what is only counted."""

import pytest

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Vantage
from headrace.streams.core.decode.contract import (
    Explicit,
    Exponential,
    Kind,
    Point,
    Temporality,
)
from headrace.streams.core.mapping import apply
from headrace.streams.core.mapping.apply import Mapped, Mapper, map_points
from headrace.streams.core.mapping.model import TelemetryMapping
from headrace.streams.core.mapping.parse import load_preset, parse_mapping
from headrace.streams.core.mapping.reading import Field, TbotKind
from headrace.streams.core.mapping.templates import Origin
from telemetry_inputs import MODEL, SAMPLES, T0, explicit, mapped, point, records, text

GAUGES = """
identity: {engine: ["{host}"], model: [m], instance: ["{pod}"], rank: ["{rank}"]}
fields:
  running: {names: [running_now]}
  kv_usage: {names: [{name: kv_new}, {name: kv_old, unit: percent}]}
  ttft: {names: [{name: ttft, unit: s}, {name: ttft_ms, unit: ms}]}
  arrivals: {names: [requests_total]}
"""


def mapping(more: str = "", base: str = GAUGES) -> TelemetryMapping:
    return parse_mapping(base + more)


def one(*points: Point, more: str = "") -> Mapped:
    return map_points(points, mapping(more))


def test_a_name_that_no_field_asks_for_is_counted_and_not_silent() -> None:
    found = one(
        point("running_now", 1.0, host="a"), point("runing_now", 1.0, host="a"), point("x", 2.0), point("x", 2.0)
    )
    assert [r.field for r in found.readings] == [Field.RUNNING]
    assert found.unmatched == {"runing_now": 1, "x": 2}


def test_of_gauges_under_two_names_the_preferred_speaks_alone_wherever_it_stands() -> None:
    new, old = point("kv_new", 0.3, host="a"), point("kv_old", 40.0, host="a")
    for points in ((new, old), (old, new)):
        assert [(r.name, r.value) for r in one(*points).readings] == [("kv_new", 0.3)]
    assert [(r.name, r.value) for r in one(old).readings] == [("kv_old", 0.4)]


def test_cumulative_series_under_two_names_share_a_slot_and_keep_a_series_each() -> None:
    both = one(
        point("ttft", histogram=explicit(1, 0, 0, 0, total=0.05), host="a"),
        point("ttft_ms", histogram=Explicit((100.0, 200.0), (1, 0, 0), 1, 50.0), host="a"),
    ).readings
    assert [r.alias for r in both] == [0, 1]
    assert both[0].slot == both[1].slot
    assert both[0].series != both[1].series


def test_units_become_seconds_and_shares() -> None:
    (found,) = one(
        point("ttft_ms", histogram=Explicit((100.0, 500.0), (2, 1, 0), 3, 516.0, 50.0, 400.0), host="a")
    ).readings
    assert found.histogram == Explicit((0.1, 0.5), (2, 1, 0), 3, 0.516, 0.05, 0.4)


def test_an_exponential_histogram_in_milliseconds_gets_bounds_in_seconds() -> None:
    source = point("ttft_ms", host="a")._replace(
        kind=Kind.HISTOGRAM, histogram=Exponential(0, 1, 9, (4, 2), 7, 9_000.0, 0.0, 2_000.0)
    )
    (found,) = one(source).readings
    assert found.histogram == Explicit((0.0, 0.512, 1.024, 2.048), (1, 0, 4, 2, 0), 7, 9.0, 0.0, 2.0)


def test_an_exponential_histogram_finer_than_the_layout_is_made_as_coarse() -> None:
    source = point("ttft", host="a")._replace(
        kind=Kind.HISTOGRAM, histogram=Exponential(5, 0, -3, (1, 1, 1, 1, 1), 5, 4.0)
    )
    assert one(source).readings[0].histogram == Exponential(3, 0, -1, (3, 2), 5, 4.0)


def test_a_unit_that_contradicts_the_sources_own_is_refused_and_says_what_to_write() -> None:
    source = point("ttft", histogram=explicit(1, 0, 0, 0, total=0.05), host="a")._replace(unit="ms")
    found = one(source)
    assert found.rejects[0].detail == "ttft: its source says ms, the mapping s: write unit: ms"


@pytest.mark.parametrize(
    ("bad", "reason", "says"),
    [
        (point("ttft", 3.0, host="a"), RejectReason.INCONSISTENT, "ttft needs a histogram"),
        (
            point("running_now", host="a", histogram=explicit(1, 0, 0, 0, total=1.0)),
            RejectReason.INCONSISTENT,
            "number",
        ),
        (point("running_now", 3.0, host="a")._replace(kind=Kind.COUNTER), RejectReason.INCONSISTENT, "needs a gauge"),
        (point("requests_total", 3.0, host="a"), RejectReason.INCONSISTENT, "needs a counter"),
        (point("running_now", -3.0, host="a"), RejectReason.NEGATIVE, "at least 0"),
        (point("kv_new", 39.0, host="a"), RejectReason.OUT_OF_RANGE, "write unit: percent"),
        (point("kv_new", 3_900.0, host="a"), RejectReason.OUT_OF_RANGE, "kv_usage is 0 to 1"),
        (point("running_now", 3.0), RejectReason.BAD_IDENTIFIER, "write identity.engine"),
        (point("running_now", 3.0, host="a b"), RejectReason.BAD_IDENTIFIER, "engine is 'a b'"),
    ],
)
def test_what_does_not_fit_its_field_is_refused_with_the_reason(bad: Point, reason: RejectReason, says: str) -> None:
    found = one(bad)
    assert (found.readings, found.rejects[0].reason) == ((), reason)
    assert says in found.rejects[0].detail


def test_a_missing_value_is_a_missing_reading_whatever_its_kind() -> None:
    (found,) = one(point("ttft", host="a")).readings
    assert found.is_missing


def test_an_untyped_counter_is_cumulative() -> None:
    (found,) = one(point("requests_total", 3.0, host="a")._replace(kind=Kind.UNTYPED)).readings
    assert (found.field, found.temporality) == (Field.ARRIVALS, Temporality.CUMULATIVE)


def test_value_maps_rename_and_may_refuse_or_fold_what_they_do_not_name() -> None:
    named = "values: {engine: {'10.0.0.1:8000': engine-a}}\n"
    known, strange = point("running_now", 1.0, host="10.0.0.1:8000"), point("running_now", 1.0, host="b")
    assert [r.identity.engine for r in one(known, strange, more=named).readings] == ["engine-a", "b"]
    refused = one(known, strange, more=named + "unmapped: {engine: reject}")
    assert [r.identity.engine for r in refused.readings] == ["engine-a"]
    assert "values.engine does not name it" in refused.rejects[0].detail
    folded = one(known, strange, more=named + "unmapped: {engine: other}")
    assert [r.identity.engine for r in folded.readings] == ["engine-a", "other"]


def test_templates_are_tried_in_order_and_may_ask_the_record() -> None:
    ordered = mapping(base=GAUGES.replace('["{host}"]', '["{a}/{b}", "{@header.x-engine}", "{@key}", "{@topic}"]'))
    mapper = Mapper(ordered)

    def engine(origin: Origin, **labels: str) -> str:
        return mapper.map_points([point("running_now", 1.0, **labels)], origin).readings[0].identity.engine

    assert engine(Origin(), a="1", b="2") == "1/2"
    assert engine(Origin(headers=(("other", b"no"), ("X-Engine", b"h"))), a="1") == "h"
    assert engine(Origin(key=b"k")) == "k"
    assert engine(Origin.of(RawRecord("topic", 0, 0, 0, None, None))) == "topic"


def test_static_labels_stand_in_where_a_series_has_none_of_that_name() -> None:
    found = one(point("running_now", 1.0), point("running_now", 1.0, host="own"), more="labels: {host: static}\n")
    assert [r.identity.engine for r in found.readings] == ["static", "own"]


def test_dropped_labels_make_two_collectors_of_one_engine_one_series() -> None:
    points = [point("ttft", histogram=explicit(1, 0, 0, 0, total=0.05), host="a", collector=c) for c in "xy"]
    assert len({r.series for r in one(*points).readings}) == 2
    assert len({r.series for r in one(*points, more="drop_labels: [collector]\n").readings}) == 1


def test_where_leaves_out_and_must_be_true_or_false() -> None:
    points = [point("running_now", 1.0, host=h) for h in "ab"]
    assert [r.identity.engine for r in one(*points, more="where: labels.host == 'a'\n").readings] == ["a"]
    found = one(*points, more="where: labels.host\n")
    assert (found.readings, found.rejects[0].reason) == ((), RejectReason.INCONSISTENT)
    assert "gave 'a'; expected true or false" in found.rejects[0].detail


def test_more_series_than_an_engine_may_have_are_folded_and_the_other_engines_are_unaffected() -> None:
    flood = [point("running_now", 1.0, host="a", user=str(i)) for i in range(500)]
    found = one(*flood, point("running_now", 1.0, host="b"), more="limits: {max_series: 100}\n")
    assert found.folded == {"a": 400}
    assert [r.identity.engine for r in found.readings] == ["a"] * 100 + ["b"]


def test_what_is_remembered_of_label_sets_is_bounded_and_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "MAX_KNOWN", 10)
    mapper = Mapper(mapping())
    points = [point("running_now", 1.0, host=f"h{i % 25}") for i in range(100)]
    assert mapper.map_points(points).readings == map_points(points, mapping()).readings
    assert len(mapper.known) <= 10
    monkeypatch.setattr(apply, "MAX_KNOWN_CHARS", 30)
    mapper = Mapper(mapping())
    mapper.map_points(points)
    assert 0 < len(mapper.known) <= 5


def test_rejects_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "MAX_REJECTS", 3)
    found = one(*[point("running_now", 1.0)] * 10)
    assert [r.detail for r in found.rejects][3:] == ["and 7 more points"]


# Presets ------------------------------------------------------------------------------------------------------------


def test_vllm_v1_prefers_the_request_mean_and_keeps_old_names_as_further_aliases() -> None:
    found = mapped("otlp_json", records("otel_kafka_otlp_json"))
    first = [r for r in found.readings if r.time_ms == T0 and r.field is Field.TBOT]
    assert [(r.name.removeprefix("vllm:"), r.tbot_kind) for r in sorted(first, key=lambda r: r.alias)] == [
        ("request_time_per_output_token_seconds", TbotKind.REQUEST_MEAN),
        ("inter_token_latency_seconds", TbotKind.PER_OUTPUT),
        ("time_per_output_token_seconds", TbotKind.PER_OUTPUT),
    ]


PROM_SCRAPES = {
    "sglang": ("sglang_scrape", "engine", {Field.RUNNING: 37.0, Field.WAITING: 3.0, Field.KV_USAGE: 0.41}, 300),
    "triton": ("triton_trtllm_scrape", "engine", {Field.RUNNING: 13.0, Field.WAITING: 2.0, Field.KV_USAGE: 0.31}, 37),
    "vllm_v0": ("vllm_v0_scrape", "engine", {Field.RUNNING: 22.0, Field.WAITING: 0.0, Field.KV_USAGE: 0.305}, 120),
}


@pytest.mark.parametrize("preset", PROM_SCRAPES)
def test_presets_read_the_scrape_of_their_engine(preset: str) -> None:
    file, engine, gauges, requests = PROM_SCRAPES[preset]
    scrape = text((SAMPLES / "prom" / f"{file}.prom").read_text())
    found = mapped("prom_text", [scrape], parse_mapping(f"preset: {preset}\nlabels: {{instance: {engine}}}"))
    assert found.rejects == ()
    assert {r.field: r.value for r in found.readings if r.field in gauges and r.alias == 0} == gauges
    ttft = next(r for r in found.readings if r.field is Field.TTFT)
    assert ttft.histogram is not None
    assert ttft.histogram.observations == requests
    mean = (ttft.histogram.total or 0.0) / requests
    assert 0.05 < mean < 0.5, "seconds, whatever the source's unit"


def test_tensor_parallel_ranks_repeat_one_scheduler_and_data_parallel_ranks_are_their_own() -> None:
    points = [
        point("sglang:num_running_reqs", 5.0, instance="i", model_name="m", tp_rank=tp, dp_rank=dp)
        for tp in "01"
        for dp in "01"
    ]
    found = map_points(points, load_preset("sglang")).readings
    assert [(r.identity.rank, r.value) for r in found] == [("0", 5.0), ("1", 5.0)]


def test_ray_serve_knows_its_prefix_with_a_colon_and_with_an_underscore() -> None:
    points = [
        point(f"ray_vllm{sep}num_requests_running", 5.0, instance=f"i{sep}", model_name="m") for sep in (":", "_")
    ]
    assert [r.value for r in map_points(points, load_preset("ray_serve")).readings] == [5.0, 5.0]


def test_a_tgi_series_names_no_model_so_it_is_refused_until_the_mapping_says_which() -> None:
    source = point("tgi_queue_size", 2.0, instance="i")
    assert "write identity.model" in map_points([source], load_preset("tgi")).rejects[0].detail
    told = parse_mapping("preset: tgi\nlabels: {model: llama}")
    assert map_points([source], told).readings[0].identity.model == "llama"


def test_trtllm_engine_type_undefined_is_no_part_of_the_engine() -> None:
    source = point("trtllm_kv_cache_utilization", 0.5, instance="i", model_name="m", engine_type="undefined")
    assert map_points([source], load_preset("trtllm")).readings[0].identity.engine == "i"


def test_dynamo_is_seen_from_the_gateway() -> None:
    histogram = explicit(1, 0, 0, 0, total=0.05)
    source = point("dynamo_frontend_time_to_first_token_seconds", histogram=histogram, model="m", instance="i")
    (found,) = map_points([source], load_preset("dynamo")).readings
    assert (found.vantage, found.identity.engine) == (Vantage.GATEWAY, "i")


def test_genai_metrics_name_the_server_and_the_model_that_answered() -> None:
    found = mapped("otlp_proto", records("otel_kafka_otlp_proto"), load_preset("otel_genai"))
    assert {(r.identity.engine, r.identity.model, r.field.value) for r in found.readings} == {
        ("10.0.3.23:8000", MODEL, "ttft"),
        ("10.0.3.23:8000", MODEL, "tbot"),
        ("10.0.3.23:8000", MODEL, "e2e"),
    }
    assert {r.temporality for r in found.readings} == {Temporality.DELTA}
