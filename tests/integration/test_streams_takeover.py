"""Partitions that change hands while their old owner lives on: frozen past its session, or writing after its time."""

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from streams_run import Bus, Worker, a_second

from headrace.infra.brokers.contract import Broker
from headrace.schemas.topics import STATE_ENGINE, TopicSettings
from headrace.streams.settings import StreamsSettings

pytestmark = pytest.mark.apache
SETTINGS = StreamsSettings()
ENGINES = [f"engine-{i}" for i in range(6)]


def test_a_worker_frozen_past_its_session_loses_and_doubles_nothing(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    bus = Bus(apache_broker.kafka, apache_topics)
    bus.announce(ENGINES)
    dice, second = np.random.default_rng(21), 0

    def flow(seconds: int) -> None:
        nonlocal second
        for _ in range(seconds):
            second += 1
            bus.send_signals(a_second(second, dice))
            time.sleep(0.01)
        bus.flush()

    frozen = Worker(bus, tmp_path / "frozen")
    running = [frozen]
    try:
        frozen.wait_until("streams ready")
        flow(100)
        frozen.process.send_signal(signal.SIGSTOP)
        flow(30)
        heir = Worker(bus, tmp_path / "heir")
        running.append(heir)
        heir.wait_until("streams ready")
        flow(30)
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, heir)
        frozen.process.send_signal(signal.SIGCONT)
        flow(30)
        assert frozen.process.wait(60) == 1
        assert "the partitions may be another's" in frozen.said()
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, heir)
    finally:
        for worker in running:
            worker.kill()


def test_a_state_written_after_its_writers_time_is_mended_by_the_next_recovery(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    bus = Bus(apache_broker.kafka, apache_topics)
    bus.announce(ENGINES)
    dice = np.random.default_rng(22)
    for second in range(1, 9):
        bus.send_signals(a_second(second, dice))
    bus.flush()
    worker = Worker(bus, tmp_path / "first")
    try:
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, worker)
        outdated = bus.states()[b"engine-3"]
        for second in range(9, 15):
            bus.send_signals(a_second(second, dice))
        bus.flush()
        expected = bus.offline(SETTINGS, ENGINES).encoded
        bus.wait_for_states(expected, worker)
        assert worker.stop() == 0, "all is committed"
        bus.send(STATE_ENGINE, b"engine-3", outdated)
        bus.flush()
        assert bus.states() != expected
        worker = Worker(bus, tmp_path / "second")
        bus.wait_for_states(expected, worker)
        assert "reading again behind what is committed" in worker.said()
    finally:
        worker.kill()
