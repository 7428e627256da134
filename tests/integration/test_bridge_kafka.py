"""The bridge on Apache Kafka: a Collector's own records become states, whatever happens to the bridge meanwhile."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic
from streams_run import Bus, Worker

from collector import TTFT_A_PERIOD, batch, engine_id
from headrace.infra.brokers.contract import Broker
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.check_state import State
from headrace.schemas.codec import decode, must
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState
from headrace.schemas.topics import DEAD_LETTERS, SIGNALS_ENGINE, TopicSettings
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.offline import run_offline
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings

pytestmark = pytest.mark.apache
ENGINES, PARTITIONS, PERIOD_MS = 4, 3, 100
NAMES = [engine_id(i) for i in range(ENGINES)]
PATIENT = StreamsSettings(window_ms=120_000, grace_ms=100_000)
"""Nothing of a test is late: what partitions that wait for a dead bridge hold is applied however late it comes."""


class Bridging:
    """`headrace bridge` as a process of its own."""

    def __init__(self, bus: Bus, topic: str, folder: Path, begin: str = "earliest") -> None:
        self.log = folder / f"bridge-{time.monotonic_ns()}.log"
        self._out = self.log.open("wb")
        given = {
            "topics.prefix": bus.topics.prefix,
            "topics.partitions": str(bus.topics.partitions),
            "bridge.group_id": f"{bus.topics.prefix}bridge",
            "bridge.begin": begin,
            "bridge.session_timeout_ms": "6000",
            "bridge.batch_max": "2",
            "bridge.report_ms": "500",
            "bridge.sources.team.topic": topic,
            "bridge.sources.team.carrier": "otlp_proto",
            "bridge.sources.team.preset": "vllm_v1",
        }
        flags = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
        self.process = subprocess.Popen(
            [Path(sys.executable).with_name("headrace"), "bridge", "--bootstrap", bus.kafka.bootstrap_servers, *flags],
            stdout=self._out,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )

    def wait_until(self, words: str, timeout_s: float = 90.0) -> None:
        deadline = time.monotonic() + timeout_s
        while words not in self.said():
            assert self.process.poll() is None, f"the bridge ended with {self.process.returncode}:\n{self.said()}"
            assert time.monotonic() < deadline, f"{words!r} not said in {timeout_s} s:\n{self.said()}"
            time.sleep(0.05)

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._out.close()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        finally:
            self.kill()


@pytest.fixture
def bus(apache_broker: Broker, apache_topics: TopicSettings) -> Bus:
    return Bus(apache_broker.kafka, apache_topics)


@pytest.fixture
def team(bus: Bus) -> str:
    """The team's own topic."""
    name = f"{bus.topics.prefix}team"
    client = admin_client(bus.kafka)
    for made in client.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
        made.result(30)
    return name


@pytest.fixture
def bridges() -> Iterator[list[Bridging]]:
    running: list[Bridging] = []
    yield running
    for each in running:
        each.kill()


