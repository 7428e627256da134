"""What exposition text and the Kafka adapter do that is peculiar: one sentence, one trap."""

import json

from headrace.schemas.dead_letters import RejectReason
from headrace.streams.core.decode.contract import (
    DecodeOptions,
    Explicit,
    Kind,
)
from headrace.streams.core.decode.edge import decode
from telemetry_inputs import T0, read, reasons, text


def test_text_nan_is_missing_and_a_count_that_is_no_number_of_things_is_rejected() -> None:
    found = read("prom_text", "# TYPE g gauge\ng NaN\ng2 nan\n# TYPE h histogram\nh_count 1.5\n")
    assert [(p.name, p.value, p.histogram) for p in found.points] == [(n, None, None) for n in ("g", "g2", "h")]
    assert reasons(found) == [RejectReason.INCONSISTENT]


def test_text_created_tells_since_when_counters_and_histograms_count_wherever_it_stands() -> None:
    found = read(
        "prom_text",
        "# TYPE c_created gauge\nc_created 1787396400.0\n# TYPE c counter\nc_total 4\n"
        '# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\nh_created 1787396401\n',
    )
    assert {p.name: p.start_ms for p in found.points} == {"c_total": 1787396400000, "h": 1787396401000}


def test_text_created_of_a_total_that_is_declared_with_its_suffix_is_found() -> None:
    found = read("prom_text", "# TYPE c_total counter\nc_total 4\n# TYPE c_created gauge\nc_created 1787396400.0\n")
    assert [(p.name, p.start_ms) for p in found.points if p.kind is Kind.COUNTER] == [("c_total", 1787396400000)]


def test_text_without_types_still_has_its_histograms() -> None:
    found = read("prom_text", 'h_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\nx_count 9\n')
    assert {p.name: p.kind for p in found.points} == {"h": Kind.HISTOGRAM, "x_count": Kind.UNTYPED}


def test_text_of_a_federated_scrape_declares_all_untyped_and_still_has_its_histograms() -> None:
    lines = ['h_bucket{le="+Inf"} 2', "h_count 2", "h_sum 3"]
    found = read("prom_text", "".join(f"# TYPE {line.split('{')[0].split()[0]} untyped\n{line}\n" for line in lines))
    assert [p.histogram for p in found.points] == [Explicit((), (2,), 2, 3.0)]


def test_text_of_an_idle_histogram_whose_sum_is_nan_says_zero_traffic() -> None:
    found = read("prom_text", '# TYPE h histogram\nh_bucket{le="+Inf"} 0\nh_sum NaN\nh_count 0\n')
    assert [p.histogram for p in found.points] == [Explicit((), (0,), 0, 0.0)]


def test_text_labels_may_hold_braces_quotes_commas_and_escapes() -> None:
    found = read("prom_text", 'g{a="x}y",b="q\\"q",c="n\\nn",d="b\\\\",e="a,b=c"} 1 1787400000500 # {trace="1"} 2\n')
    (point,) = found.points
    assert point.labels == (("a", "x}y"), ("b", 'q"q'), ("c", "n\nn"), ("d", "b\\"), ("e", "a,b=c"))
    assert point.time_ms == 1787400000500


def test_text_summary_has_a_count_and_a_sum_and_its_quantiles_are_not_read() -> None:
    found = read("prom_text", '# TYPE s summary\ns{quantile="0.5"} NaN\ns_sum 0\ns_count 0\n')
    assert [p.histogram for p in found.points] == [Explicit((), (0,), 0, 0.0)]


def test_text_summary_without_a_count_is_missing() -> None:
    assert read("prom_text", '# TYPE s summary\ns{quantile="0.5"} NaN\n').points[0].is_missing


def test_text_bad_lines_are_rejected_one_by_one() -> None:
    found = read("prom_text", '# HELP x y\ng{a="1} 2\ng{=} 1\ng one\ng 1\n')
    assert [p.value for p in found.points] == [1.0]
    assert len(found.rejects) == 3


def test_text_that_is_no_utf8_is_malformed() -> None:
    assert reasons(read("prom_text", b"\xff\xfe")) == [RejectReason.MALFORMED]
    assert reasons(read("influx", b"\xff\xfe")) == [RejectReason.MALFORMED]


def test_text_a_bucket_that_falls_with_rising_bounds_is_rejected() -> None:
    found = read(
        "prom_text", '# TYPE h histogram\nh_bucket{le="1"} 5\nh_bucket{le="2"} 4\nh_bucket{le="+Inf"} 5\nh_sum 3\n'
    )
    assert (found.points, reasons(found)) == ((), [RejectReason.INCONSISTENT])


def test_text_a_histogram_without_any_count_is_rejected_and_one_without_anything_missing() -> None:
    assert reasons(read("prom_text", '# TYPE h histogram\nh_bucket{le="1"} 5\n')) == [RejectReason.INCONSISTENT]
    assert read("prom_text", "# TYPE h histogram\nh_sum NaN\n").points[0].is_missing


def test_text_rejects_are_told_apart_up_to_a_bound_and_counted_beyond() -> None:
    found = read("prom_text", "bad line here\n" * 150)
    assert len(found.rejects) == 101
    assert found.rejects[-1].detail == "and 50 more parts of this message"


def test_text_skips_what_is_not_wanted() -> None:
    scrape = 'a 1\n# TYPE h histogram\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\n'
    found = decode(text(scrape), DecodeOptions("prom_text", wanted=frozenset(["h"])))
    assert ([p.name for p in found.points], found.skipped) == (["h"], {"a": 1})
    other = decode(text(scrape), DecodeOptions("prom_text", wanted=frozenset(["a"])))
    assert ([p.name for p in other.points], other.skipped) == (["a"], {"h": 1})


def sample(value: object, name: str = "g", **more: object) -> str:
    return json.dumps({"name": name, "labels": {"__name__": name, "a": "b"}, "value": value, **more})


def test_adapter_values_are_texts_nan_is_missing_and_infinity_is_rejected() -> None:
    stamp = "2026-08-22T12:00:00Z"
    assert read("prom_adapter", sample("28", timestamp=stamp)).points[0].value == 28.0
    assert read("prom_adapter", sample("NaN", timestamp=stamp)).points[0].is_missing
    assert reasons(read("prom_adapter", sample("+Inf", timestamp=stamp))) == [RejectReason.NOT_FINITE]


def test_adapter_time_is_rfc3339_or_a_number_or_the_messages_own() -> None:
    found = [
        read("prom_adapter", sample("1", **more)).points[0].time_ms
        for more in ({"timestamp": "2026-08-22T12:00:00Z"}, {"timestamp": 1787400000}, {"timestamp": "1787400000"}, {})
    ]
    assert found == [T0] * 4
    assert reasons(read("prom_adapter", sample("1", timestamp="yesterday"))) == [RejectReason.MALFORMED]


def test_adapter_name_is_no_label_and_an_array_holds_many_samples() -> None:
    found = read("prom_adapter", f"[{sample('1')}, {sample('2')}, 3]")
    assert [p.labels for p in found.points] == [(("a", "b"),)] * 2
    assert reasons(found) == [RejectReason.MALFORMED]
    assert reasons(read("prom_adapter", "nothing")) == [RejectReason.MALFORMED]


def test_adapter_and_telegraf_give_the_samples_of_a_wanted_histogram() -> None:
    options = DecodeOptions("prom_adapter", wanted=frozenset(["h"]))
    assert [p.name for p in decode(text(sample("1", "h_bucket")), options).points] == ["h_bucket"]
    assert decode(text(sample("1", "k_bucket")), options).skipped == {"k_bucket": 1}
