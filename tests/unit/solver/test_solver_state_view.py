"""The fold over the input topics: the newest sound record of each key, and nothing that is not sound."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.codec import encode
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.overrides import Override, OverrideKind
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import FLEET
from headrace.schemas.weights import InputOffsets
from headrace.solver.core.inputs.state_view import StateFold
from solver_inputs import TOPICS, demand_state, engine_state, network_state, profile, raw, spec, tombstone


def test_the_newest_record_of_a_key_is_the_one_in_the_view() -> None:
    fold = StateFold(TOPICS)
    assert fold.offer(raw(spec("e1", capacity_rps_per_replica=10.0))) is None
    assert fold.offer(raw(spec("e1", capacity_rps_per_replica=20.0), offset=1)) is None
    assert fold.view().specs == {b"e1": spec("e1", capacity_rps_per_replica=20.0)}


def test_every_input_topic_has_its_table() -> None:
    fold = StateFold(TOPICS)
    for record in (spec("e1"), profile(), engine_state("e1"), demand_state("A", 9.0), network_state("A", "s", 0.01)):
        assert fold.offer(raw(record)) is None
    view = fold.view((InputOffsets("t", (3,)),))
    assert set(view.specs) == set(view.engines) == {b"e1"}
    assert set(view.profiles) == {b"p"}
    assert set(view.demands) == {b"A|m|default"}
    assert set(view.links) == {b"A|s"}
    assert view.inputs == (InputOffsets("t", (3,)),)


def test_panes_are_left_behind() -> None:
    fold = StateFold(TOPICS)
    fold.offer(raw(engine_state("e1")))
    assert fold.view().engines[b"e1"] == engine_state("e1", panes=b"")


def test_a_tombstone_takes_the_key_away_and_one_for_an_unknown_key_is_nothing() -> None:
    fold = StateFold(TOPICS)
    fold.offer(raw(spec("e1")))
    assert fold.offer(tombstone(spec("e1"))) is None
    assert fold.offer(tombstone(spec("never"))) is None
    assert fold.view().specs == {}


def test_a_view_does_not_move_when_the_fold_goes_on() -> None:
    fold = StateFold(TOPICS)
    fold.offer(raw(spec("e1")))
    view = fold.view()
    fold.offer(tombstone(spec("e1")))
    assert set(view.specs) == {b"e1"}


def test_a_record_that_is_not_sound_is_named_and_the_one_before_it_stays() -> None:
    fold = StateFold(TOPICS)
    fold.offer(raw(engine_state("e1")))
    outcome = fold.offer(raw(engine_state("e1", coverage=1.5, kv_usage=float("nan"))))
    assert isinstance(outcome, Rejected)
    assert "coverage is 1.5" in outcome.detail
    assert "kv_usage is nan" in outcome.detail
    assert fold.view().engines[b"e1"].coverage == 1.0


def test_each_way_of_being_unusable_has_its_reason() -> None:
    fold = StateFold(TOPICS)
    good = raw(spec("e1"))
    reasons = {
        "topic": fold.offer(replace(good, topic="elsewhere")),
        "no key": fold.offer(replace(good, key=None)),
        "other key": fold.offer(replace(good, key=b"e2")),
        "bytes": fold.offer(replace(good, value=b"\x00\x01")),
        "other record": fold.offer(replace(good, value=raw(profile()).value)),
        "identifier": fold.offer(raw(demand_state("a b", 1.0))),
        "capacity": fold.offer(raw(spec("e1", capacity_rps_per_replica=-1.0))),
        "curve": fold.offer(raw(profile(ttft_s=(0.1, float("inf"), 0.3)))),
    }
    assert {name: None if outcome is None else outcome.reason for name, outcome in reasons.items()} == {
        "topic": RejectReason.WRONG_RECORD,
        "no key": RejectReason.KEY_MISMATCH,
        "other key": RejectReason.KEY_MISMATCH,
        "bytes": RejectReason.MALFORMED,
        "other record": RejectReason.WRONG_RECORD,
        "identifier": RejectReason.OUT_OF_RANGE,
        "capacity": RejectReason.OUT_OF_RANGE,
        "curve": RejectReason.OUT_OF_RANGE,
    }
    assert fold.view().specs == {}


@given(st.binary(max_size=80), st.one_of(st.none(), st.binary(max_size=20)), st.sampled_from(sorted(TOPICS)))
def test_no_bytes_raise(value: bytes, key: bytes | None, role: str) -> None:
    outcome = StateFold(TOPICS).offer(RawRecord(TOPICS[role].name, 0, 0, 0, key, value))
    assert isinstance(outcome, Rejected)


def test_an_override_is_no_engine_and_a_tombstone_takes_it_back() -> None:
    fold, said = StateFold(TOPICS), Override(OverrideKind.DRAIN, "e1", "ann", "upgrade", 1_000, 2_000)
    fleet = TOPICS[FLEET].name
    assert fold.offer(RawRecord(fleet, 0, 0, 0, said.key, encode(said))) is None
    view = fold.view()
    assert (view.specs, view.overrides) == ({}, {b"!drain|e1": said})
    unsound = fold.offer(RawRecord(fleet, 0, 1, 0, said.key, encode(replace(said, author=""))))
    assert isinstance(unsound, Rejected)
    assert isinstance(fold.offer(RawRecord(fleet, 0, 2, 0, said.key, encode(spec("e1")))), Rejected)
    assert fold.view().overrides == {b"!drain|e1": said}
    fold.offer(RawRecord(fleet, 0, 3, 0, said.key, None))
    assert fold.view().overrides == {}
