"""The worker when the broker is away, when it asks for a login, and when its topics are not what they must be."""

import time
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Producer
from streams_run import Bus, Worker, a_second, engine_signal

from headrace.infra.brokers import start_broker
from headrace.infra.brokers.apache import Login, create
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.clients import admin_client, producer_options
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import encode
from headrace.schemas.topics import SIGNALS_ENGINE, TopicSettings
from headrace.streams.settings import StreamsSettings
from headrace.streams.stop_guard import STOPPED_SHORT
from headrace.streams.topic_check import TopicsError, wait_for_topics

pytestmark = pytest.mark.apache
SETTINGS = StreamsSettings()
ENGINES = [f"engine-{i}" for i in range(6)]


class Said:
    """A log that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def debug(self, event: str, **_: object) -> None:
        self.events.append(event)

    info = warning = error = debug


def never() -> bool:
    return False


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
        # The coordinator of a broker that has just come back may still be loading, when the states are written already.
        assert worker.stop() in (0, STOPPED_SHORT), worker.said()[-3_000:]
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


def test_what_a_transaction_took_back_is_not_folded_and_a_topic_made_anew_begins_anew(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    bus = Bus(apache_broker.kafka, apache_topics)
    bus.announce(ENGINES)
    dice = np.random.default_rng(9)
    for second in range(1, 6):
        bus.send_signals(a_second(second, dice))
    bus.flush()
    writer = Producer(producer_options(apache_broker.kafka, f"{apache_topics.prefix}writer"))
    writer.init_transactions(30)
    writer.begin_transaction()
    taken_back = engine_signal("engine-0", 90, dice)
    writer.produce(bus.name(SIGNALS_ENGINE), encode(taken_back), key=taken_back.key)
    assert writer.flush(30) == 0
    writer.abort_transaction(30)
    worker = Worker(bus, tmp_path)
    try:
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, worker)
        assert worker.stop() == 0
        admin = admin_client(apache_broker.kafka)
        (deleted,) = admin.delete_topics([bus.name(SIGNALS_ENGINE)]).values()
        deleted.result()
        time.sleep(1.0)
        apply_topics(apache_broker.kafka, apache_topics)
        bus.send_signals([(SIGNALS_ENGINE, engine_signal("engine-0", 7, dice))])
        bus.flush()
        worker = Worker(bus, tmp_path)
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, worker)
        assert "they begin anew" in worker.said()
    finally:
        worker.kill()


def test_topics_that_are_missing_or_of_other_partitions_end_the_start_with_the_reason(
    apache_broker: Broker, apache_topics: TopicSettings
) -> None:
    missing = TopicSettings(prefix="nowhere.")
    with pytest.raises(TopicsError, match=r"no topic nowhere\.signals\.engine.*headrace topics apply"):
        wait_for_topics(apache_broker.kafka, missing, 0.0, Said(), never)
    mixed = TopicSettings(
        prefix=apache_topics.prefix,
        names={"state.engine": f"{apache_topics.prefix}weights", "weights": f"{apache_topics.prefix}state.engine"},
        partitions=2,
    )
    with pytest.raises(TopicsError, match=r"weights has 1 partitions; .*signals\.engine has 2"):
        wait_for_topics(apache_broker.kafka, mixed, 0.0, Said(), never)
    found = wait_for_topics(apache_broker.kafka, apache_topics, 0.0, Said(), never)
    assert found is not None
    assert found["signals.engine"] == 2


@pytest.mark.embedded
def test_a_broker_that_has_no_topic_at_all_is_not_called_silent() -> None:
    with (
        start_broker("embedded") as fresh,
        pytest.raises(TopicsError, match=r"no topic headrace\.signals\.engine.*headrace topics apply"),
    ):
        wait_for_topics(fresh.kafka, TopicSettings(), 0.0, Said(), never)


def test_without_a_broker_the_start_fails_after_the_wait() -> None:
    with pytest.raises(TopicsError, match="no broker answers"):
        wait_for_topics(KafkaSettings("127.0.0.1:1"), TopicSettings(), 0.0, Said(), never)


def test_waiting_for_a_broker_is_said_at_once_and_a_stop_ends_it() -> None:
    said = Said()
    asked = iter((False, False, True))
    waited = wait_for_topics(KafkaSettings("127.0.0.1:1"), TopicSettings(), 60.0, said, lambda: next(asked))
    assert waited is None
    assert set(said.events) == {"waiting for 127.0.0.1:1"}, "and again every ten seconds"
