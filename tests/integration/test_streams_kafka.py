"""The worker on a real bus: what it writes is what the same fold says off-line, whatever happens to it."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streams_run import START_MS, Bus, Worker, a_second, engine_signal

from headrace.infra.brokers.contract import Broker
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.signals import Demand
from headrace.schemas.topics import DEAD_LETTERS, FLEET, SIGNALS_DEMAND, SIGNALS_ENGINE, STATE_ENGINE, TopicSettings
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings()
ENGINES = [f"engine-{i}" for i in range(6)]


@pytest.fixture
def bus(broker: Broker, topics: TopicSettings) -> Bus:
    found = Bus(broker.kafka, topics)
    found.announce(ENGINES)
    return found


@pytest.fixture
def workers(bus: Bus, tmp_path: Path) -> Iterator[list[Worker]]:
    """Workers that are ended with the test; one is ready."""
    running = [Worker(bus, tmp_path)]
    running[0].wait_until("streams ready")
    yield running
    for worker in running:
        worker.kill()


def test_the_states_in_the_topics_are_those_of_an_off_line_run(bus: Bus, workers: list[Worker]) -> None:
    dice = np.random.default_rng(1)
    for second in range(1, 31):
        bus.send_signals(a_second(second, dice))
    bus.flush()
    expected = bus.offline(SETTINGS, ENGINES).encoded
    assert len(expected) == 6 + 3 + 3
    bus.wait_for_states(expected, workers[0])
    assert workers[0].stop() == 0
    assert bus.states() == expected


def test_a_worker_killed_at_any_instant_leaves_the_state_of_a_run_without_the_kill(
    bus: Bus, workers: list[Worker], tmp_path: Path
) -> None:
    """Killed three times while signals flow: before, in the middle of and after batches, as the dice fall."""
    dice = np.random.default_rng(2)
    second = 0
    for _ in range(3):
        until = time.monotonic() + float(dice.uniform(0.3, 1.5))
        while time.monotonic() < until:
            second += 1
            bus.send_signals(a_second(second, dice, engines=6, routes=3))
            time.sleep(0.004)
        workers[-1].kill()
        for _ in range(20):
            second += 1
            bus.send_signals(a_second(second, dice))
        workers.append(Worker(bus, tmp_path))
        workers[-1].wait_until("streams ready")
    for _ in range(20):
        second += 1
        bus.send_signals(a_second(second, dice))
    bus.flush()
    bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, workers[-1])
    assert workers[-1].stop() == 0


def test_a_worker_stopped_and_started_goes_on_where_it_was(bus: Bus, workers: list[Worker], tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    for second in range(1, 8):
        bus.send_signals(a_second(second, dice))
    bus.flush()
    bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, workers[0])
    assert workers[0].stop() == 0
    for second in range(8, 14):
        bus.send_signals(a_second(second, dice))
    bus.flush()
    workers.append(Worker(bus, tmp_path))
    bus.wait_for_states(bus.offline(SETTINGS, ENGINES).encoded, workers[-1])


def test_what_cannot_be_used_lands_in_dead_letters_and_the_partition_goes_on(bus: Bus, workers: list[Worker]) -> None:
    dice = np.random.default_rng(4)
    good = engine_signal("engine-1", 5, dice)
    nan = replace(good, distributions=(replace(good.distributions[0], sum_s=float("nan")),))
    negative = Demand("c0", "m", "default", "gw", START_MS, START_MS + 1_000, -1, 0, 0)
    bus.send(SIGNALS_ENGINE, b"engine-1", b"not avro at all")
    bus.send(SIGNALS_ENGINE, b"engine-1", None)
    bus.send(SIGNALS_ENGINE, None, encode(good))
    bus.send(SIGNALS_ENGINE, b"engine-1", encode(nan), START_MS + 5_000)
    bus.send(SIGNALS_ENGINE, b"stranger", encode(replace(good, engine_id="stranger")), START_MS + 5_000)
    bus.send(SIGNALS_DEMAND, negative.key, encode(negative), START_MS + 1_000)
    bus.flush()
    bus.send_signals([(SIGNALS_ENGINE, good)])
    bus.flush()
    expected = bus.offline(SETTINGS, ENGINES)
    assert set(expected.encoded) == {b"engine-1"}
    bus.wait_for_states(expected.encoded, workers[0])
    letters = [must(decode(DeadLetter, record.value)) for record in bus.read([DEAD_LETTERS])]
    by_offset = {(letter.topic, letter.partition, letter.offset): letter for letter in letters}
    assert set(by_offset.values()) == set(expected.rejected)
    assert sorted(letter.reason for letter in expected.rejected) == sorted(
        [
            RejectReason.MALFORMED,
            RejectReason.MALFORMED,
            RejectReason.KEY_MISMATCH,
            RejectReason.NOT_FINITE,
            RejectReason.UNKNOWN_ENGINE,
            RejectReason.NEGATIVE,
        ]
    )
    assert b"not avro at all" in [letter.record_value for letter in letters]


def test_a_fleet_tombstone_deletes_the_state_of_its_engine_running_or_not(
    bus: Bus, workers: list[Worker], tmp_path: Path
) -> None:
    dice = np.random.default_rng(5)
    for second in range(1, 4):
        bus.send_signals(a_second(second, dice))
    bus.flush()
    expected = dict(bus.offline(SETTINGS, ENGINES).encoded)
    bus.wait_for_states(expected, workers[0])
    bus.send(FLEET, b"engine-2", None)
    bus.flush()
    del expected[b"engine-2"]
    bus.wait_for_states(expected, workers[0])
    assert [r.key for r in bus.read([STATE_ENGINE]) if r.value is None] == [b"engine-2"]
    assert workers[0].stop() == 0
    bus.send(FLEET, b"engine-3", None)
    bus.flush()
    del expected[b"engine-3"]
    workers.append(Worker(bus, tmp_path))
    bus.wait_for_states(expected, workers[-1])
