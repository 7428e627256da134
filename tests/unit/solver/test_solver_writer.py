"""The pen without a broker: from whom it is not taken, for which topics, and when a record by another hand counts."""

from collections.abc import Sequence

import pytest

from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.bus.transactions import Committed, Failed, Fenced, Outgoing, Ready
from headrace.schemas.codec import encode
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import InputOffsets
from headrace.solver import publish, shadow
from headrace.solver.core.answer.last_commit import Sent
from headrace.solver.pen import NoPen, Pen
from headrace.solver.ports import Writer
from headrace.solver.publish import SnapshotWriter
from headrace.solver.reach import cleanup_policy, missing
from headrace.solver.shadow import ShadowWriter
from solver_inputs import TOPICS
from solver_ticks import stamp, tick_of

NOBODY = KafkaSettings(bootstrap_servers="127.0.0.1:1")
TICK = tick_of({"A|m|default": {"e1": 1_000_000}}, stamp(5, 1))


class Topic:
    """The weights topic in memory, or that of shadows: transactions append, the one reader hands out what is new."""

    def __init__(self) -> None:
        self.log: list[RawRecord] = []
        self.read = 0
        self.outcome: Committed | Fenced | Failed = Committed()
        self.partitions = 1
        self.policy: str | None = "compact"
        self.taken = 0
        self.away = False

    @property
    def caught_up(self) -> bool:
        return self.read == len(self.log) and not self.away

    def init(self, timeout_s: float) -> Ready:
        assert timeout_s > 0
        self.taken += 1
        return Ready()

    def publish_all(self, records: Sequence[Outgoing]) -> Committed | Fenced | Failed:
        if isinstance(self.outcome, Committed):
            for topic, key, value in records:
                if topic in (TOPICS["weights"].name, TOPICS["shadow"].name):
                    self.append(key, value)
        return self.outcome

    def append(self, key: bytes, value: bytes | None) -> None:
        self.log.append(RawRecord("weights", 0, len(self.log), 0, key, value))

    def poll(self, timeout_s: float) -> list[RawRecord]:
        assert timeout_s >= 0
        if self.away:
            return []
        new, self.read = self.log[self.read :], len(self.log)
        return new

    def positions(self) -> tuple[InputOffsets, ...]:
        return (InputOffsets("weights", (0,) * self.partitions),)

    def close(self) -> None:
        self.read = 0


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    made = Topic()
    for module in (publish, shadow):
        monkeypatch.setattr(module, "TransactionalPublisher", lambda *_, **__: made)
        monkeypatch.setattr(module, "CompactedReader", lambda *_, **__: made)
    monkeypatch.setattr(publish, "cleanup_policy", lambda *_: made.policy)
    return made


def writer() -> SnapshotWriter:
    return SnapshotWriter(NOBODY, TOPICS, lambda: 5_000)


def take(made: Writer, sent: Sent | None = None) -> Pen | NoPen | Fenced:
    return made.take_pen(lambda: False, sent)


@pytest.fixture(params=["weights", "shadow"])
def either(request: pytest.FixtureRequest, topic: Topic) -> Writer:
    """Each kind of writer, which has taken the pen and written version 1 of epoch 5."""
    made = writer() if request.param == "weights" else ShadowWriter(NOBODY, TOPICS, lambda: 5_000)
    take(made)
    made.write(TICK)
    assert topic.taken == 1
    return made


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


def test_a_writer_that_failed_does_not_take_the_pen_back_from_a_younger_one(topic: Topic, either: Writer) -> None:
    topic.outcome = Failed("commit timed out", in_doubt=True, needs_init=True)
    either.write(TICK)
    topic.append(b"!commit", encode(tick_of({}, stamp(6, 2)).snapshot.commit))
    for _ in range(2):
        assert take(either, Sent(5, 2)) == Fenced(
            "epoch 6, version 2 is the last in the topic; this solver came to epoch 5, version 2"
        )
    assert topic.taken == 1


def test_a_writer_that_failed_takes_the_pen_anew_where_its_own_snapshot_is_the_last(
    topic: Topic, either: Writer
) -> None:
    topic.append(b"!commit", encode(tick_of({}, stamp(5, 2)).snapshot.commit))  # its own: the answer was lost
    assert isinstance(take(either, Sent(5, 2)), Pen)
    assert topic.taken == 2


def test_a_writer_that_cannot_read_whether_it_was_overtaken_takes_the_pen_from_nobody(
    topic: Topic, either: Writer
) -> None:
    topic.away = True
    assert take(either, Sent(5, 2)) == NoPen("it cannot be read whether a younger solver has written")
    stopping = either.take_pen(lambda: True, Sent(5, 2))
    assert stopping == NoPen("stopped while looking for a younger solver's snapshots")
    assert topic.taken == 1


def test_a_writer_that_was_made_leader_takes_the_pen_from_anybody(topic: Topic, either: Writer) -> None:
    topic.append(b"!commit", encode(tick_of({}, stamp(6, 2)).snapshot.commit))
    assert isinstance(take(either), Pen)
    assert topic.taken == 2


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
