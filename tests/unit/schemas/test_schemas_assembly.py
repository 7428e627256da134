"""Time runs down the page: each test feeds the topic's records in their order and says what a reader then holds."""

from dataclasses import replace

from headrace.schemas.assembly import Assembled, Ignored, Refused, SnapshotAssembler, digest_of
from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.codec import encode
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import (
    PPM,
    Reason,
    RouteWeights,
    Snapshot,
    SnapshotCommit,
    SnapshotMode,
    SnapshotStatus,
    Target,
)


def target(engine: str, ppm: int) -> Target:
    return Target(engine, None, ppm, ppm, 0, 0.001, 0.05, 0.004, 0.5, 300.0, Reason.CHEAPEST, "nearest")


def route(cluster: str, version: int, epoch: int = 1, a: int = PPM) -> RouteWeights:
    targets = (target("engine-a", a), target("engine-b", PPM - a))
    return RouteWeights(cluster, "m", "default", 0, epoch, version, 9.0, targets, (), (), 0.0, 0.1, 400.0, "as planned")


def commit(version: int, *routes: RouteWeights, epoch: int = 1) -> SnapshotCommit:
    return SnapshotCommit(
        epoch=epoch,
        version=version,
        mode=SnapshotMode.LIVE,
        status=SnapshotStatus.OPTIMAL,
        sentence="",
        tick_ms=1000 * version,
        period_ms=500,
        valid_until_ms=1000 * version + 60_000,
        route_count=len(routes),
        changed=(),
        digest=digest_of({r.key: r for r in routes}),
        policy="lp",
        policy_hash="0",
        inputs=(),
    )


def raw(record: RouteWeights | SnapshotCommit) -> RawRecord:
    return RawRecord("weights", 0, 0, 0, record.key, encode(record))


def tombstone(record: RouteWeights) -> RawRecord:
    return RawRecord("weights", 0, 0, 0, record.key, None)


def feed(assembler: SnapshotAssembler, *records: RawRecord) -> list[object]:
    return [assembler.offer(record) for record in records]


def test_nothing_is_visible_before_its_commit() -> None:
    assembler = SnapshotAssembler()
    assert feed(assembler, raw(route("A", 1)), raw(route("B", 1))) == [None, None]
    assert assembler.snapshot is None


def test_a_commit_installs_its_routes_sorted_and_checked() -> None:
    assembler, a, b = SnapshotAssembler(), route("A", 1), route("B", 1)
    *_, outcome = feed(assembler, raw(b), raw(a), raw(commit(1, a, b)))
    assert isinstance(outcome, Assembled)
    assert outcome.snapshot.routes == (a, b)
    assert outcome.changed == {a.key, b.key}
    assert check_snapshot(outcome.snapshot) == ()


def test_only_what_changed_is_written_again_and_only_that_is_named() -> None:
    assembler, a1, b1, b2 = SnapshotAssembler(), route("A", 1), route("B", 1), route("B", 2, a=0)
    *_, outcome = feed(assembler, raw(a1), raw(b1), raw(commit(1, a1, b1)), raw(b2), raw(commit(2, a1, b2)))
    assert isinstance(outcome, Assembled)
    assert outcome.changed == {b2.key}
    assert outcome.snapshot.routes == (a1, b2)


def test_a_tombstone_removes_a_route() -> None:
    assembler, a, b = SnapshotAssembler(), route("A", 1), route("B", 1)
    *_, outcome = feed(assembler, raw(a), raw(b), raw(commit(1, a, b)), tombstone(a), raw(commit(2, b)))
    assert isinstance(outcome, Assembled)
    assert outcome.snapshot.routes == (b,)


def test_a_set_that_lost_a_route_is_refused_and_the_last_good_one_stays() -> None:
    assembler, a1, b1, a2, b2 = SnapshotAssembler(), route("A", 1), route("B", 1), route("A", 2), route("B", 2, a=0)
    feed(assembler, raw(a1), raw(b1), raw(commit(1, a1, b1)))
    *_, outcome = feed(assembler, raw(a2), raw(commit(2, a2, b2)))
    assert isinstance(outcome, Refused)
    assert (outcome.epoch, outcome.version) == (1, 2)
    assert assembler.snapshot == Snapshot(commit(1, a1, b1), (a1, b1))


