"""A fetch whose records have header names that are not UTF-8 is read to its end, and nothing of it twice."""

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition

from headrace.streams.unreadable_headers import ForgivingPartition, KeptRecords

TP = TopicPartition("signals", 0)
NO_CRC = False
READ_COMMITTED = 1
NOT_UTF_8 = "~"
"""Stands for a name of the one byte FF, which no builder writes."""


def batch(base: int, names: list[str], producer: int = -1) -> bytes:
    builder: Any = DefaultRecordBatchBuilder(2, 0, int(producer >= 0), producer, 0, 0, 1 << 20)
    for at, name in enumerate(names):
        headers = [(name, b"x"), ("null", None)]
        builder.append(at, 5000 + at, None if at == 0 else b"k", b"v%d" % (base + at), headers)
    return base.to_bytes(8, "big") + bytes(builder.build())[8:].replace(b"~", b"\xff")


def read(fetched: bytes, start: int = 0, aborted: list[tuple[int, int]] | None = None) -> list[Any]:
    return list(ForgivingPartition(TP, KeptRecords(fetched), aborted, start, None, None, NO_CRC, READ_COMMITTED))


def test_records_with_unreadable_names_have_no_headers_and_the_others_have_theirs() -> None:
    records = read(batch(0, ["a", NOT_UTF_8, "c"]) + batch(3, [NOT_UTF_8, "e"]))
    assert [(r.offset, r.timestamp, r.key, r.value) for r in records] == [
        (0, 5000, None, b"v0"),
        (1, 5001, b"k", b"v1"),
        (2, 5002, b"k", b"v2"),
        (3, 5000, None, b"v3"),
        (4, 5001, b"k", b"v4"),
    ]
    assert [bool(r.headers) for r in records] == [True, False, True, False, True]
    assert records[2].headers == (("c", b"x"), ("null", None))


def test_what_is_read_is_the_same_with_and_without_forgiveness_where_all_names_are_readable() -> None:
    fetched = batch(0, ["a", "b"]) + batch(2, ["c"])
    forgiving = KeptRecords(fetched)
    forgiving.forgiving = True
    again: Any = ForgivingPartition(TP, forgiving, None, 0, None, None, NO_CRC, READ_COMMITTED)
    plain = read(fetched)
    assert list(again) == plain
    assert [r.headers[0] for r in plain] == [("a", b"x"), ("b", b"x"), ("c", b"x")]


def test_an_aborted_transaction_stays_aborted_when_the_fetch_is_begun_anew() -> None:
    fetched = batch(0, ["a"], producer=9) + batch(1, [NOT_UTF_8, "b"])
    assert [r.offset for r in read(fetched, aborted=[(9, 0)])] == [1, 2]


@pytest.mark.parametrize("start", [1, 2])
def test_a_fetch_from_the_middle_of_a_batch_gives_nothing_before_it(start: int) -> None:
    assert [r.offset for r in read(batch(0, ["a", NOT_UTF_8, "c"]), start)] == list(range(start, 3))
