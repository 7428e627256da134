from collections.abc import Iterable

import pytest

from headrace.schemas.codec import UnreadableError, encode
from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand
from headrace.schemas.state import DemandState
from headrace.schemas.topics import SIGNALS_DEMAND, TopicSettings
from headrace.streams.core import keyed
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.offline import run_offline
from headrace.streams.core.partitioner import partition_of
from headrace.streams.core.window import Outcome
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings()


def fold_of() -> KeyedFold:
    return KeyedFold(KINDS[SIGNALS_DEMAND], SETTINGS, 8)


def raw(offset: int, offered: int = 5, cluster: str = "c") -> RawRecord:
    end_ms = 1_000 * (offset + 1)
    demand = Demand(cluster, "m", "default", "s", end_ms - 1_000, end_ms, offered, 0, 0)
    place = partition_of(demand.key, 8)
    return RawRecord("headrace.signals.demand", place, offset, end_ms, demand.key, encode(demand))


def test_a_batch_gives_one_state_per_touched_key_and_says_what_became_of_each_record() -> None:
    batch = [raw(0), raw(1), raw(1), raw(0, cluster="d"), RawRecord("headrace.signals.demand", 0, 9, 0, b"k", b"junk")]
    folded = fold_of().fold(batch, lambda _: None, None)
    assert sorted(folded.states) == [b"c|m|default", b"d|m|default"]
    assert folded.outcomes == {
        Outcome.APPLIED: 3, Outcome.DUPLICATE: 1, Outcome.LATE: 0, Outcome.KEPT_APART: 0,
    }  # fmt: skip
    assert [letter.reason for letter in folded.rejected] == [RejectReason.MALFORMED]


def test_a_key_with_nothing_but_duplicates_is_not_written_again() -> None:
    fold, stored = fold_of(), {}
    stored.update(fold.fold([raw(0), raw(1)], stored.get, None).states)
    assert fold.fold([raw(0), raw(1)], stored.get, None).states == {}


def test_a_forgotten_key_begins_anew_and_a_kept_one_goes_on() -> None:
    fold = fold_of()
    fold.fold([raw(0)], lambda _: None, None)
    fold.forget(b"c|m|default")
    again = fold.fold([raw(0)], lambda _: None, None)
    assert again.outcomes[Outcome.APPLIED] == 1


def test_after_a_rebalance_the_revoked_partitions_are_read_from_the_store_again() -> None:
    fold = fold_of()
    mine = fold.fold([raw(0)], lambda _: None, None).states
    other = KeyedFold(KINDS[SIGNALS_DEMAND], SETTINGS, 8).fold([raw(1, 50)], mine.get, None).states
    fold.keep_partitions(())
    back = fold.fold([raw(1, 50), raw(2, 50)], other.get, None)
    assert back.outcomes == {
        Outcome.APPLIED: 1, Outcome.DUPLICATE: 1, Outcome.LATE: 0, Outcome.KEPT_APART: 0,
    }  # fmt: skip


def test_an_owned_partitions_accumulators_stay() -> None:
    fold = fold_of()
    fold.fold([raw(0)], lambda _: None, None)
    fold.keep_partitions(range(8))
    assert fold.fold([raw(0)], lambda _: None, None).outcomes[Outcome.DUPLICATE] == 1


def test_a_stored_state_that_cannot_be_read_is_counted_and_the_key_begins_anew() -> None:
    fold = fold_of()
    assert fold.fold([raw(0)], lambda _: b"junk", None).outcomes[Outcome.APPLIED] == 1
    assert fold.unreadable == 1


def test_accumulators_are_bounded_and_the_longest_unused_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "MAX_ACCUMULATORS", 2)
    fold, stored = fold_of(), {}
    for cluster in ("a", "b", "a", "c"):
        offset = 1 if cluster in stored else 0
        folded = fold.fold([raw(offset, cluster=cluster)], lambda _: None, None)
        stored[cluster] = folded.states
    # b went; a, used after it, and c stayed
    seen: dict[str, int] = {}
    for cluster in ("a", "c", "b"):
        outcomes = fold.fold([raw(0, cluster=cluster)], lambda _: None, None).outcomes
        seen[cluster] = outcomes[Outcome.DUPLICATE]
    assert seen == {"a": 1, "c": 1, "b": 0}


def test_off_line_the_states_and_the_refused_of_all_topics_come_out() -> None:
    def records() -> Iterable[RawRecord]:
        yield RawRecord("headrace.weights", 0, 0, 0, b"k", b"v")
        yield from (raw(i, 10) for i in range(2_500))
        yield RawRecord("headrace.signals.engine", 0, 0, 0, b"k", None)

    run = run_offline(records(), SETTINGS, TopicSettings())
    state = run.states[b"c|m|default"]
    assert isinstance(state, DemandState)
    assert (state.rate_rps, state.applied_offset) == (10.0, 2_499)
    assert run.encoded[b"c|m|default"] == encode(state)
    assert len(run.rejected) == 1


def test_reading_a_state_of_another_hand_raises() -> None:
    with pytest.raises(UnreadableError):
        fold_of().read(b"junk")
