"""What holds for every carrier: found by name, bounded, never raising."""

import pytest

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import (
    DecodeOptions,
)
from headrace.streams.core.decode.edge import carriers, decode, decoder
from telemetry_inputs import T0, read, reasons, text


def test_each_file_of_the_folder_is_a_carrier_or_known_to_be_none() -> None:
    assert carriers() == (
        "avro",
        "influx",
        "json",
        "msgpack",
        "otlp_json",
        "otlp_proto",
        "prom_adapter",
        "prom_text",
        "telegraf_json",
        "vector_json",
    )
    assert all(callable(decoder(name)) for name in carriers())


def test_a_carrier_that_does_not_exist_is_a_mistake_of_configuration() -> None:
    with pytest.raises(InvalidInputError, match="carrier is 'otlp'; there are avro, influx"):
        decode(text("x"), DecodeOptions("otlp"))


@pytest.mark.parametrize("carrier", carriers())
def test_no_carrier_takes_a_tombstone_an_empty_or_a_too_large_value(carrier: str) -> None:
    options = DecodeOptions(carrier, max_bytes=10)
    assert reasons(decode(RawRecord("t", 0, 0, T0, None, None), options)) == [RejectReason.MALFORMED]
    assert reasons(decode(text(b""), options)) == [RejectReason.MALFORMED]
    assert reasons(decode(text(b"x" * 11), options)) == [RejectReason.TOO_LARGE]


def test_a_series_with_too_many_or_too_long_labels_is_rejected() -> None:
    many = ",".join(f'l{i}="x"' for i in range(200))
    assert reasons(read("prom_text", f"g{{{many}}} 1")) == [RejectReason.TOO_LARGE]
    assert reasons(read("prom_text", f'g{{a="{"x" * 2000}"}} 1')) == [RejectReason.TOO_LARGE]
    wide = ",".join(f'l{i}="{"x" * 1000}"' for i in range(20))
    assert reasons(read("prom_text", f"g{{{wide}}} 1")) == [RejectReason.TOO_LARGE]


def test_a_histogram_with_too_many_bounds_is_rejected() -> None:
    lines = "".join(f'h_bucket{{le="{i}"}} 1\n' for i in range(600))
    assert reasons(read("prom_text", f'# TYPE h histogram\n{lines}h_bucket{{le="+Inf"}} 1\nh_sum 1\n')) == [
        RejectReason.OUT_OF_RANGE
    ]


@pytest.mark.parametrize("stamp", ["-1", "1e30", "NaN", "9999999999999999999999999"])
def test_an_instant_that_cannot_be_is_rejected(stamp: str) -> None:
    found = read("telegraf_json", f'{{"name":"g","fields":{{"gauge":1}},"timestamp":"{stamp}"}}')
    assert reasons(found) == [RejectReason.OUT_OF_RANGE]
