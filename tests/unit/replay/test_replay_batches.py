"""A file read as batches holds the records that it holds one by one, and a tail gives them in their order."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.replay.core.columnar.batch import batch_of, joined
from headrace.replay.core.columnar.tail import Tail
from headrace.replay.core.continuity import Continuity
from headrace.replay.core.history import DamagedError
from headrace.replay.core.merge import merged
from headrace.replay.sources.container import ContainerWriter, read_batches, read_container
from headrace.schemas.raw import RawRecord

PLACE = ("signals", 3)
PLAIN = RawRecord(*PLACE, 0, 1_700_000_000_000, b"engine-a", bytes(200))
ODD = (
    replace(PLAIN, key=None),
    replace(PLAIN, value=None),
    replace(PLAIN, key=b""),
    replace(PLAIN, key=b"k" * 63),
    replace(PLAIN, key=b"k" * 64),
    replace(PLAIN, value=b""),
    replace(PLAIN, value=bytes(63)),
    replace(PLAIN, value=bytes(64)),
    replace(PLAIN, value=bytes(8_191)),
    replace(PLAIN, value=bytes(8_192)),
    replace(PLAIN, headers=(("name", b"value"),)),
    replace(PLAIN, offset=1 << 40, timestamp_ms=-5),
    PLAIN,
)


def written(path: Path, records: Sequence[RawRecord]) -> list[RawRecord]:
    writer = ContainerWriter(path, PLACE)
    for record in records:
        writer.write(record)
    writer.close()
    return [record for batch in read_batches(path, PLACE) for record in batch.records()]


def test_whatever_a_record_is_like_a_batch_gives_it_as_it_was(tmp_path: Path) -> None:
    records = [*ODD, *reversed(ODD)]
    assert written(tmp_path / "all.avro", records) == records == list(read_container(tmp_path / "all.avro", PLACE))
    for n, record in enumerate(ODD):
        assert written(tmp_path / f"{n}.avro", [record]) == [record]


def test_a_file_that_is_damaged_says_so_and_after_which_record(tmp_path: Path) -> None:
    path = tmp_path / "all.avro"
    written(path, [replace(PLAIN, offset=n, value=bytes([n % 256]) * 300) for n in range(4_000)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - len(whole) // 10])
    with pytest.raises(DamagedError, match=r"is cut short after offset \d+: export again"):
        list(read_batches(path, PLACE))
    path.write_bytes(whole[:-30] + bytes(30))
    with pytest.raises(DamagedError, match=r"is damaged after offset \d+"):
        list(read_batches(path, PLACE))
    with pytest.raises(DamagedError, match="cannot be read"):
        list(read_batches(tmp_path / "none.avro", PLACE))


def test_parts_of_batches_put_together_are_the_whole() -> None:
    records = list(ODD)
    batch = batch_of("signals", records)
    for cut in range(len(records) + 1):
        parts = [part for part in (batch.part(0, cut), batch.part(cut, len(records))) if len(part)]
        assert list(joined(parts).records()) == records


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=3), st.integers(1, 5), st.integers(0, 1)
)
def test_a_tail_gives_each_record_at_its_instant_and_once(times: list[list[int]], size: int, included: int) -> None:
    logs = [
        [replace(PLAIN, partition=p, offset=n, timestamp_ms=at) for n, at in enumerate(log)]
        for p, log in enumerate(times)
    ]
    tail = Tail([iter([batch_of("signals", log[n : n + size]) for n in range(0, len(log), size)]) for log in logs])
    given_: list[RawRecord] = []
    for at_ms in (3, 10, 11, 40):
        batch = tail.until(at_ms, included=bool(included))
        given_ += [] if batch is None else batch.records()
        newest: dict[int, int] = {}
        before: list[RawRecord] = []
        for record in merged(logs):
            newest[record.partition] = max(newest.get(record.partition, -1), record.timestamp_ms)
            if newest[record.partition] < at_ms + included:
                before.append(record)
        assert sorted(given_, key=str) == sorted(before, key=str)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20), st.integers(1, 6))
def test_a_batch_is_followed_as_its_records_are(places: list[tuple[int, int]], size: int) -> None:
    records = [replace(PLAIN, offset=offset, timestamp_ms=at) for offset, at in places]
    one, other = (Continuity(PLACE, compacted=False, transactional=False) for _ in range(2))
    kept = list(one.followed(records))
    batches = [batch_of("signals", records[n : n + size]) for n in range(0, len(records), size)]
    assert [record for batch in batches for record in other.followed_batch(batch).records()] == kept
    assert one.findings() == other.findings()