def send(bus: Bus, team: str, periods: range, began_ms: int) -> list[RawRecord]:
    """Send scrapes without a key, one partition after the other; give them as records without offsets."""
    sent: list[RawRecord] = []
    for period in periods:
        at_ms = began_ms + PERIOD_MS * period
        value = batch(ENGINES, period, at_ms)
        bus.producer.produce(team, value=value, partition=period % PARTITIONS, timestamp=at_ms)
        sent.append(RawRecord(team, period % PARTITIONS, period // PARTITIONS, at_ms, None, value))
    bus.flush()
    return sent


def expected_states(sent: list[RawRecord]) -> dict[bytes, State]:
    """Give what a bridge that is never killed, and one record at a time, comes to."""
    translator = Translator(load_preset("vllm_v1"), DecodeOptions("otlp_proto"))
    signals: list[RawRecord] = []
    for record in sent:
        packs = Packs(record.topic, record.partition, translator.mapping.hash, "bridge")
        packs.add(translator.translate(record, record.timestamp_ms))
        for each in packs.take():
            place = partition_of(each.key, 2), len(signals), record.timestamp_ms + 60_000
            signals.append(RawRecord("s", *place, each.key, each.value))
    fold = KeyedFold(KINDS[SIGNALS_ENGINE], PATIENT, 2)
    done = fold.fold(signals, dict[bytes, bytes]().get, None)
    return {key: fold.read(value) for key, value in done.states.items()}


def told(state: State) -> State:
    """Give what a state says of the engine, without what it says of the log."""
    assert isinstance(state, EngineState)
    return replace(state, applied_offset=0, signal_timestamp_ms=0, series=None, panes=b"")


def ttft_count(state: State) -> int:
    assert isinstance(state, EngineState)
    return next(latency.count for latency in state.latencies if latency.metric is Metric.TTFT)


def test_a_bridge_killed_at_any_instant_leaves_the_states_of_one_that_never_was(
    bus: Bus, team: str, bridges: list[Bridging], tmp_path: Path
) -> None:
    """Killed -9 in the middle of a backlog, twice; then two of them share the partitions, and stop in good order."""
    bus.announce(NAMES)
    began_ms = time.time_ns() // 1_000_000 - 60_000
    worker = Worker(bus, tmp_path)
    try:
        sent = send(bus, team, range(60), began_ms)
        for _ in range(2):
            bridges.append(Bridging(bus, team, tmp_path))
            bridges[-1].wait_until("partitions given")
            time.sleep(0.15)
            bridges[-1].kill()
        bridges.append(Bridging(bus, team, tmp_path))
        bridges.append(Bridging(bus, team, tmp_path))
        sent += send(bus, team, range(60, 80), began_ms)
        expected = expected_states(sent)
        deadline = time.monotonic() + 90
        while True:
            run = run_offline(bus.read((SIGNALS_ENGINE,)), PATIENT, bus.topics)
            if {key: told(state) for key, state in run.states.items()} == {k: told(s) for k, s in expected.items()}:
                break
            assert time.monotonic() < deadline, f"{run.states}\n{expected}\n{bridges[-1].said()[-2000:]}"
            time.sleep(0.3)
        assert [ttft_count(state) for state in run.states.values()] == [79 * TTFT_A_PERIOD] * ENGINES
        assert run.rejected == ()
        bus.wait_for_states(bus.offline(StreamsSettings(), NAMES).encoded, worker)
        assert [each.stop() for each in bridges[-2:]] == [0, 0]
    finally:
        worker.kill()


def test_what_cannot_be_read_is_a_dead_letter_with_its_bytes_and_the_partition_goes_on(
    bus: Bus, team: str, bridges: list[Bridging], tmp_path: Path
) -> None:
    bus.producer.produce(team, value=b"\xff not telemetry", key=b"k", partition=0)
    bus.flush()
    now_ms = time.time_ns() // 1_000_000
    send(bus, team, range(3), now_ms - 10_000)
    bridges.append(Bridging(bus, team, tmp_path))
    bridges[-1].wait_until("readings of")
    deadline = time.monotonic() + 60
    while not bus.read((DEAD_LETTERS,)) or len(bus.read((SIGNALS_ENGINE,))) < ENGINES:
        assert time.monotonic() < deadline, bridges[-1].said()
        time.sleep(0.2)
    letter = must(decode(DeadLetter, bus.read((DEAD_LETTERS,))[0].value))
    assert (letter.topic, letter.partition, letter.offset) == (team, 0, 0)
    assert (letter.record_key, letter.record_value) == (b"k", b"\xff not telemetry")
    assert (letter.reason, letter.stage) == (RejectReason.MALFORMED, "bridge")
    assert bridges[-1].stop() == 0


def test_a_bridge_that_begins_at_the_end_says_what_it_leaves_and_a_second_start_goes_on_without_a_word_of_it(
    bus: Bus, team: str, bridges: list[Bridging], tmp_path: Path
) -> None:
    now_ms = time.time_ns() // 1_000_000
    send(bus, team, range(4), now_ms - 10_000)
    bridges.append(Bridging(bus, team, tmp_path, begin="latest"))
    bridges[-1].wait_until(f"begins at the end of {team}: 4 records before it are left")
    assert bridges[-1].stop() == 0
    send(bus, team, range(4, 6), now_ms - 10_000)
    bridges.append(Bridging(bus, team, tmp_path, begin="latest"))
    bridges[-1].wait_until("2 records read")
    assert "begins at" not in bridges[-1].said()
    assert bridges[-1].stop() == 0
