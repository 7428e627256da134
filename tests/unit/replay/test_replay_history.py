"""Reading history: one order whatever comes first, each offset once, and every hole told."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.replay.core.continuity import Continuity
from headrace.replay.core.history import HistoryError, Span
from headrace.replay.core.merge import merged
from headrace.replay.sources.bounds import Base, Bounds
from headrace.replay.sources.kafka_range import OFFSET_HEADER, TIMESTAMP_HEADER, restored
from headrace.schemas.raw import RawRecord


def record(offset: int, at_ms: int = 0, partition: int = 0, topic: str = "t", key: bytes = b"k") -> RawRecord:
    return RawRecord(topic, partition, offset, at_ms, key, b"v")


def test_records_come_by_time_then_topic_then_partition_then_offset() -> None:
    logs = [
        [record(0, 10, 1), record(1, 20, 1)],
        [record(0, 10, 0), record(1, 10, 0)],
        [record(5, 10, 0, "s")],
    ]
    order = [(r.topic, r.partition, r.offset) for r in merged(logs)]
    assert order == [("s", 0, 5), ("t", 0, 0), ("t", 0, 1), ("t", 1, 0), ("t", 1, 1)]
    assert order == [(r.topic, r.partition, r.offset) for r in merged(reversed(logs))]


@given(st.lists(st.lists(st.integers(0, 50), max_size=12), max_size=4))
def test_a_partition_keeps_its_order_whatever_its_clock_does(times: list[list[int]]) -> None:
    logs = [[record(n, at_ms, p) for n, at_ms in enumerate(log)] for p, log in enumerate(times)]
    order = list(merged(logs))
    for number, log in enumerate(logs):
        assert [r for r in order if r.partition == number] == log
    assert order == list(merged(reversed(logs)))


def watch(*records: RawRecord, compacted: bool = False, transactional: bool = False) -> tuple[list[int], list[str]]:
    watched = Continuity(("t", 0), compacted=compacted, transactional=transactional)
    offsets = [each.offset for each in watched.followed(records)]
    return offsets, [str(finding) for finding in watched.findings()]


def test_a_range_that_was_read_twice_counts_once() -> None:
    offsets, told = watch(record(0), record(1), record(0), record(1), record(2))
    assert offsets == [0, 1, 2]
    assert told == ["DUPLICATES: t[0]: offset 0 comes again after 1; read once"]


def test_missing_offsets_are_a_gap_or_compactions_hole_and_a_transactions_end_is_neither() -> None:
    assert watch(record(0), record(4))[1] == ["GAP: t[0]: offsets 1 to 3 are missing: records are lost"]
    assert watch(record(0), record(4), compacted=True)[1][0].startswith("COMPACTED: t[0]: offsets 1 to 3")
    assert watch(record(0), record(2), transactional=True)[1] == []


def test_a_clock_that_steps_back_is_told_and_the_order_of_offsets_stands() -> None:
    offsets, told = watch(record(0, 900), record(1, 400), record(2, 950))
    assert offsets == [0, 1, 2]
    assert told == ["CLOCK_STEPPED_BACK: t[0]: at offset 1 time steps back by 500 ms; the order of offsets stands"]


def test_an_imported_record_is_read_as_it_was() -> None:
    old = replace(record(812, 5_000), headers=(("other", b"x"),))
    headers = (*old.headers, (OFFSET_HEADER, b"812"), (TIMESTAMP_HEADER, b"5000"))
    assert restored(replace(old, offset=3, timestamp_ms=9_999, headers=headers)) == old
    assert restored(old) is old


def test_before_the_first_tick_only_the_newest_of_each_key_is_kept() -> None:
    bounds = Bounds(Span(0, 1), {(2, 0): 3}, {(2, 0): 5}, ticks=1)
    base = Base(bounds, 2)
    records = [record(n, key=key) for n, key in enumerate((b"a", b"b", b"a", b"b", b"a"))]
    written = [each for r in records for each in base.followed(r)] + list(base.rest())
    assert [each.offset for each in written] == [1, 2, 3, 4]
    assert bounds.is_past(2, record(5))
    assert not bounds.is_past(2, record(4))


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(HistoryError, match=r"ends at 1970-01-01T00:00:00.005Z, not after its beginning 1970"):
        Span(5, 5)
