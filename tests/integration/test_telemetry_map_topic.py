"""`headrace map` on a live topic: it reads the newest records, commits nothing, and says where there is nothing."""

import json

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.kafka_edge import MissingTopicError
from headrace.schemas.bus.clients import producer_options
from headrace.schemas.codec import encode
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.topics import DEAD_LETTERS, FLEET, SIGNALS_DEMAND, TopicSettings
from telemetry_inputs import ENGINE, records


def shell(broker: Broker, *arguments: str) -> Result:
    flags = ("--bootstrap", broker.kafka.bootstrap_servers, "--set", f"kafka.broker={broker.kafka.broker}")
    return CliRunner().invoke(headrace, [*arguments, *flags])


def run(broker: Broker, *arguments: str) -> Result:
    return shell(broker, "map", *arguments)


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


def publish(broker: Broker, topic: str, key: bytes, value: bytes) -> None:
    producer = Producer(producer_options(broker.kafka))
    producer.produce(topic, value, key=key, partition=0)
    assert producer.flush(30) == 0


def test_an_engine_that_the_fleet_has_by_another_name_is_told_by_map_test(
    broker: Broker, topics: TopicSettings, topic: str
) -> None:
    spec = EngineSpec("vllm-a-0", "site", ("m",), (), (), "p", None, None, drain=False)
    publish(broker, topics.prefix + FLEET, spec.key, encode(spec))
    flags = ("--preset", "vllm_v1", "--carrier", "telegraf_json", "--set", f"topics.prefix={topics.prefix}")
    result = run(broker, "test", "--topic", topic, *flags)
    assert result.exit_code == 0, result.output
    assert f"! {ENGINE} is not in the fleet (which has vllm-a-0)" in result.stdout
    assert result.stdout.endswith("fits, but see the ! lines above\n")


def test_states_that_are_missing_since_the_fleet_has_no_such_engine_name_the_engine(
    broker: Broker, topics: TopicSettings
) -> None:
    reason = RejectReason.UNKNOWN_ENGINE
    letter = DeadLetter("signals", 0, 0, 1_000, ENGINE.encode(), b"v", reason, "no such engine", "streams")
    publish(broker, topics.prefix + DEAD_LETTERS, letter.key, encode(letter))
    result = shell(broker, "signals", "states", "--set", f"topics.prefix={topics.prefix}")
    assert result.exit_code == 1, result.output
    assert "no engine has a state" in result.stdout
    assert f"signals of {ENGINE} were refused in the last hour (UNKNOWN_ENGINE)" in result.stderr
