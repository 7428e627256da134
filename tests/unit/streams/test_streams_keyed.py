from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.codec import UnreadableError, decode, encode, must
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import (
    Demand,
    Distribution,
    EngineSignals,
    EngineStatus,
    Health,
    Metric,
    NetworkProbe,
    Vantage,
)
from headrace.schemas.state import DemandState
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, TopicSettings
from headrace.streams.core import keyed
from headrace.streams.core.demand import DemandAccumulator
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


def engine(offset: int, **status: int) -> RawRecord:
    end_ms = 1_000 * (offset + 1)
    said = replace(EngineStatus(Health.HEALTHY, 1, 1, 1, 0.0, 0.0, 0.0), **status)  # type: ignore[arg-type]  # names are the test's
    latency = Distribution("m", Metric.TTFT, 1, 0.5, 0.5, 0.5, 0, -7, (1,))
    signal = EngineSignals("e", "s", Vantage.ENGINE, end_ms - 1_000, end_ms, (latency,), said)
    place = partition_of(signal.key, 8)
    return RawRecord("headrace.signals.engine", place, offset, end_ms, signal.key, encode(signal))


def test_a_count_that_a_state_could_not_hold_is_refused_and_the_next_signal_folded() -> None:
    good, bad = engine(0), engine(1)
    assert bad.value is not None
    # 2**31 as an Avro int: a writer of another hand gives what our own encoder refuses.
    twos = b"\x02"
    bad = replace(bad, value=bad.value.replace(8 * twos, 3 * twos + zigzag(2**31) + 4 * twos))
    run = run_offline([good, bad, engine(2)], SETTINGS, TopicSettings())
    assert [letter.reason for letter in run.rejected] == [RejectReason.OUT_OF_RANGE]
    assert "status.replicas_desired is 2147483648; at most 2147483647" in run.rejected[0].detail
    assert run.states[b"e"].applied_offset == 2


def zigzag(value: int) -> bytes:
    rest, out = 2 * value, bytearray()
    while rest >= 128:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*out, rest))


class Fragile(DemandAccumulator):
    """Raises at a demand of 13, after having taken note of it, and cannot say its state after one of 17."""

    def apply(self, demand: Demand, offset: int, timestamp_ms: int) -> Outcome:
        outcome = super().apply(demand, offset, timestamp_ms)
        if demand.offered == 13:
            raise OverflowError("thirteen")
        self.route = self.route._replace(model=17) if demand.offered == 17 else self.route  # type: ignore[arg-type]  # no Avro string
        return outcome


@pytest.mark.parametrize("poison", [13, 17])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_record_that_cannot_be_folded_is_refused_and_the_others_of_its_batch_count(poison: int, size: int) -> None:
    kind = replace(KINDS[SIGNALS_DEMAND], begin=lambda s, settings: Fragile(s.route, settings), resume=Fragile.resume)
    fold, stored = KeyedFold(kind, SETTINGS, 8), {}
    records = [raw(0), raw(0, cluster="d"), raw(1), raw(2, poison), raw(3)]
    refused: list[DeadLetter] = []
    for at in range(0, len(records), size):
        folded = fold.fold(records[at : at + size], stored.get, None)
        stored.update(folded.states)
        refused += folded.rejected
    assert [(letter.offset, letter.reason) for letter in refused] == [(2, RejectReason.INCONSISTENT)]
    assert "cannot be folded" in refused[0].detail
    assert (
        stored
        == run_offline([r for r in records if r.value != raw(2, poison).value], SETTINGS, TopicSettings()).encoded
    )


DAMAGED = st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 255)), min_size=1, max_size=12)
ORIGINS: dict[str, RawRecord] = {
    SIGNALS_ENGINE: engine(0),
    SIGNALS_DEMAND: raw(0),
    SIGNALS_NETWORK: RawRecord(
        "headrace.signals.network", partition_of(b"c|s", 8), 0, 1_000, b"c|s",
        encode(NetworkProbe("c", "s", "gw", 1_000, 0.01)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("role", sorted(ORIGINS))
@settings(max_examples=200)
@given(damage=DAMAGED)
def test_damaged_panes_never_stop_a_fold_nor_lose_its_guard(role: str, damage: list[tuple[int, int]]) -> None:
    origin = ORIGINS[role]
    assert origin.key is not None
    value = KeyedFold(KINDS[role], SETTINGS, 8).fold([origin], lambda _: None, None).states[origin.key]
    state: Any = must(decode(KINDS[role].state, value))
    panes = bytearray(state.panes)
    for at, byte in damage:
        panes[at % len(panes)] = byte
    damaged = encode(replace(state, panes=bytes(panes)))
    fold = KeyedFold(KINDS[role], SETTINGS, 8)
    assert fold.fold([origin], lambda _: damaged, None).outcomes[Outcome.DUPLICATE] == 1
    later = fold.fold([replace(origin, offset=5)], lambda _: damaged, None)
    assert later.rejected == ()
    assert set(later.states) <= {origin.key}
