"""`headrace map` on a live topic: it reads the newest records, commits nothing, and says where there is nothing."""

import json

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.kafka_edge import MissingTopicError
from headrace.schemas.bus.clients import producer_options
from headrace.schemas.topics import SIGNALS_DEMAND, TopicSettings
from telemetry_inputs import ENGINE, records


def run(broker: Broker, *arguments: str) -> Result:
    flags = ("--bootstrap", broker.kafka.bootstrap_servers, "--set", f"kafka.broker={broker.kafka.broker}")
    return CliRunner().invoke(headrace, ["map", *arguments, *flags])


@pytest.fixture
def topic(broker: Broker, topics: TopicSettings) -> str:
    """A topic with foreign records on two partitions; whose name it is does not matter."""
    name = topics.prefix + SIGNALS_DEMAND
    producer = Producer(producer_options(broker.kafka))
    for record in records("telegraf_json"):
        producer.produce(name, record.value, key=record.key, timestamp=record.timestamp_ms)
    producer.flush(10)
    return name


def test_a_topic_is_tried_as_a_file_is_and_a_second_time_too(broker: Broker, topic: str) -> None:
    for _ in range(2):
        result = run(broker, "test", "--topic", topic, "--preset", "vllm_v1", "--carrier", "telegraf_json", "--json")
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["messages"] == 48
        assert list(found["engines"]) == [ENGINE]


def test_init_proposes_from_a_topic_and_limit_bounds_what_is_read(broker: Broker, topic: str) -> None:
    result = run(broker, "init", "--topic", topic, "--limit", "20", "--json")
    assert result.exit_code == 0, result.output
    proposal = json.loads(result.stdout)
    assert (proposal["carrier"], proposal["preset"]) == ("telegraf_json", "vllm_v1")
    assert proposal["messages"] <= 20


def test_a_topic_that_does_not_exist_is_told(broker: Broker) -> None:
    result = run(broker, "init", "--topic", "no-such-topic")
    assert isinstance(result.exception, MissingTopicError)


def test_an_empty_topic_has_nothing_to_try(broker: Broker, topics: TopicSettings) -> None:
    name = topics.prefix + SIGNALS_DEMAND
    result = run(broker, "test", "--topic", name, "--preset", "vllm_v1", "--carrier", "json")
    assert result.exit_code == 1
    assert "there are no records to try it on" in result.stdout
