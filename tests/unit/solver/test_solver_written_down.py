"""What a tick depends on is written down with it: digests of the inputs, settings at keyframes, snapshots that stay."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.assembly import Assembled, Refused, SnapshotAssembler
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import InputOffsets
from headrace.solver.core.effective import settings_of, settings_text
from headrace.solver.core.inputs.digests import LogDigests
from headrace.solver.core.tick import Tick
from headrace.solver.settings import ClassSettings, SolverSettings
from headrace.solver.snapshot_log import logged
from solver_ticks import stamp, tick_of

READ = (InputOffsets("t", (9, 9)),)


def record(key: bytes, value: bytes | None, partition: int = 0) -> RawRecord:
    return RawRecord("t", partition, 0, 0, key, value)


def digests_of(*records: RawRecord) -> tuple[int, ...]:
    fold = LogDigests()
    for each in records:
        fold.offer(each)
    (found,) = fold.digests(READ)
    return found.digests


def test_a_digest_is_of_each_keys_newest_record_so_compaction_does_not_change_it() -> None:
    whole = digests_of(record(b"a", b"1"), record(b"b", b"2"), record(b"a", b"3"))
    assert whole == digests_of(record(b"b", b"2"), record(b"a", b"3"))
    assert whole != digests_of(record(b"b", b"2"), record(b"a", b"4"))


def test_a_tombstone_takes_its_key_out_of_the_digest_and_partitions_stand_apart() -> None:
    assert digests_of(record(b"a", b"1"), record(b"a", None), record(b"b", b"2", 1)) == digests_of(
        record(b"b", b"2", 1)
    )
    assert digests_of() == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=3)), max_size=20))
def test_a_digest_is_what_the_newest_records_alone_give_in_any_order(items: list[tuple[int, bytes]]) -> None:
    newest = {bytes([key]): value for key, value in items}
    alone = digests_of(*(record(key, value) for key, value in sorted(newest.items(), reverse=True)))
    assert digests_of(*(record(bytes([key]), value) for key, value in items)) == alone
    assert all(-(2**63) <= each < 2**63 for each in alone)


def test_settings_come_back_from_their_text_as_they_were() -> None:
    settings = SolverSettings(period_ms=750, classes={"gold": ClassSettings(1, ("tools",), ("eu",))})
    assert settings_of(settings_text(settings)) == settings


def test_settings_of_another_build_are_refused_by_name_and_what_it_lacked_is_as_it_behaved() -> None:
    assert settings_of('{"period_ms": 750}') == SolverSettings(period_ms=750, load_spread=0.0, surge_load=0.0)
    with pytest.raises(InvalidInputError, match=r"move_prize_ms is no setting of this build; .*'move_price_ms'"):
        settings_of('{"move_prize_ms": 3}')
    with pytest.raises(InvalidInputError, match="no JSON"):
        settings_of("period_ms = 3")


def keyframe(tick: Tick) -> Tick:
    return replace(tick, record=replace(tick.record, settings="{}"))


def test_a_reader_of_the_snapshot_log_is_whole_from_any_keyframe_on() -> None:
    first = keyframe(tick_of({"A|m|default": {"e1": 1_000_000}, "B|m|default": {"e2": 1_000_000}}, stamp(5, 1)))
    second = tick_of({"A|m|default": {"e1": 1_000_000}, "B|m|default": {"e1": 1_000_000}}, stamp(5, 2), first.snapshot)
    third = keyframe(
        tick_of({"A|m|default": {"e1": 1_000_000}, "B|m|default": {"e1": 1_000_000}}, stamp(5, 3), second.snapshot)
    )
    assert [len(logged("log", tick, ())) for tick in (first, second, third)] == [3, 2, 3]
    reader, outcomes = SnapshotAssembler(), []
    for tick in (second, third):
        for topic, key, value in logged("log", tick, ()):
            outcome = reader.offer(RawRecord(topic, 0, 0, 0, key, value))
            outcomes += [] if outcome is None else [outcome]
    assert isinstance(outcomes[0], Refused)
    assert outcomes[1] == Assembled(third.snapshot, frozenset({b"A|m|default", b"B|m|default"}))
