"""Hostile messages: whatever bytes come, the outcome is points or rejects with a reason, and nothing raises."""

import json
import random
import re
from collections.abc import Callable

import msgpack
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.check_signals import check_signal
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import EngineSignals, Vantage
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Explicit
from headrace.streams.core.decode.edge import carriers, decode
from headrace.streams.core.decode.families import Pending, assemble, families_in, finish
from headrace.streams.core.differencing.book import SeriesBook
from headrace.streams.core.differencing.level import Delta
from headrace.streams.core.differencing.spread import distribution
from headrace.streams.core.mapping.apply import Mapper
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.mapping.reading import DURATIONS
from telemetry_inputs import SAMPLES, T0, VLLM_FILES, records, scrapes, text

MESSAGES = 400
"""Mutated messages per carrier here; 100,000 each were run once by hand, with the same mutations."""

HUGE = (b"1e400", b"-1e400", b"9" * 40, b"NaN", b"-1", b"18446744073709551616", b"null", b'""', b"[]", b'"\\ud800"')
DEEP = (b"[", b"{", b'{"a":', b"\x91", b'"', b",", b"=", b"\\")
VALUES = (
    None,
    True,
    -1,
    2**63,
    1e308,
    5e-324,
    "",
    "NaN",
    "+Inf",
    [],
    {},
    "x" * 3000,
    [[[[]]]],
    {"a": {"b": {}}},
    "9" * 25,
)
TREES: dict[str, tuple[Callable[[bytes], object], Callable[[object], bytes]]] = {
    **dict.fromkeys(
        ("otlp_json", "json", "telegraf_json", "vector_json", "prom_adapter"), (orjson.loads, orjson.dumps)
    ),
    "msgpack": (msgpack.unpackb, msgpack.packb),
}


def seeds(carrier: str) -> list[bytes]:
    found = [r.value for name, c in VLLM_FILES.items() if c == carrier for r in records(name)[-40:]]
    if carrier == "prom_text":
        found = [(r.value or b"")[:4000] for r in scrapes()]
    if carrier == "json":
        found = [r.value for r in records("custom_request_json")]
    if carrier == "msgpack":
        found = [msgpack.packb(json.loads((SAMPLES / "dynamo_forward_pass_metrics.json").read_text()))]
    if carrier == "avro":
        found = [r.value for r in records("avro_framings")]
        found.append(encode(EngineSignals("e", "s", Vantage.ENGINE, 1, 2, (), None)))
    return [value for value in found if value]


def mutated(rng: random.Random, seed: bytes) -> bytes:
    value = bytearray(seed)
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(1, 200))
    for _ in range(rng.randrange(1, 6)):
        i, numbers = rng.randrange(len(value) + 1), list(re.finditer(rb"\d+(\.\d+)?", value[:3000]))
        match rng.randrange(6):
            case 0:
                value[i : i + 1] = rng.randbytes(1)
            case 1:
                del value[i : i + rng.randrange(1, 40)]
            case 2:
                value[i:i] = value[i : i + rng.randrange(100)]
            case 3 if numbers:
                number = rng.choice(numbers)
                value[number.start() : number.end()] = rng.choice(HUGE)
            case 4:
                value[i:i] = rng.choice(DEEP) * rng.choice([1, 3, 2000])
            case _:
                value = value[:i]
    return bytes(value)


def grown(rng: random.Random, node: object, rate: float) -> object:
    """Give a tree with some of its nodes replaced by values that nobody expects there."""
    if rng.random() < rate:
        return rng.choice(VALUES)
    if isinstance(node, dict):
        return {key: grown(rng, value, rate) for key, value in node.items() if rng.random() > rate}
    return [grown(rng, value, rate) for value in node] if isinstance(node, list) else node


def through(decoded: Decoded, mapper: Mapper, book: SeriesBook) -> None:
    """Take what was decoded all the way: what comes out must be a sound signal."""
    assert all(each.detail and each.reason for each in decoded.rejects)
    pending = Pending()
    points = assemble(pending, decoded.points, families_in(decoded.points)).points + finish(pending).points
    for reading in mapper.map_points(points).readings:
        outcome = book.take(reading)
        if isinstance(outcome, Delta) and outcome.histogram is not None and reading.field in DURATIONS:
            found = distribution(reading.identity.model, DURATIONS[reading.field], outcome.histogram)
            signals = EngineSignals("e", "s", reading.vantage, 0, 1, (found,), None)
            rejected = check_signal(signals, 1)
            # A source may claim impossible seconds: the check says so, and nothing else may be wrong.
            assert rejected is None or "at most" in rejected.detail or "at least 0" in rejected.detail


@pytest.mark.parametrize("carrier", carriers())
def test_mutated_messages_never_raise_and_what_passes_is_sound(carrier: str) -> None:
    rng, found = random.Random(20260822), seeds(carrier)
    mapper, book, options = Mapper(load_preset("vllm_v1")), SeriesBook(), DecodeOptions(carrier)
    rejected = 0
    for i in range(MESSAGES):
        value = mutated(rng, rng.choice(found))
        if carrier in TREES and i % 2:
            load, dump = TREES[carrier]
            value = dump(grown(rng, load(rng.choice(found)), rng.choice([0.003, 0.02, 0.1])))
        decoded = decode(text(value), options)
        rejected += bool(decoded.rejects)
        through(decoded, mapper, book)
    assert rejected > MESSAGES / 10
    assert SeriesBook.read(book.pack()).pack() == book.pack()


@settings(max_examples=150)
@given(st.sampled_from(carriers()), st.binary(max_size=300), st.integers(-(2**62), 2**62))
def test_any_bytes_at_any_time_give_an_outcome(carrier: str, value: bytes, timestamp_ms: int) -> None:
    decoded = decode(RawRecord("t", 0, 0, timestamp_ms, None, value), DecodeOptions(carrier))
    assert all(each.detail for each in decoded.rejects)


@pytest.mark.parametrize("carrier", carriers())
@pytest.mark.parametrize(
    "value",
    [
        b"[" * 5_000_000,
        b'{"a":' * 1_000_000,
        b"\x91" * 5_000_000,
        b"\x0a\x00" * 2_500_000,
        b"a" * 5_000_000,
        b"a 1\n" * 1_250_000,
    ],
    ids=["arrays", "objects", "msgpack arrays", "empty protobuf messages", "one word", "lines"],
)
def test_five_megabytes_of_anything_are_an_outcome(carrier: str, value: bytes) -> None:
    decoded = decode(RawRecord("t", 0, 0, T0, None, value), DecodeOptions(carrier))
    assert len(decoded.points) <= 100_000
    assert decoded.rejects or not decoded.points


numbers = st.one_of(st.integers(-5, 2**63), st.floats(), st.sampled_from(["NaN", "+Inf", "1e999", "", "7"]), st.none())


@given(st.lists(st.tuples(numbers, numbers), max_size=8), numbers, numbers)
def test_a_histogram_that_passes_adds_up(pairs: list[tuple[object, object]], count: object, total: object) -> None:
    buckets = [{"upper_limit": limit, "count": n} for limit, n in pairs]
    body = {"name": "m", "kind": "absolute", "aggregated_histogram": {"buckets": buckets, "count": count, "sum": total}}
    value = json.dumps(body).encode()
    for point in decode(text(value), DecodeOptions("vector_json")).points:
        assert isinstance(point.histogram, Explicit)
        assert sum(point.histogram.counts) == point.histogram.observations
        assert list(point.histogram.bounds) == sorted(set(point.histogram.bounds))
