"""What only a broker with a disk does: it comes back, it compacts, it trims. The readers bear it."""

import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.cimpl import NewTopic

from headrace.infra.brokers import start_broker
from headrace.infra.brokers.apache import Login
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics, diff_topics
from headrace.infra.topic_readers.latest import read_latest
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.publisher import Published, Publisher
from headrace.schemas.bus.security import read_security
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import SIGNALS_ENGINE, TopicSettings, topic_table

pytestmark = pytest.mark.apache


def drain(reader: CompactedReader, count: int) -> list[RawRecord]:
    records: list[RawRecord] = []
    deadline = time.monotonic() + 90
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records"
        records += reader.poll(1.0)
    return records


@pytest.mark.parametrize("how", ["restarted", "killed"])
def test_reader_and_writer_live_through_a_broker_that_goes_and_comes_back(
    how: str, apache_broker: Broker, apache_topics: TopicSettings
) -> None:
    topic = topic_table(apache_topics)[SIGNALS_ENGINE].name
    said: list[str] = []
    reader = CompactedReader(apache_broker.kafka, [topic], on_error=said.append)
    publisher = Publisher(apache_broker.kafka)
    for i in range(100):
        assert publisher.publish(topic, b"engine-%d" % (i % 7), b"%d" % i) == Published()
    assert publisher.flush(30) == 0
    records = drain(reader, 100)

    if how == "killed":
        apache_broker.kill()
        for i in range(100, 150):
            assert publisher.publish(topic, b"engine-%d" % (i % 7), b"%d" % i) == Published()
        assert reader.poll(0.5) == []
    apache_broker.restart()
    for i in range(150 if how == "killed" else 100, 200):
        assert publisher.publish(topic, b"engine-%d" % (i % 7), b"%d" % i) == Published()
    records += drain(reader, 100)
    assert publisher.close(60) == 0
    reader.close()

    by_key: dict[bytes | None, list[int]] = {}
    for record in records:
        by_key.setdefault(record.key, []).append(int(record.value or b""))
    assert by_key == {b"engine-%d" % k: list(range(k, 200, 7)) for k in range(7)}
    assert publisher.counts.delivered == 200
    assert publisher.counts.failed == 0
    assert said or how == "restarted"


def test_a_reader_of_a_compacted_topic_gets_the_newest_of_each_key_and_fewer_records_than_were_written(
    apache_broker: Broker, apache_topics: TopicSettings
) -> None:
    topic = f"{apache_topics.prefix}compacting"
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    admin = admin_client(apache_broker.kafka)
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result()
    publisher = Publisher(apache_broker.kafka)
    deadline = time.monotonic() + 60
    written = held = 0
    while held >= written:
        assert time.monotonic() < deadline, f"nothing was compacted: {held} of {written}"
        for i in range(50):
            publisher.publish(topic, b"k%d" % (i % 5), b"%d" % (written + i))
        written += 50
        assert publisher.flush(30) == 0
        time.sleep(0.3)
        reader = CompactedReader(apache_broker.kafka, [topic])
        held = 0
        while not reader.caught_up:
            held += len(reader.poll(5.0))
        assert reader.positions()[0].offsets == (written,)
        reader.close()
    publisher.close()
    latest = read_latest(apache_broker.kafka, topic)
    assert {key: int(record.value or b"") for key, record in latest.items()} == {
        b"k%d" % k: written - 5 + k for k in range(5)
    }


def test_a_reader_whose_place_was_trimmed_away_goes_on_at_the_beginning_of_what_is_left(
    apache_broker: Broker, apache_topics: TopicSettings
) -> None:
    topic = topic_table(apache_topics)["decisions"].name
    publisher = Publisher(apache_broker.kafka)
    reader = CompactedReader(apache_broker.kafka, [topic])
    while not reader.caught_up:
        reader.poll(1.0)
    publisher.publish(topic, b"1", b"first")
    publisher.flush(30)
    assert [record.value for record in drain(reader, 1)] == [b"first"]
    reader.close()
    for i in range(10):
        publisher.publish(topic, b"1", b"%d" % i)
    assert publisher.close(30) == 0
    admin = admin_client(apache_broker.kafka)
    for future in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
        future.result()
    late = CompactedReader(apache_broker.kafka, [topic])
    assert [record.offset for record in drain(late, 5)] == [6, 7, 8, 9, 10]
    late.close()


def test_a_broker_that_asks_for_a_login_lets_in_who_has_it_and_tells_who_has_not() -> None:
    login = Login("headrace", "open-sesame")
    with start_broker("apache", login=login) as broker:
        topics = TopicSettings(partitions=1)
        apply_topics(broker.kafka, topics)
        assert diff_topics(broker.kafka, topics) == ()
        security = read_security(broker.kafka.options)
        assert security.sasl is not None
        assert (security.protocol, security.sasl.mechanism) == ("SASL_PLAINTEXT", "PLAIN")

        wrong = KafkaSettings(broker.kafka.bootstrap_servers, {**broker.kafka.options, "sasl.password": "guess"})
        said: list[str] = []
        reader = CompactedReader(wrong, [topic_table(topics)["fleet"].name], on_error=said.append)
        deadline = time.monotonic() + 30
        while not any("uthentication" in sentence for sentence in said):
            assert time.monotonic() < deadline, said
            assert reader.poll(0.5) == []
        reader.close()
