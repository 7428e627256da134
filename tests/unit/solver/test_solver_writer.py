"""The pen without a broker: which topics it is not taken for, and when a record by another hand counts."""

from collections.abc import Sequence

import pytest

from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.bus.transactions import Committed, Failed, Fenced, Outgoing
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import InputOffsets
from headrace.solver import publish
from headrace.solver.publish import NoPen, Pen, SnapshotWriter
from headrace.solver.reach import cleanup_policy, missing
from solver_inputs import TOPICS
from solver_ticks import stamp, tick_of

NOBODY = KafkaSettings(bootstrap_servers="127.0.0.1:1")
TICK = tick_of({"A|m|default": {"e1": 1_000_000}}, stamp(5, 1))


class Topic:
    """The weights topic in memory: transactions append, the one reader hands out what is new."""

    def __init__(self) -> None:
        self.log: list[RawRecord] = []
        self.read = 0
        self.outcome: Committed | Fenced | Failed = Committed()
        self.partitions = 1
        self.policy: str | None = "compact"

    caught_up = True

    def init(self, timeout_s: float) -> Committed:
        assert timeout_s > 0
        return Committed()

    def publish_all(self, records: Sequence[Outgoing]) -> Committed | Fenced | Failed:
        if isinstance(self.outcome, Committed):
            for topic, key, value in records:
                if topic == TOPICS["weights"].name:
                    self.append(key, value)
        return self.outcome

    def append(self, key: bytes, value: bytes | None) -> None:
        self.log.append(RawRecord("weights", 0, len(self.log), 0, key, value))

    def poll(self, timeout_s: float) -> list[RawRecord]:
        assert timeout_s >= 0
        new, self.read = self.log[self.read :], len(self.log)
        return new

    def positions(self) -> tuple[InputOffsets, ...]:
        return (InputOffsets("weights", (0,) * self.partitions),)

    def close(self) -> None:
        self.read = 0


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    made = Topic()
    monkeypatch.setattr(publish, "TransactionalPublisher", lambda *_, **__: made)
    monkeypatch.setattr(publish, "CompactedReader", lambda *_, **__: made)
    monkeypatch.setattr(publish, "cleanup_policy", lambda *_: made.policy)
    return made


def writer() -> SnapshotWriter:
    return SnapshotWriter(NOBODY, TOPICS, lambda: 5_000)


def take(made: SnapshotWriter) -> Pen | NoPen:
    return made.take_pen(lambda: False)


def test_what_it_writes_itself_is_no_stray(topic: Topic) -> None:
    made = writer()
    assert take(made) == Pen(5, 0, None)
    assert made.write(TICK) == Committed()
    assert made.stray() is None
    assert [record.key for record in topic.log] == [b"A|m|default", b"!commit"]


def test_a_record_by_another_hand_counts_once_a_write_has_shown_that_the_pen_is_still_held(topic: Topic) -> None:
    made = writer()
    take(made)
    made.write(TICK)
    topic.append(b"A|m|default", None)
    assert made.stray() is None
    made.write(tick_of({"A|m|default": {"e1": 1_000_000}}, stamp(5, 2), TICK.snapshot))
    assert made.stray() == "a tombstone for b'A|m|default' at offset 2"
    take(made)
    assert made.stray() is None


def test_the_records_of_a_younger_writer_are_no_strays(topic: Topic) -> None:
    made = writer()
    take(made)
    made.write(TICK)
    topic.append(b"A|m|default", b"of a younger one")
    assert made.stray() is None
    topic.outcome = Fenced("by a younger one")
    made.write(tick_of({"A|m|default": {"e1": 1_000_000}}, stamp(5, 2), TICK.snapshot))
    assert made.stray() is None


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_the_pen_of_a_topic_that_forgets_is_not_taken(topic: Topic, policy: str) -> None:
    topic.policy = policy
    with pytest.raises(HeadraceError, match=f"weights has cleanup.policy {policy}; it must be compact"):
        take(writer())


def test_a_broker_that_does_not_tell_the_policy_is_no_reason_to_stop(topic: Topic) -> None:
    topic.policy = None
    assert take(writer()) == Pen(5, 0, None)


def test_the_pen_of_a_topic_with_two_partitions_is_not_taken(topic: Topic) -> None:
    topic.partitions = 2
    with pytest.raises(HeadraceError, match="has 2 partitions; it must have 1"):
        take(writer())


def test_a_broker_that_is_not_there_is_named() -> None:
    assert missing(NOBODY, ["weights"]) == "broker 127.0.0.1:1 does not answer"


def test_a_broker_that_is_not_there_tells_no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.solver.reach.DESCRIBE_TIMEOUT_S", 0.2)
    assert cleanup_policy(NOBODY, "weights") is None
