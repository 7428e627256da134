"""Readers and writers on real brokers: reading to the end, waiting for topics, tombstones, partitions, headers."""

import time
from collections.abc import Callable

import pytest

from headrace.infra.brokers.contract import Broker
from headrace.infra.kafka_edge import MissingTopicError
from headrace.infra.provision import apply_topics
from headrace.infra.topic_readers.latest import read_latest
from headrace.schemas.bus.compacted import MAX_POLL_RECORDS, CompactedReader
from headrace.schemas.bus.publisher import Dropped, Published, Publisher
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import FLEET, PROFILES, SIGNALS_ENGINE, STATE_ENGINE, TopicSettings, topic_table
from headrace.schemas.weights import InputOffsets

JAVA_MURMUR2 = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
"""Values that Kafka's own Java tests hold its hash against."""


def read_until(reader: CompactedReader, done: Callable[[list[RawRecord]], bool]) -> list[RawRecord]:
    records: list[RawRecord] = []
    deadline = time.monotonic() + 60
    while not done(records):
        assert time.monotonic() < deadline, f"{len(records)} records, caught up: {reader.caught_up}"
        polled = reader.poll(1.0)
        assert len(polled) <= MAX_POLL_RECORDS
        records += polled
    return records


def publish(kafka: KafkaSettings, topic: str, records: dict[bytes, bytes | None]) -> None:
    publisher = Publisher(kafka)
    for key, value in records.items():
        assert publisher.publish(topic, key, value) == Published()
    assert publisher.close(30) == 0
    assert publisher.counts.delivered == len(records)


def test_a_reader_that_starts_late_gets_every_record_and_then_says_that_it_caught_up(
    broker: Broker, topics: TopicSettings
) -> None:
    topic = topic_table(topics)[SIGNALS_ENGINE].name
    publish(broker.kafka, topic, {b"engine-%d" % i: b"%d" % i for i in range(3_000)})
    reader = CompactedReader(broker.kafka, [topic])
    assert not reader.caught_up
    records = read_until(reader, lambda _: reader.caught_up)
    reader.close()
    assert sorted(int(record.value or b"") for record in records) == list(range(3_000))


def test_a_reader_may_begin_at_an_instant_and_then_gets_what_comes(broker: Broker, topics: TopicSettings) -> None:
    table = topic_table(topics)
    old_and_new, other = table[FLEET].name, table[SIGNALS_ENGINE].name
    publish(broker.kafka, old_and_new, {b"old": b"1"})
    publish(broker.kafka, other, {b"from the beginning": b"1"})
    (first,) = read_latest(broker.kafka, old_and_new).values()
    while time.time_ns() // 1_000_000 <= first.timestamp_ms:
        time.sleep(0.001)
    publish(broker.kafka, old_and_new, {b"new": b"2"})
    (second,) = (r for r in read_latest(broker.kafka, old_and_new).values() if r.key == b"new")
    reader = CompactedReader(broker.kafka, [old_and_new, other], from_ms={old_and_new: second.timestamp_ms})
    found = read_until(reader, lambda _: reader.caught_up)
    assert sorted(record.key or b"" for record in found) == [b"from the beginning", b"new"]
    reader.close()
    late = CompactedReader(broker.kafka, [old_and_new], from_ms={old_and_new: second.timestamp_ms + 3_600_000})
    earlier = read_until(late, lambda _: late.caught_up)
    # Where no record is of that time, the embedded broker answers with its first one.
    assert earlier == [] or broker.kafka.broker == "embedded"
    publish(broker.kafka, old_and_new, {b"after": b"3"})
    (after,) = read_until(late, bool)
    late.close()
    assert after.key == b"after"


def test_positions_lie_just_above_what_was_handed_out(broker: Broker, topics: TopicSettings) -> None:
    table = topic_table(topics)
    publish(broker.kafka, table[SIGNALS_ENGINE].name, {b"engine-%d" % i: b"" for i in range(100)})
    reader = CompactedReader(broker.kafka, [table[FLEET].name, table[SIGNALS_ENGINE].name])
    assert reader.positions() == (InputOffsets(table[FLEET].name, ()), InputOffsets(table[SIGNALS_ENGINE].name, ()))
    read_until(reader, lambda _: reader.caught_up)
    fleet, signals = reader.positions()
    reader.close()
    assert fleet == InputOffsets(table[FLEET].name, (0,))
    assert len(signals.offsets) == topics.partitions
    assert sum(signals.offsets) == 100


def test_an_empty_topic_is_at_its_end_at_once(broker: Broker, topics: TopicSettings) -> None:
    reader = CompactedReader(broker.kafka, [topic_table(topics)[STATE_ENGINE].name])
    assert read_until(reader, lambda _: reader.caught_up) == []
    reader.close()


