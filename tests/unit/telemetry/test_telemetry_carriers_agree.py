"""The same scrapes of one engine in every carrier: the same buckets, readings and reference differences."""

import json

import pytest

from headrace.streams.core.decode.contract import Explicit
from headrace.streams.core.differencing.spread import quantile
from headrace.streams.core.mapping.reading import GAUGES, Field
from telemetry_inputs import (
    ENGINE,
    MODEL,
    SAMPLES,
    T0,
    VLLM_FILES,
    Folded,
    histogram_points,
    mapped,
    records,
    scrapes,
    vllm_mapping,
)

TTFT = "vllm:time_to_first_token_seconds"
EXPECTED = json.loads((SAMPLES / "expected_ttft_deltas.json").read_text())["intervals"]
DISTRIBUTIONS = (
    TTFT,
    "vllm:request_time_per_output_token_seconds",
    "vllm:e2e_request_latency_seconds",
    "vllm:request_queue_time_seconds",
)


def of_text(name: str) -> dict[int, Explicit]:
    return {p.time_ms: p.histogram for p in histogram_points("prom_text", scrapes(), name) if p.histogram}


@pytest.mark.parametrize(
    ("file", "carrier", "name"),
    [
        (file, carrier, name)
        for file, carrier in VLLM_FILES.items()
        for name in DISTRIBUTIONS
        if name == TTFT or file != "prometheus_kafka_adapter_json"  # whose sample holds no other distribution
    ],
)
def test_every_carrier_gives_the_buckets_of_the_scrape_itself(file: str, carrier: str, name: str) -> None:
    found = histogram_points(carrier, records(file), name)
    reference = of_text(name)
    assert len(found) >= 1
    assert [p.histogram for p in found] == [reference[p.time_ms] for p in found]


@pytest.mark.parametrize(("file", "carrier"), [*VLLM_FILES.items(), ("scrapes", "prom_text")])
def test_every_carrier_gives_the_reference_differences(file: str, carrier: str) -> None:
    found = mapped(carrier, scrapes(), vllm_mapping()) if file == "scrapes" else mapped(carrier, records(file))
    deltas = Folded().take(found.readings).deltas()
    times = sorted({r.time_ms for r in found.readings if r.field is Field.TTFT})
    assert len(deltas) == len(times) - 1
    for delta, expected in zip(deltas, EXPECTED, strict=False):
        assert (delta.from_ms, delta.to_ms) == (expected["from_ms"], expected["to_ms"])
        assert bool(delta.reset) is expected["reset"]
        assert isinstance(delta.histogram, Explicit)
        assert delta.histogram.observations == expected["count"]
        assert delta.histogram.total == pytest.approx(expected["sum_s"], abs=1e-9)
        assert delta.histogram.total / delta.histogram.observations == pytest.approx(expected["mean_s"], abs=1e-6)
        assert quantile(0.5, delta.histogram) == pytest.approx(expected["p50_s"])
        assert quantile(0.95, delta.histogram) == pytest.approx(expected["p95_s"])


def test_the_four_scrapes_give_all_reference_intervals() -> None:
    found = mapped("prom_text", scrapes(), vllm_mapping())
    assert len(Folded().take(found.readings).deltas()) == len(EXPECTED) == 3


@pytest.mark.parametrize(("file", "carrier"), VLLM_FILES.items())
def test_every_carrier_names_the_same_engine_and_model(file: str, carrier: str) -> None:
    found = mapped(carrier, records(file))
    assert {(r.identity.engine, r.identity.model, r.identity.rank) for r in found.readings} == {(ENGINE, MODEL, "0")}
    assert found.rejects == ()
    assert min(r.time_ms for r in found.readings) == T0


@pytest.mark.parametrize(("file", "carrier"), VLLM_FILES.items())
def test_every_carrier_gives_the_gauges_of_the_first_scrape(file: str, carrier: str) -> None:
    found = mapped(carrier, records(file))
    first = {r.field: r.value for r in found.readings if r.time_ms == T0 and r.field in GAUGES and r.alias == 0}
    assert first == {Field.RUNNING: 28.0, Field.WAITING: 0.0, Field.KV_USAGE: 0.39}


def test_the_records_of_a_scrape_may_come_in_any_order_where_a_histogram_is_many_records() -> None:
    forth = histogram_points("prom_adapter", records("prometheus_kafka_adapter_json"), TTFT)
    back = histogram_points("prom_adapter", reversed(records("prometheus_kafka_adapter_json")), TTFT)
    assert [p.histogram for p in forth] == [p.histogram for p in back]
    assert len(forth) == 2
