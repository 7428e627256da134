"""Which records of the weights topic are the writer's own: all others are stray."""

import pytest

from headrace.schemas.raw import RawRecord
from headrace.solver.core.answer import own_records
from headrace.solver.core.answer.own_records import OwnRecords


def record(key: bytes, value: bytes | None, offset: int = 0) -> RawRecord:
    return RawRecord("weights", 0, offset, 0, key, value)


def test_what_was_written_and_comes_back_in_order_is_no_stray() -> None:
    own = OwnRecords()
    for key, value in ((b"r", b"1"), (b"gone", None), (b"!commit", b"c1")):
        own.wrote(key, value)
    for key, value in ((b"r", b"1"), (b"gone", None), (b"!commit", b"c1")):
        own.offer(record(key, value))
    assert own.stray is None


def test_records_that_the_broker_skips_are_no_harm() -> None:
    own = OwnRecords()
    own.wrote(b"r", b"1")
    own.wrote(b"r", b"2")
    own.offer(record(b"r", b"2"))
    assert own.stray is None


@pytest.mark.parametrize(
    ("value", "what"), [(None, "a tombstone for b'r' at offset 7"), (b"old", "a record for b'r' at offset 7")]
)
def test_a_record_by_another_hand_is_stray_and_the_first_is_the_one_that_is_told(
    value: bytes | None, what: str
) -> None:
    own = OwnRecords()
    own.wrote(b"r", b"1")
    own.offer(record(b"r", b"1"))
    own.offer(record(b"r", value, 7))
    own.offer(record(b"other", None, 8))
    assert own.stray == what


def test_a_writer_that_cannot_read_its_topic_stops_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_records, "MAX_AWAITED", 2)
    own = OwnRecords()
    for i in range(3):
        own.wrote(b"r", b"%d" % i)
    own.offer(record(b"other", b"?"))
    assert own.stray is None
