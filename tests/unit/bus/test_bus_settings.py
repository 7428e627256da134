"""What can be known of Kafka's settings without a broker."""

import pytest

from headrace.schemas.bus.clients import consumer_options, producer_options
from headrace.schemas.bus.settings import FIXED_OPTIONS, KafkaSettings, kafka_problems


def test_addresses_with_ports_are_fine() -> None:
    assert kafka_problems(KafkaSettings("a:9092, b.example:9093,[::1]:9092")) == ()


@pytest.mark.parametrize(
    "address",
    [
        *("", "broker", "broker:", ":9092", "broker:port", "broker:0", "broker:65536", "b:٣", "broker:" + "1" * 5_000),
        *("http://x:9", "SSL://broker:9093", "a b:9092", "user@broker:9092", "::1:9092"),
    ],
)
def test_an_address_without_host_and_port_is_named(address: str) -> None:
    assert kafka_problems(KafkaSettings(f"good:9092,{address}")) == (
        f"kafka.bootstrap_servers has {address!r}; expected host:port",
    )


@pytest.mark.parametrize("name", sorted(FIXED_OPTIONS))
def test_an_option_that_correctness_rests_on_is_refused_with_its_reason(name: str) -> None:
    problems = kafka_problems(KafkaSettings(options={name: "x"}))
    assert problems == (f"kafka.options.{name!r} is 'x'; it {FIXED_OPTIONS[name]}",)


def test_the_password_in_the_options_is_in_no_repr() -> None:
    assert "hush" not in repr(KafkaSettings(options={"sasl.password": "hush"}))


def test_every_producer_is_murmur2_idempotent_and_waits_for_all_replicas() -> None:
    options = producer_options(KafkaSettings(options={"partitioner": "consistent", "linger.ms": "50"}))
    assert options["partitioner"] == "murmur2_random"
    assert options["enable.idempotence"] is True
    assert options["acks"] == "all"
    assert options["linger.ms"] == "50"
    assert "transactional.id" not in options


def test_every_consumer_reads_committed_records_only_and_says_where_a_partition_ends() -> None:
    options = consumer_options(KafkaSettings(options={"isolation.level": "read_uncommitted"}))
    assert options["isolation.level"] == "read_committed"
    assert options["enable.partition.eof"] is True
    assert options["enable.auto.commit"] is False


def test_the_embedded_broker_is_read_without_waiting_for_what_is_open() -> None:
    assert consumer_options(KafkaSettings(broker="embedded"))["isolation.level"] == "read_uncommitted"


def test_the_callers_options_win() -> None:
    assert consumer_options(KafkaSettings(), "g", **{"auto.offset.reset": "latest"})["auto.offset.reset"] == "latest"


def test_a_group_on_the_embedded_broker_has_the_session_that_it_can_bear() -> None:
    assert consumer_options(KafkaSettings(broker="embedded"), "g")["session.timeout.ms"] == "6000"
    assert "session.timeout.ms" not in consumer_options(KafkaSettings(), "g")
