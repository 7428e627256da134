"""Brokers start, stop, die with their parents, and say what is wrong; topics are provisioned and compared."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.infra.brokers import start_broker
from headrace.infra.brokers.contract import Broker, BrokerError
from headrace.infra.kafka_edge import UnreachableError
from headrace.infra.processes.ports import free_ports, is_taken
from headrace.infra.provision import apply_topics, diff_topics
from headrace.schemas.bus.publisher import Published, Publisher
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.topics import ROLES, TopicSettings, topic_table

HEADRACE = str(Path(sys.executable).with_name("headrace"))


def wait_until_free(port: int) -> None:
    deadline = time.monotonic() + 30
    while is_taken(port):
        assert time.monotonic() < deadline, f"{port} is still taken"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "kind", [pytest.param("embedded", marks=pytest.mark.embedded), pytest.param("apache", marks=pytest.mark.apache)]
)
def test_a_broker_dies_with_a_parent_that_is_killed(kind: str) -> None:
    argv = [HEADRACE, "broker", "up", "--kind", kind, "--port", "0", "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        address = json.loads(parent.stdout.readline())["bootstrap_servers"]
        port = int(address.rpartition(":")[2])
        assert is_taken(port)
        parent.send_signal(signal.SIGKILL)
    wait_until_free(port)


@pytest.mark.embedded
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_broker_up_stops_on_a_signal_with_status_0_and_leaves_nothing(how: signal.Signals) -> None:
    argv = [HEADRACE, "broker", "up", "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.split(";")[0].rpartition(":")[2])
        assert line.startswith("embedded broker ready at 127.0.0.1:")
        process.send_signal(how)
        rest = process.stdout.read()
    assert process.returncode == 0
    assert rest.endswith("stopped\n")
    wait_until_free(port)


@pytest.mark.embedded
def test_broker_up_ends_with_status_1_when_its_broker_dies() -> None:
    argv = [HEADRACE, "broker", "up", "--port", "0", "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        children = subprocess.run(
            ["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
        )
        pids = [int(line.split()[0]) for line in children.stdout.splitlines() if "tansu" in line]
        os.kill(pids[0], signal.SIGKILL)
        assert "the embedded broker ended with status -9" in process.stderr.read()
    assert process.returncode == 1


@pytest.mark.embedded
def test_a_taken_port_is_named_with_what_to_do(embedded_broker: Broker) -> None:
    port = int(embedded_broker.kafka.bootstrap_servers.rpartition(":")[2])
    with pytest.raises(BrokerError, match=f"port {port} is taken; choose another with --port"):
        start_broker("embedded", port=port)


@pytest.mark.embedded
def test_an_external_broker_is_reached_and_left_alone(embedded_broker: Broker) -> None:
    with start_broker("external", kafka=embedded_broker.kafka) as external:
        assert external.kafka == embedded_broker.kafka
        with pytest.raises(BrokerError, match="does not kill it"):
            external.kill()
    assert diff_topics(embedded_broker.kafka, TopicSettings(prefix="never-made."))


@pytest.mark.embedded
def test_a_publisher_goes_on_when_a_broker_came_back_without_its_data() -> None:
    with start_broker("embedded") as broker:
        topics = TopicSettings(partitions=1)
        topic = topic_table(topics)["fleet"].name
        apply_topics(broker.kafka, topics)
        publisher = Publisher(broker.kafka)
        for _ in range(10):
            publisher.publish(topic, b"k", b"v")
        assert publisher.flush(30) == 0
        broker.restart()
        apply_topics(broker.kafka, topics)
        deadline = time.monotonic() + 60
        while publisher.counts.delivered < 20:
            assert time.monotonic() < deadline, publisher.counts
            assert publisher.publish(topic, b"k", b"v") == Published()
            publisher.flush(1)
        publisher.close()


def test_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert not any(is_taken(port) for port in ports)


def test_applied_topics_differ_in_nothing_and_applying_again_changes_nothing(
    broker: Broker, topics: TopicSettings
) -> None:
    assert diff_topics(broker.kafka, topics) == ()
    outcomes = apply_topics(broker.kafka, topics)
    assert [outcome.role for outcome in outcomes] == list(ROLES)
    assert {outcome.outcome for outcome in outcomes} == {"unchanged"}


def test_a_missing_topic_is_a_difference(broker: Broker) -> None:
    sentences = [each.sentence for each in diff_topics(broker.kafka, TopicSettings(prefix="never-made."))]
    assert sentences == [f"never-made.{role} is missing" for role in ROLES]


def test_a_setting_that_differs_is_named_with_both_values_and_mended(broker: Broker, topics: TopicSettings) -> None:
    longer = replace(topics, history_ms=topics.history_ms * 2)
    sentences = {each.sentence for each in diff_topics(broker.kafka, longer)}
    assert f"{topics.prefix}decisions: retention.ms is 604800000; should be 1209600000" in sentences
    assert f"{topics.prefix}state.engine: min.compaction.lag.ms is 604800000; should be 1209600000" in sentences
    assert {o.role for o in apply_topics(broker.kafka, longer) if o.outcome == "mended"} >= {
        "decisions",
        "state.engine",
    }
    assert diff_topics(broker.kafka, longer) == ()


def test_a_wrong_partition_count_is_named_and_left(broker: Broker, topics: TopicSettings) -> None:
    wider = replace(topics, partitions=topics.partitions + 1)
    by_role = {outcome.role: outcome for outcome in apply_topics(broker.kafka, wider)}
    assert by_role["signals.engine"].outcome == "cannot be mended"
    assert by_role["weights"].outcome == "unchanged"
    (difference,) = by_role["signals.engine"].differences
    assert (difference.has, difference.should) == ("2", "3")
    assert "keyed state cannot be re-partitioned" in difference.sentence
    assert diff_topics(broker.kafka, topics) == ()


def test_a_broker_that_is_away_is_named_with_what_its_client_said_last() -> None:
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1 does not answer: .*Connection refused"):
        diff_topics(KafkaSettings("127.0.0.1:1"), TopicSettings())
