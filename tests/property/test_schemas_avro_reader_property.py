"""The made readers against fastavro: the same records from the same bytes, and no record where fastavro has none."""

import dataclasses
import io
import typing
from enum import StrEnum
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.avro_reader import reader_of
from headrace.schemas.avro_schemas import schema
from headrace.schemas.avro_writer import long_bytes, writer_of
from headrace.schemas.codec import decode, encode, encode_body
from headrace.schemas.plain import from_plain, item_type, to_plain
from headrace.schemas.records import RECORD_TYPES
from headrace.schemas.signals import EngineSignals

INT32 = {"replicas_desired", "replicas_ready", "replicas_reporting"}
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.one_of(st.integers(0, 300), st.integers(-(2**31), 2**31 - 1)),
    float: st.floats(allow_nan=False),
    str: st.text(max_size=8),
    bytes: st.binary(max_size=12),
    bool: st.booleans(),
}


def records(kind: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a record type
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{field.name: values(hints[field.name]) for field in dataclasses.fields(kind)})


def values(hint: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a type hint
    inner, many = item_type(hint)
    if dataclasses.is_dataclass(inner):
        one = records(inner)
    elif issubclass(inner, StrEnum):
        one = st.sampled_from(list(inner))
    else:
        one = _PLAIN[inner]
    found: st.SearchStrategy[Any] = st.lists(one, max_size=3).map(tuple) if many else one
    return st.one_of(st.none(), found) if type(None) in typing.get_args(hint) else found


def by_fastavro(kind: Any, body: bytes) -> tuple[Any, int] | None:  # noqa: ANN401 - a record type
    source = io.BytesIO(body)
    try:
        plain = fastavro.schemaless_reader(source, schema(kind.__name__), None)
        return from_plain(kind, typing.cast("dict[str, Any]", plain)), source.tell()
    except Exception:  # noqa: BLE001 - hostile bytes
        return None


def by_made(kind: Any, body: bytes) -> tuple[Any, int] | None:  # noqa: ANN401 - a record type
    try:
        return reader_of(kind)(body, 0)
    except Exception:  # noqa: BLE001 - hostile bytes
        return None


@pytest.mark.parametrize("kind", RECORD_TYPES)
@given(data=st.data())
def test_what_was_written_is_read_back_to_the_end(kind: Any, data: st.DataObject) -> None:  # noqa: ANN401 - a record type
    record = data.draw(records(kind))
    assert decode(kind, encode(record)) == record
    body = encode_body(record)
    assert by_made(kind, body) == by_fastavro(kind, body) == (record, len(body))


@pytest.mark.parametrize("kind", RECORD_TYPES)
@given(data=st.data())
def test_what_is_written_is_what_fastavro_writes(kind: Any, data: st.DataObject) -> None:  # noqa: ANN401 - a record type
    record, out = data.draw(records(kind)), io.BytesIO()
    fastavro.schemaless_writer(out, schema(kind.__name__), to_plain(record))
    assert writer_of(kind)(record) == out.getvalue()


@pytest.mark.parametrize("value", [1 << 62, (1 << 63) - 1, -(1 << 63), 63, 64, -64, -65, 8191, 8192, 1 << 20, -1])
def test_a_number_is_written_as_fastavro_writes_it(value: int) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    assert long_bytes(value) == out.getvalue()


def test_a_number_of_more_than_64_bits_is_refused() -> None:
    for value in (1 << 63, -(1 << 63) - 1):
        with pytest.raises(OverflowError, match="more than 64 bits"):
            long_bytes(value)


@pytest.mark.parametrize("kind", RECORD_TYPES)
@given(data=st.data())
def test_hostile_bytes_give_what_fastavro_gives_or_nothing(kind: Any, data: st.DataObject) -> None:  # noqa: ANN401 - a record type
    body = bytearray(encode_body(data.draw(records(kind))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body)))
        match data.draw(st.sampled_from(("set", "cut", "insert"))):
            case "set" if at < len(body):
                body[at] = data.draw(st.integers(0, 255))
            case "cut":
                del body[at : at + data.draw(st.integers(1, 6))]
            case _:
                body[at:at] = data.draw(st.binary(max_size=6))
    found = by_made(kind, bytes(body))
    if found is not None:
        assert repr(found) == repr(by_fastavro(kind, bytes(body))), "nan is no equal of itself"


def test_an_array_in_several_blocks_and_one_with_its_size_are_read() -> None:
    def zigzag(value: int) -> bytes:
        value, out = value << 1 ^ value >> 63, b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    head = b"\x02e\x02s\x00" + zigzag(1_000) + zigzag(2_000)
    distribution = b"\x02m\x02" + zigzag(3) + bytes(8) + b"\x00\x00" + zigzag(0) + zigzag(-2)
    counts = zigzag(1) + zigzag(1) + zigzag(-2) + zigzag(2) + zigzag(0) + zigzag(2) + b"\x00"
    body = (
        head + zigzag(-1) + zigzag(len(distribution + counts)) + distribution + counts + b"\x00" + b"\x00\x00\x00\x00"
    )
    record, end = reader_of(EngineSignals)(body, 0)
    assert end == len(body)
    assert record.distributions[0].bucket_counts == (1, 0, 2)
    assert (record, end) == by_fastavro(EngineSignals, body)