def test_the_next_epoch_writes_every_route_and_makes_a_reader_whole_again() -> None:
    assembler, a1, a2, a3 = SnapshotAssembler(), route("A", 1), route("A", 2), route("A", 3, epoch=2)
    feed(assembler, raw(a1), raw(commit(1, a1)))
    lost, *_ = feed(assembler, raw(commit(2, a2)))
    assert isinstance(lost, Refused)
    *_, outcome = feed(assembler, raw(a3), raw(commit(3, a3, epoch=2)))
    assert isinstance(outcome, Assembled)
    assert outcome.snapshot.routes == (a3,)
    assert outcome.changed == {a3.key}


def test_a_fenced_writers_leftovers_are_ignored() -> None:
    assembler, new, old = SnapshotAssembler(), route("A", 5, epoch=2), route("A", 6, epoch=1, a=0)
    feed(assembler, raw(new), raw(commit(5, new, epoch=2)))
    outcomes = feed(assembler, raw(old), raw(commit(6, old, epoch=1)))
    assert [type(o) for o in outcomes] == [Ignored, Ignored]
    assert assembler.snapshot is not None
    assert assembler.snapshot.routes == (new,)


def test_a_commit_that_comes_twice_changes_nothing() -> None:
    assembler, a = SnapshotAssembler(), route("A", 1)
    *_, again = feed(assembler, raw(a), raw(commit(1, a)), raw(commit(1, a)))
    assert isinstance(again, Ignored)


def test_a_route_of_a_later_version_waits_for_its_own_commit() -> None:
    assembler, a1, a2 = SnapshotAssembler(), route("A", 1), route("A", 2, a=0)
    feed(assembler, raw(a1), raw(commit(1, a1)), raw(a2))
    assert assembler.snapshot is not None
    assert assembler.snapshot.routes == (a1,)
    [outcome] = feed(assembler, raw(commit(2, a2)))
    assert isinstance(outcome, Assembled)


def test_what_cannot_be_read_is_refused_by_offset_and_the_reader_goes_on() -> None:
    assembler, a = SnapshotAssembler(), route("A", 1)
    bad_key = replace(raw(a), key=b"B|m|default")
    bad_sum = raw(replace(a, targets=(target("engine-a", 5),)))
    outcomes = feed(
        assembler,
        RawRecord("weights", 0, 3, 0, b"A|m|default", b"?"),
        RawRecord("weights", 0, 4, 0, None, b"?"),
        RawRecord("weights", 0, 5, 0, COMMIT_KEY, b"?"),
        bad_key,
        bad_sum,
    )
    assert [type(o) for o in outcomes] == [Refused] * 5
    *_, good = feed(assembler, raw(a), raw(commit(1, a)))
    assert isinstance(good, Assembled)


def test_a_commit_that_is_already_over_is_refused() -> None:
    assembler, a = SnapshotAssembler(), route("A", 1)
    *_, outcome = feed(assembler, raw(a), raw(replace(commit(1, a), valid_until_ms=1000)))
    assert isinstance(outcome, Refused)
    assert "valid_until_ms" in outcome.problems[0]


def test_numbers_that_no_writer_could_follow_are_refused_by_name_and_the_next_sound_commit_is_installed() -> None:
    assembler, first, second = SnapshotAssembler(), route("A", 1), route("A", 2, a=0)
    feed(assembler, raw(first), raw(commit(1, first)))
    hostile = replace(commit(1, first), epoch=2**63 - 1, version=-1)
    too_new = replace(first, epoch=2**62 + 1)
    said = (f"commit.epoch is {2**63 - 1}; 0 to {2**62}", f"commit.version is -1; 0 to {2**62}")
    assert feed(assembler, raw(hostile)) == [Refused(said, 2**63 - 1, -1)]
    assert isinstance(assembler.offer(raw(too_new)), Refused)
    outcomes = feed(assembler, raw(second), raw(commit(2, second)))
    assert isinstance(outcomes[-1], Assembled)
