"""What Telegraf does that is peculiar, in JSON and in line protocol: one sentence, one trap."""

import pytest

from headrace.schemas.dead_letters import RejectReason
from headrace.streams.core.decode.contract import (
    DecodeOptions,
    Explicit,
    Kind,
)
from headrace.streams.core.decode.edge import decode
from telemetry_inputs import T0, read, reasons, text


def test_telegraf_drops_nan_so_no_fields_is_missing_and_not_zero() -> None:
    (point,) = read("telegraf_json", '{"name":"g","tags":{},"fields":{},"timestamp":1787400000}').points
    assert point.is_missing


def test_telegraf_json_time_is_in_seconds_and_other_units_are_told_by_magnitude() -> None:
    stamps = (1787400000, 1787400000000, 1787400000000000, 1787400000000000000)
    body = '{"name":"g","tags":{},"fields":{"gauge":1},"timestamp":%d}'
    assert [read("telegraf_json", body % stamp).points[0].time_ms for stamp in stamps] == [T0] * 4
    assert read("telegraf_json", '{"name":"g","fields":{"gauge":1}}').points[0].time_ms == T0


def test_telegraf_batches_are_metrics_in_a_list() -> None:
    one = '{"name":"g","tags":{},"fields":{"gauge":1},"timestamp":1787400000}'
    found = read("telegraf_json", f'{{"metrics":[{one},{one},5]}}')
    assert ([p.value for p in found.points], reasons(found)) == ([1, 1], [RejectReason.MALFORMED])
    assert reasons(read("telegraf_json", "[]")) == [RejectReason.MALFORMED]
    assert reasons(read("telegraf_json", "{")) == [RejectReason.MALFORMED]


def test_telegraf_url_gives_the_instance_as_prometheus_would_without_a_password() -> None:
    body = '{"name":"g","tags":{"url":"http://u:p@10.0.3.23:8000/metrics"},"fields":{"gauge":1}}'
    assert dict(read("telegraf_json", body).points[0].labels)["instance"] == "10.0.3.23:8000"
    for tags in ('{"url":"file"}', '{"url":"http://a:1/m","instance":"mine"}'):
        found = dict(read("telegraf_json", f'{{"name":"g","tags":{tags},"fields":{{"gauge":1}}}}').points[0].labels)
        assert found.get("instance") in (None, "mine")


def test_telegraf_tags_that_are_numbers_or_booleans_are_labels_and_null_is_none() -> None:
    body = '{"name":"g","tags":{"a":1,"b":true,"c":null,"d":false},"fields":{"value":1}}'
    (point,) = read("telegraf_json", body).points
    assert point.labels == (("a", "1"), ("b", "true"), ("d", "false"))
    assert point.kind is Kind.UNTYPED


def test_telegraf_first_shape_of_a_summary_has_quantiles_and_no_infinity() -> None:
    (point,) = read("telegraf_json", '{"name":"s","fields":{"count":4,"sum":2.0,"0.5":0.1}}').points
    assert point.histogram == Explicit((), (4,), 4, 2.0)


def test_telegraf_second_shape_is_told_by_its_fields_even_under_another_name() -> None:
    found = read("telegraf_json", '{"name":"renamed","fields":{"vllm:x":3,"text":"no"},"tags":{}}')
    assert [(p.name, p.value) for p in found.points] == [("vllm:x", 3.0)]


def test_telegraf_skips_what_is_not_wanted_in_both_shapes() -> None:
    for body in ('{"name":"g","fields":{"gauge":1}}', '{"name":"prometheus","fields":{"g":1}}'):
        assert decode(text(body), DecodeOptions("telegraf_json", wanted=frozenset())).skipped == {"g": 1}


def test_influx_time_is_in_nanoseconds_and_absent_it_is_the_messages_own() -> None:
    assert read("influx", "g,a=b gauge=1 1787400000000000000").points[0].time_ms == T0
    assert read("influx", "g,a=b gauge=1").points[0].time_ms == T0
    assert reasons(read("influx", "g,a=b gauge=1 yesterday")) == [RejectReason.MALFORMED]


def test_influx_escapes_stand_for_themselves() -> None:
    (point,) = read("influx", r"my\ g,a\=x=b\,c,d=e\ f gauge=1i").points
    assert (point.name, point.labels) == ("my g", (("a=x", "b,c"), ("d", "e f")))


def test_influx_fields_may_be_floats_integers_texts_and_booleans_and_the_last_two_are_no_measurement() -> None:
    found = read("influx", 'prometheus a=1.5,b=2i,c=3u,d="te\\"xt, x",e=true,f=F 1787400000000000000')
    assert {p.name: p.value for p in found.points} == {"a": 1.5, "b": 2.0, "c": 3.0}


@pytest.mark.parametrize("line", ["g", "g gauge", "g gauge=", "g gauge=one", ",a=b gauge=1", "g,a gauge=1", "g,a= x=1"])
def test_influx_lines_that_are_none_are_rejected_and_the_others_go_on(line: str) -> None:
    found = read("influx", f"# comment\n{line}\n\ng gauge=1\n")
    assert (len(found.points), reasons(found)) == (1, [RejectReason.MALFORMED])
