"""What a new writer learns from the weights topic: the newest epoch and version, the last good snapshot, live keys."""

from dataclasses import replace

from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import WEIGHTS
from headrace.solver.core.answer.weights_history import WeightsHistory
from headrace.solver.core.tick import Tick
from solver_inputs import NOW_MS, TOPICS
from solver_ticks import route_of, stamp, tick_of


def raw(key: bytes | None, value: bytes | None, offset: int = 0) -> RawRecord:
    return RawRecord(TOPICS[WEIGHTS].name, 0, offset, NOW_MS, key, value)


def written(tick: Tick) -> list[RawRecord]:
    routes = {route.key: route for route in tick.snapshot.routes}
    records = [raw(key, encode(routes[key])) for key in sorted(tick.changed)]
    records += [raw(key, None) for key in sorted(tick.removed)]
    return [*records, raw(tick.snapshot.commit.key, encode(tick.snapshot.commit))]


def history_of(*records: RawRecord) -> WeightsHistory:
    history = WeightsHistory()
    for record in records:
        history.offer(record)
    return history


def test_an_empty_topic_leaves_epoch_0_version_0_and_nothing_before() -> None:
    history = history_of()
    assert (history.epoch, history.version, history.assembler.snapshot, history.live) == (0, 0, None, frozenset())


def test_the_last_committed_snapshot_is_what_came_before() -> None:
    first = tick_of({"A|m|default": {"e1": 1_000_000}, "B|m|default": {"e1": 1_000_000}}, stamp(3, 7))
    second = tick_of({"A|m|default": {"e2": 1_000_000}}, stamp(3, 8), first.snapshot)
    history = history_of(*written(first), *written(second))
    assert (history.epoch, history.version) == (3, 8)
    assert history.assembler.snapshot == second.snapshot
    assert history.live == {b"A|m|default"}


def test_a_route_without_its_commit_counts_for_the_numbers_and_as_live_but_not_as_a_snapshot() -> None:
    first = tick_of({"A|m|default": {"e1": 1_000_000}}, stamp(3, 7))
    orphan = route_of("C|m|default", {"e1": 1_000_000}, 4, 9)
    history = history_of(*written(first), raw(orphan.key, encode(orphan)))
    assert (history.epoch, history.version) == (4, 9)
    assert history.assembler.snapshot == first.snapshot
    assert history.live == {b"A|m|default", b"C|m|default"}


def test_bytes_nobody_can_read_count_for_nothing_but_their_key() -> None:
    history = history_of(raw(b"A|m|default", b"junk"), raw(b"!commit", b"junk"), raw(None, b"junk"))
    assert (history.epoch, history.version, history.live) == (0, 0, {b"A|m|default"})


def test_the_next_epoch_is_above_every_one_seen_and_above_those_of_a_topic_that_was_lost() -> None:
    history = WeightsHistory()
    assert history.next_epoch(1_700_000_000_999) == 1_700_000_000
    history.epoch = 1_700_000_000
    assert history.next_epoch(1_700_000_000_999) == 1_700_000_001
    assert history.next_epoch(0) == 1_700_000_001


def test_numbers_at_the_end_of_a_long_count_for_nothing_so_that_a_next_epoch_and_version_can_be_written() -> None:
    first = tick_of({"A|m|default": {"e1": 1_000_000}}, stamp(3, 7))
    commit = first.snapshot.commit
    hostile = [replace(commit, epoch=2**63 - 1), replace(commit, epoch=4, version=2**63 - 1)]
    orphan = route_of("C|m|default", {"e1": 1_000_000}, 2**63 - 1, 2**63 - 1)
    history = history_of(
        *written(first), *(raw(each.key, encode(each)) for each in hostile), raw(orphan.key, encode(orphan))
    )
    assert (history.epoch, history.version) == (3, 7)
    assert history.assembler.snapshot == first.snapshot
    assert history.live == {b"A|m|default", b"C|m|default"}
