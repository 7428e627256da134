"""The worker when the broker is away, when it asks for a login, and when its topics are not what they must be."""

import time
from pathlib import Path

import numpy as np
import pytest
from streams_run import Bus, Worker, a_second

from headrace.infra.brokers.apache import Login, create
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.topics import TopicSettings
from headrace.streams.settings import StreamsSettings
from headrace.streams.topic_check import TopicsError, wait_for_topics

pytestmark = pytest.mark.apache
SETTINGS = StreamsSettings()
ENGINES = [f"engine-{i}" for i in range(6)]


def test_a_broker_that_is_killed_and_restarted_costs_time_alone(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    bus = Bus(apache_broker.kafka, apache_topics)
    bus.announce(ENGINES)
    worker = Worker(bus, tmp_path)
    dice, second = np.random.default_rng(7), 0
    try:
        worker.wait_until("streams ready")
        for _ in range(2):
            for _ in range(100):
                second += 1
                bus.send_signals(a_second(second, dice))
                time.sleep(0.005)
            apache_broker.kill()
            for _ in range(20):
                second += 1
                bus.send_signals(a_second(second, dice))
            apache_broker.restart()
            bus.flush()
            bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, worker, timeout_s=120)
        assert worker.stop() == 0
    finally:
        worker.kill()


def test_a_login_of_librdkafkas_options_reaches_faust_too(tmp_path: Path) -> None:
    with create(login=Login("streams", "a secret")) as broker:
        broker.start()
        topics = TopicSettings(prefix="sasl.", partitions=2)
        apply_topics(broker.kafka, topics)
        bus = Bus(broker.kafka, topics)
        bus.announce(ENGINES)
        options = {f"kafka.options.{name}": value for name, value in broker.kafka.options.items()}
        worker = Worker(bus, tmp_path, **options)
        try:
            worker.wait_until("streams ready")
            dice = np.random.default_rng(8)
            for second in range(1, 4):
                bus.send_signals(a_second(second, dice))
            bus.flush()
            bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, worker)
            assert "a secret" not in worker.said()
        finally:
            worker.kill()


def test_topics_that_are_missing_or_of_other_partitions_end_the_start_with_the_reason(
    apache_broker: Broker, apache_topics: TopicSettings
) -> None:
    missing = TopicSettings(prefix="nowhere.")
    with pytest.raises(TopicsError, match=r"no topic nowhere\.signals\.engine.*headrace topics apply"):
        wait_for_topics(apache_broker.kafka, missing, 0.0)
    mixed = TopicSettings(
        prefix=apache_topics.prefix,
        names={"state.engine": f"{apache_topics.prefix}weights", "weights": f"{apache_topics.prefix}state.engine"},
        partitions=2,
    )
    with pytest.raises(TopicsError, match=r"weights has 1 partitions; .*signals\.engine has 2"):
        wait_for_topics(apache_broker.kafka, mixed, 0.0)
    assert wait_for_topics(apache_broker.kafka, apache_topics, 0.0)["signals.engine"] == 2


def test_without_a_broker_the_start_fails_after_the_wait() -> None:
    with pytest.raises(TopicsError, match="no broker answers"):
        wait_for_topics(KafkaSettings("127.0.0.1:1"), TopicSettings(), 0.0)