def test_a_reader_that_comes_before_its_topics_waits_for_them_and_says_so(
    broker: Broker, topics: TopicSettings
) -> None:
    later = TopicSettings(prefix=f"{topics.prefix}later.", partitions=1)
    topic = topic_table(later)[FLEET].name
    said: list[str] = []
    reader = CompactedReader(broker.kafka, [topic], on_missing=said.append)
    assert reader.poll(0.5) == []
    assert not reader.caught_up
    address = broker.kafka.bootstrap_servers
    assert said == [f"no topic {topic} at {address}: run `headrace topics apply`; waiting for it"]
    apply_topics(broker.kafka, later)
    publish(broker.kafka, topic, {b"engine-a": b"here"})
    records = read_until(reader, bool)
    reader.close()
    assert [record.value for record in records] == [b"here"]


def test_a_reader_that_caught_up_gets_what_comes_after(broker: Broker, topics: TopicSettings) -> None:
    topic = topic_table(topics)[FLEET].name
    reader = CompactedReader(broker.kafka, [topic])
    read_until(reader, lambda _: reader.caught_up)
    publish(broker.kafka, topic, {b"engine-a": b"new"})
    assert [record.value for record in read_until(reader, bool)] == [b"new"]
    assert reader.caught_up
    reader.close()


def test_a_tombstone_is_handed_out_and_its_key_is_not_among_the_latest(broker: Broker, topics: TopicSettings) -> None:
    topic = topic_table(topics)[FLEET].name
    publish(broker.kafka, topic, {b"engine-a": b"1", b"engine-b": b"1"})
    publish(broker.kafka, topic, {b"engine-a": None})
    reader = CompactedReader(broker.kafka, [topic])
    records = read_until(reader, lambda _: reader.caught_up)
    reader.close()
    assert [(record.key, record.value) for record in records][-1] == (b"engine-a", None)
    assert list(read_latest(broker.kafka, topic)) == [b"engine-b"]


def test_a_topic_that_is_not_there_is_said_to_be_missing_with_what_to_do(broker: Broker, topics: TopicSettings) -> None:
    with pytest.raises(MissingTopicError, match=f"no topic {topics.prefix}nowhere at .*headrace topics apply"):
        read_latest(broker.kafka, f"{topics.prefix}nowhere", timeout_s=0.5)


def test_keys_lie_in_the_partition_that_java_would_choose(broker: Broker, topics: TopicSettings) -> None:
    topic = topic_table(topics)[SIGNALS_ENGINE].name
    publish(broker.kafka, topic, dict.fromkeys(JAVA_MURMUR2, b""))
    found = {key: record.partition for key, record in read_latest(broker.kafka, topic).items()}
    assert found == {key: (hashed & 0x7FFFFFFF) % topics.partitions for key, hashed in JAVA_MURMUR2.items()}


def test_headers_and_timestamps_come_back_as_they_went(broker: Broker, topics: TopicSettings) -> None:
    topic = topic_table(topics)[PROFILES].name
    publisher = Publisher(broker.kafka)
    headers = (("a", b"1"), ("a", b"2"), ("empty", b""))
    publisher.publish(topic, b"p", b"v", timestamp_ms=1_700_000_000_123, headers=headers)
    assert publisher.close(30) == 0
    record = read_latest(broker.kafka, topic)[b"p"]
    assert record.timestamp_ms == 1_700_000_000_123
    assert record.headers == headers


def test_a_record_above_the_size_limit_is_dropped_with_its_reason(broker: Broker, topics: TopicSettings) -> None:
    publisher = Publisher(broker.kafka)
    outcome = publisher.publish(topic_table(topics)[FLEET].name, b"k", bytes(9 * 1024 * 1024))
    publisher.close()
    assert isinstance(outcome, Dropped)
    assert outcome.reason == "TOO_LARGE"
    assert publisher.counts.dropped == 1


def test_a_publisher_without_a_broker_takes_what_its_queue_holds_and_drops_the_rest() -> None:
    kafka = KafkaSettings("127.0.0.1:1", options={"queue.buffering.max.messages": "10"})
    said: list[str] = []
    publisher = Publisher(kafka, on_error=said.append)
    outcomes = [publisher.publish("t", b"k", b"v") for _ in range(12)]
    assert outcomes[:10] == [Published()] * 10
    assert [outcome.reason for outcome in outcomes[10:] if isinstance(outcome, Dropped)] == ["QUEUE_FULL"] * 2
    assert publisher.close(0.5) == 10
    assert publisher.counts.published == 10
    assert said
