"""Several workers: they split the load, and however often the partitions change hands nothing is lost or doubled."""

import os
import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streams_run import Bus, Worker, a_second

from headrace.infra.brokers.contract import Broker
from headrace.infra.processes.ports import free_ports
from headrace.schemas.topics import TopicSettings
from headrace.streams.settings import StreamsSettings
from thoroughness import THOROUGH

pytestmark = pytest.mark.apache
SETTINGS = StreamsSettings()
ENGINES = [f"engine-{i}" for i in range(6)]
ROUNDS = 5 if THOROUGH else 2
PATIENT = {"streams.session_timeout_ms": "15000"}
"""A worker that the machine lets sleep for a session rightly ends: here only those that the test ends shall."""


class Flow:
    """Signals, second by second."""

    def __init__(self, bus: Bus, seed: int) -> None:
        self._bus, self._dice, self.second = bus, np.random.default_rng(seed), 0

    def go(self, seconds: int, pause_s: float = 0.005) -> None:
        for _ in range(seconds):
            self.second += 1
            self._bus.send_signals(a_second(self.second, self._dice))
            time.sleep(pause_s)
        self._bus.flush()


def test_two_workers_lose_and_double_nothing_however_often_the_partitions_change_hands(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    """Each round makes two rebalances while signals flow: one worker leaves, in good order or killed, another joins."""
    bus = Bus(apache_broker.kafka, apache_topics)
    bus.announce(ENGINES)
    flow, dice = Flow(bus, 31), np.random.default_rng(32)
    running = [Worker(bus, tmp_path / name, **PATIENT) for name in ("a", "b")]
    try:
        for worker in running:
            worker.wait_until("streams ready")
        for number in range(ROUNDS):
            flow.go(int(dice.integers(10, 80)))
            leaving = running.pop(0)
            if number % 2:
                leaving.kill()
            else:
                assert leaving.stop() == 0, leaving.said()
            flow.go(int(dice.integers(10, 80)))
            running.append(Worker(bus, tmp_path / f"c{number}", **PATIENT))
            running[-1].wait_until("fleet read to its end")
            flow.go(int(dice.integers(10, 80)))
        for worker in running:
            worker.wait_until("streams ready")
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, running[-1])
        flow.go(20)
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, running[-1])
        parts = [worker.said().rpartition('"partitions assigned"')[2] for worker in running]
        assert all('"partitions":3' in part for part in parts), "each has half of the six"
    finally:
        for worker in running:
            worker.kill()


def test_workers_of_one_command_share_the_load_are_started_again_counted_and_stopped_together(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    bus = Bus(apache_broker.kafka, apache_topics)
    bus.announce(ENGINES)
    flow, port = Flow(bus, 33), free_ports(1)[0]
    both = Worker(bus, tmp_path, "--workers", "2", **PATIENT | {"streams.metrics_port": str(port)})
    try:
        _wait(both, lambda: both.said().count('"streams ready"') >= 2)
        flow.go(30)
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, both)
        _wait(both, lambda: sum(applied(port + i) for i in range(2)) == 30 * len(ENGINES))
        first = int(both.said().partition('"pid":')[2].partition("}")[0])
        os.kill(first, signal.SIGKILL)
        _wait(both, lambda: both.said().count('"streams ready"') >= 3)
        assert "worker ended, starting it again" in both.said()
        flow.go(30)
        bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, both)
        assert both.stop() == 0, both.said()
        assert both.said().count('"streams stopped"') == 2
    finally:
        both.kill()


def _wait(worker: Worker, done: Callable[[], bool], timeout_s: float = 90.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert worker.process.poll() is None, f"the workers ended:\n{worker.said()}"
        assert time.monotonic() < deadline, worker.said()[-3_000:]
        time.sleep(0.2)


def applied(port: int) -> float:
    """Give the signals of engines that a worker says it applied."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    name = 'headrace_streams_signals_total{outcome="APPLIED",topic="signals.engine"}'
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))
