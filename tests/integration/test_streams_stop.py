"""A worker that is asked to stop ends, whatever it is doing, and nothing is lost by it."""

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from streams_run import Bus, Worker, a_second

from headrace.infra.brokers.contract import Broker
from headrace.schemas.topics import TopicSettings
from headrace.streams.departure import STOP_S
from headrace.streams.settings import StreamsSettings
from headrace.streams.stop_guard import STOPPED_SHORT

pytestmark = pytest.mark.apache
SETTINGS = StreamsSettings()
ENGINES = [f"engine-{i}" for i in range(6)]
BOUND_S = 3 * STOP_S
"""Far above what a stop takes, on a machine that has other work."""


def test_it_stops_in_good_order_while_it_starts_recovers_rebalances_and_folds(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    bus = Bus(apache_broker.kafka, apache_topics)
    bus.announce(ENGINES)
    dice, second = np.random.default_rng(11), 0
    running: list[Worker] = []

    def start() -> Worker:
        running.append(Worker(bus, tmp_path / str(len(running))))
        return running[-1]

    def some(seconds: int) -> None:
        nonlocal second
        for _ in range(seconds):
            second += 1
            bus.send_signals(a_second(second, dice))
        bus.flush()

    try:
        for words in ("fleet read to its end", "partitions assigned", "streams ready"):
            some(20)
            worker = start()
            worker.wait_until(words)
            worker.process.send_signal(signal.SIGINT)
            assert worker.process.wait(BOUND_S) == 0, worker.said()
        first, second_worker = start(), start()
        second_worker.wait_until("fleet read to its end")
        some(200)
        assert first.stop(BOUND_S) == 0, first.said()
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, second_worker)
        assert second_worker.stop(BOUND_S) == 0
    finally:
        for worker in running:
            worker.kill()


def test_without_its_broker_it_stops_short_in_bounded_time_and_at_once_when_asked_twice(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    bus = Bus(apache_broker.kafka, apache_topics)
    bus.announce(ENGINES)
    workers = [Worker(bus, tmp_path / name) for name in ("patient", "hasty")]
    dice, second = np.random.default_rng(12), 0
    try:
        for worker in workers:
            worker.wait_until("streams ready")
        for second in range(1, 60):
            bus.send_signals(a_second(second, dice))
        bus.flush()
        apache_broker.kill()
        patient, hasty = workers
        hasty.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        hasty.process.send_signal(signal.SIGTERM)
        # It may have stopped short before it is asked again.
        assert hasty.process.wait(BOUND_S) in (-signal.SIGTERM, STOPPED_SHORT, 0), hasty.said()
        assert patient.stop(BOUND_S) in (STOPPED_SHORT, 0), patient.said()
    finally:
        apache_broker.restart()
        for worker in workers:
            worker.kill()
    try:
        workers.append(Worker(bus, tmp_path / "after"))
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, workers[-1])
        assert workers[-1].stop(BOUND_S) == 0
    finally:
        for worker in workers:
            worker.kill()
