"""What the integration tests of the streams share: signals to send, a worker to start, and states to compare."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
from confluent_kafka import Producer

from headrace.schemas.bus.clients import producer_options
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode, encode
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.histogram import pack
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import (
    Demand,
    Distribution,
    EngineSignals,
    EngineStatus,
    Health,
    Metric,
    NetworkProbe,
    Vantage,
)
from headrace.schemas.state import DemandState, EngineState, NetworkState
from headrace.schemas.topics import (
    FLEET,
    SIGNALS_DEMAND,
    SIGNALS_ENGINE,
    SIGNALS_NETWORK,
    STATE_OF,
    TopicSettings,
    topic_table,
)
from headrace.streams.core.offline import OfflineRun, run_offline
from headrace.streams.settings import StreamsSettings

START_MS = 1_700_000_000_000
Signal = EngineSignals | Demand | NetworkProbe


def engine_spec(engine_id: str) -> EngineSpec:
    return EngineSpec(engine_id, "site", ("m",), (), (), "profile", None, None, drain=False)


def engine_signal(engine_id: str, second: int, dice: np.random.Generator) -> EngineSignals:
    values = dice.lognormal(-1.0, 0.5, size=int(dice.integers(0, 30))).tolist()
    zeros, first, counts = pack(values)
    bounds = (min(values), max(values)) if values else (None, None)
    ttft = Distribution("m", Metric.TTFT, len(values), float(np.sum(values)), *bounds, zeros, first, counts)
    status = EngineStatus(Health.HEALTHY, 2, 2, 2, float(len(values)), 0.0, 0.5)
    end = START_MS + 1_000 * second
    return EngineSignals(engine_id, "sim", Vantage.ENGINE, end - 1_000, end, (ttft,), status)


def a_second(second: int, dice: np.random.Generator, engines: int = 6, routes: int = 3) -> list[tuple[str, Signal]]:
    """Everything that one second of a small fleet says."""
    end = START_MS + 1_000 * second
    said: list[tuple[str, Signal]] = [
        (SIGNALS_ENGINE, engine_signal(f"engine-{i}", second, dice)) for i in range(engines)
    ]
    for i in range(routes):
        offered = int(dice.poisson(90))
        said.append((SIGNALS_DEMAND, Demand(f"c{i}", "m", "default", "gw", end - 1_000, end, offered, 0, 0)))
        rtt = None if dice.random() < 0.1 else float(dice.uniform(0.01, 0.2))
        said.append((SIGNALS_NETWORK, NetworkProbe(f"c{i}", "site", "gw", end, rtt)))
    return said


def applied(value: bytes | None) -> int | None:
    """Give the highest applied offset that a state's bytes hold."""
    for kind in (EngineState, DemandState, NetworkState):
        state = decode(kind, value)
        if isinstance(state, kind):
            return state.applied_offset
    return None


@dataclass
class Bus:
    """Topics on a broker: sends, reads all, and says what the state should be."""

    kafka: KafkaSettings
    topics: TopicSettings
    _producer: Producer | None = field(default=None, init=False)

    @property
    def producer(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(producer_options(self.kafka))
        return self._producer

    def name(self, role: str) -> str:
        return topic_table(self.topics)[role].name

    def send(self, role: str, key: bytes | None, value: bytes | None, timestamp_ms: int = START_MS) -> None:
        self.producer.produce(self.name(role), value=value, key=key, timestamp=timestamp_ms)
        self.producer.poll(0)

    def send_signals(self, said: Iterable[tuple[str, Signal]]) -> None:
        for role, each in said:
            end = each.at_ms if isinstance(each, NetworkProbe) else each.period_end_ms
            self.send(role, each.key, encode(each), end + 5)

    def announce(self, engines: Iterable[str]) -> None:
        for engine in engines:
            self.send(FLEET, engine.encode(), encode(engine_spec(engine)))
        self.flush()

    def flush(self) -> None:
        assert self.producer.flush(120) == 0

    def read(self, roles: Sequence[str]) -> list[RawRecord]:
        """Read topics from their beginning to their end."""
        reader = CompactedReader(self.kafka, [self.name(role) for role in roles])
        records: list[RawRecord] = []
        try:
            deadline = time.monotonic() + 60
            while not reader.caught_up:
                assert time.monotonic() < deadline, f"{roles} were not read to their end"
                records += reader.poll(1.0)
        finally:
            reader.close()
        return records

    def states(self) -> dict[bytes, bytes]:
        """Give the newest state of each key, as it lies in the compacted topics."""
        newest: dict[bytes, bytes] = {}
        for record in self.read(tuple(STATE_OF.values())):
            assert record.key is not None
            if record.value is None:
                newest.pop(record.key, None)
            else:
                newest[record.key] = record.value
        return newest

    def offline(self, settings: StreamsSettings, fleet: Iterable[str] | None = None) -> OfflineRun:
        """Fold the signals as they lie in the log, without Kafka."""
        known = None if fleet is None else {engine.encode() for engine in fleet}
        return run_offline(self.read(tuple(STATE_OF)), settings, self.topics, known)

    def wait_for_states(self, expected: dict[bytes, bytes], worker: "Worker", timeout_s: float = 120.0) -> None:
        """Wait until the state topics say exactly what is expected, while the worker lives."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = self.states()
            if found == expected:
                return
            assert worker.process.poll() is None, f"the worker ended:\n{worker.said()[-3_000:]}"
            if time.monotonic() >= deadline:
                wrong = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
                detail = [(key, applied(expected.get(key)), applied(found.get(key))) for key in wrong]
                said = worker.said()[-3_000:]
                raise AssertionError(f"states differ: (key, expected and found applied offset) {detail}\n{said}")
            time.sleep(0.3)


class Worker:
    """`headrace streams` as a process of its own."""

    def __init__(self, bus: Bus, folder: Path, *more: str, **settings: str) -> None:
        """Start one; `more` are flags of the command, `settings` what is set beside the test's own."""
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"streams-{time.monotonic_ns()}.log"
        self._out: IO[bytes] = self.log.open("wb")
        given = {
            "topics.prefix": bus.topics.prefix,
            "topics.partitions": str(bus.topics.partitions),
            "kafka.broker": bus.kafka.broker,
            "streams.data_dir": str(folder / "faust" / "data"),
            "streams.group_id": f"{bus.topics.prefix}streams",
            "streams.session_timeout_ms": "6000",
        } | settings
        flags = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
        headrace = Path(sys.executable).with_name("headrace")
        self.process = subprocess.Popen(
            [headrace, "streams", "--bootstrap", bus.kafka.bootstrap_servers, *more, *flags],
            stdout=self._out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            # Not a setting of the worker's.
            env={name: value for name, value in os.environ.items() if name != "HEADRACE_THOROUGH"},
        )

    def wait_until(self, words: str, timeout_s: float = 90.0) -> None:
        """Wait until the log says so."""
        deadline = time.monotonic() + timeout_s
        while words not in self.said():
            assert self.process.poll() is None, f"the worker ended with {self.process.returncode}:\n{self.said()}"
            assert time.monotonic() < deadline, f"{words!r} not said in {timeout_s} s:\n{self.said()}"
            time.sleep(0.1)

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self, timeout_s: float = 40.0) -> int:
        """Ask it to end in good order and give its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        finally:
            self.kill()

    def _end(self) -> None:
        self.process.wait()
        self._out.close()
