"""Sets of records appear together or not at all, and by one writer at a time."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.clients import producer_options
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.bus.transactions import Committed, Failed, Fenced, Ready, TransactionalPublisher
from headrace.schemas.topics import DECISIONS, FLEET, WEIGHTS, TopicSettings, topic_table


def values(kafka: KafkaSettings, topic: str) -> list[bytes | None]:
    reader = CompactedReader(kafka, [topic])
    found: list[bytes | None] = []
    while not reader.caught_up:
        found += [record.value for record in reader.poll(5.0)]
    reader.close()
    return found


def read_on_to(value: bytes, reader: CompactedReader) -> None:
    deadline = time.monotonic() + 30
    while value not in [record.value for record in reader.poll(0.5)]:
        assert time.monotonic() < deadline


def writer(kafka: KafkaSettings, topics: TopicSettings) -> TransactionalPublisher:
    return TransactionalPublisher(kafka, f"{topics.prefix}writer")


def test_a_committed_set_is_read_in_its_order_over_several_topics(broker: Broker, topics: TopicSettings) -> None:
    table = topic_table(topics)
    weights, decisions = table[WEIGHTS].name, table[DECISIONS].name
    publisher = writer(broker.kafka, topics)
    assert publisher.init() == Ready()
    records = [(weights, b"a", b"1"), (weights, b"b", None), (weights, b"!commit", b"2"), (decisions, b"1", b"d")]
    assert publisher.publish_all(records) == Committed()
    publisher.close()
    assert values(broker.kafka, weights) == [b"1", None, b"2"]
    assert values(broker.kafka, decisions) == [b"d"]


def test_an_empty_set_is_committed(broker: Broker, topics: TopicSettings) -> None:
    publisher = writer(broker.kafka, topics)
    assert publisher.init() == Ready()
    assert publisher.publish_all([]) == Committed()
    publisher.close()


def test_nothing_is_published_before_init() -> None:
    outcome = TransactionalPublisher(KafkaSettings("127.0.0.1:1"), "w").publish_all([("t", b"k", b"v")])
    assert isinstance(outcome, Failed)
    assert outcome.needs_init


def test_init_without_a_broker_fails_with_the_clients_reason() -> None:
    outcome = TransactionalPublisher(KafkaSettings("127.0.0.1:1"), "w").init(timeout_s=0.3)
    assert isinstance(outcome, Failed)
    assert outcome.reason


def test_a_younger_writer_fences_the_older_one_whose_records_are_never_seen(
    broker: Broker, topics: TopicSettings
) -> None:
    topic = topic_table(topics)[WEIGHTS].name
    older, younger = writer(broker.kafka, topics), writer(broker.kafka, topics)
    assert older.init() == Ready()
    assert older.publish_all([(topic, b"k", b"older")]) == Committed()
    assert younger.init() == Ready()
    assert isinstance(older.publish_all([(topic, b"k", b"zombie")]), Fenced)
    assert younger.publish_all([(topic, b"k", b"younger")]) == Committed()
    after = older.publish_all([(topic, b"k", b"zombie again")])
    assert isinstance(after, Failed)
    assert after.needs_init
    younger.close()
    assert values(broker.kafka, topic) == [b"older", b"younger"]


class Interrupted(list[tuple[str, bytes, bytes | None]]):
    """A set in whose midst another writer takes the pen, and the client hears of it before the next record."""

    other: TransactionalPublisher

    def __iter__(self) -> Iterator[tuple[str, bytes, bytes | None]]:
        yield self[0]
        assert self.other.init() == Ready()
        time.sleep(2.0)
        yield from self[1:]


def test_a_writer_that_is_fenced_between_two_records_of_a_set_is_fenced_and_not_just_broken(
    broker: Broker, topics: TopicSettings
) -> None:
    weights = topic_table(topics)[WEIGHTS].name
    older = writer(broker.kafka, topics)
    assert older.init() == Ready()
    records = Interrupted([(weights, b"a", b"1"), (weights, b"b", b"2")])
    records.other = writer(broker.kafka, topics)
    assert isinstance(older.publish_all(records), Fenced)
    records.other.close()


def test_a_fenced_writer_may_take_the_pen_back(broker: Broker, topics: TopicSettings) -> None:
    topic = topic_table(topics)[FLEET].name
    first, second = writer(broker.kafka, topics), writer(broker.kafka, topics)
    assert first.init() == Ready()
    assert second.init() == Ready()
    assert isinstance(first.publish_all([(topic, b"k", b"0")]), Fenced)
    assert first.init() == Ready()
    assert first.publish_all([(topic, b"k", b"1")]) == Committed()
    assert isinstance(second.publish_all([(topic, b"k", b"2")]), Fenced)
    assert values(broker.kafka, topic) == [b"1"]


@pytest.mark.apache
def test_what_a_killed_writer_left_open_is_never_seen_and_holds_nobody_back(
    apache_broker: Broker, apache_topics: TopicSettings
) -> None:
    topic = topic_table(apache_topics)[WEIGHTS].name
    dead = Producer(producer_options(apache_broker.kafka, f"{apache_topics.prefix}writer"))
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(topic, key=b"k", value=b"half a snapshot")
    assert dead.flush(30) == 0
    assert values(apache_broker.kafka, topic) == []

    publisher = writer(apache_broker.kafka, apache_topics)
    assert publisher.init() == Ready()
    assert publisher.publish_all([(topic, b"k", b"whole")]) == Committed()
    publisher.close()
    assert values(apache_broker.kafka, topic) == [b"whole"]


def test_a_reader_that_follows_goes_on_with_the_next_writer_past_a_set_that_a_fenced_one_left_open(
    broker: Broker, topics: TopicSettings
) -> None:
    topic = topic_table(topics)[WEIGHTS].name
    older, younger = Producer(producer_options(broker.kafka, f"{topics.prefix}writer")), writer(broker.kafka, topics)
    older.init_transactions(30)
    reader = CompactedReader(broker.kafka, [topic])
    older.begin_transaction()
    older.produce(topic, key=b"k", value=b"half a snapshot")
    assert older.flush(30) == 0
    while not reader.caught_up:
        reader.poll(1.0)
    assert younger.init() == Ready()
    assert younger.publish_all([(topic, b"k", b"whole")]) == Committed()
    read_on_to(b"whole", reader)
    with pytest.raises(KafkaException):
        older.commit_transaction(1.0)
    assert younger.publish_all([(topic, b"k", b"whole again")]) == Committed()
    read_on_to(b"whole again", reader)
    reader.close()
    younger.close()


@pytest.mark.embedded
def test_on_the_embedded_broker_nobody_waits_for_a_transaction_that_nobody_ends(embedded_broker: Broker) -> None:
    topics = fresh_topics()
    apply_topics(embedded_broker.kafka, topics)
    topic = topic_table(topics)[WEIGHTS].name
    dead = Producer(producer_options(embedded_broker.kafka, f"{topics.prefix}dead"))
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(topic, key=b"k", value=b"half a snapshot")
    assert dead.flush(30) == 0
    publisher = writer(embedded_broker.kafka, topics)
    assert publisher.init() == Ready()
    assert publisher.publish_all([(topic, b"k", b"whole")]) == Committed()
    assert values(embedded_broker.kafka, topic) == [b"half a snapshot", b"whole"]
    publisher.close()


@pytest.mark.apache
def test_a_broker_killed_between_sets_leaves_every_set_whole(
    apache_broker: Broker, apache_topics: TopicSettings
) -> None:
    topic = topic_table(apache_topics)[WEIGHTS].name
    publisher = writer(apache_broker.kafka, apache_topics)
    assert publisher.init() == Ready()
    acknowledged: list[int] = []
    deadline = time.monotonic() + 90
    for number in range(40):
        if number == 15:
            apache_broker.kill()
            outcome = publisher.publish_all([(topic, b"k", b"%d" % number)] * 3, timeout_s=1.0)
            assert isinstance(outcome, Failed)
            apache_broker.restart()
            continue
        outcome = publisher.publish_all([(topic, b"k", b"%d" % number)] * 3)
        if outcome == Committed():
            acknowledged.append(number)
        elif isinstance(outcome, Failed) and outcome.needs_init:
            while publisher.init() != Ready():
                assert time.monotonic() < deadline
    publisher.close()
    seen = [int(value or b"") for value in values(apache_broker.kafka, topic)]
    assert {number: seen.count(number) for number in seen} == dict.fromkeys(seen, 3)
    assert set(acknowledged) <= set(seen)
    assert max(acknowledged) == 39
