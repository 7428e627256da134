"""A desk for tests on a real broker: heartbeats of a small fleet by hand, solver processes, and an early reader.

Three sites with one engine and one cluster each; every reader's outcome is kept, so that a test can say that none was
ever refused.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from headrace.infra.processes.child import ChildProcess
from headrace.schemas.assembly import Assembled, Refused, SnapshotAssembler
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.publisher import Publisher
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.records import Record
from headrace.schemas.topics import WEIGHTS, TopicSettings, topic_table
from headrace.schemas.weights import Snapshot
from solver_inputs import demand_state, engine_state, network_state, profile, spec

SITES = ("a", "b", "c")
DEMAND = {"A": 90.0, "B": 120.0, "C": 40.0}
CAPACITY = {"a": 100.0, "b": 100.0, "c": 80.0}
QUICK = (
    "solver.period_ms=200",
    "solver.ageing_after_ms=4000",
    "solver.expired_after_ms=8000",
    "solver.lost_after_ms=8000",
)
WAIT_S = 40.0


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Desk:
    """Publishes what engines, gateways and operators would, as the streams would have folded it."""

    def __init__(self, kafka: KafkaSettings, topics: TopicSettings) -> None:
        table = topic_table(topics)
        self.kafka, self.topics = kafka, topics
        self.weights = table[WEIGHTS].name
        self._name_of = {topic.record: topic.name for topic in table.values()}
        self._publisher = Publisher(kafka)
        self._stop = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self.silent: set[str] = set()
        self.demand = dict(DEMAND)
        self.ready = dict.fromkeys(SITES, 1)

    def put(self, record: Record) -> None:
        self._publisher.publish(self._name_of[type(record)], record.key, encode(record))

    def put_bytes(self, like: Record, value: bytes | None) -> None:
        self._publisher.publish(self._name_of[type(like)], like.key, value)

    def declare(self) -> None:
        self.put(profile(capacity_rps=100.0))
        for site in SITES:
            self.put(spec(f"e-{site}", site=site, capacity_rps_per_replica=CAPACITY[site]))

    def beat_once(self) -> None:
        now = wall_ms()
        for site in SITES:
            if f"e-{site}" not in self.silent:
                self.put(engine_state(f"e-{site}", now, replicas_ready=self.ready[site]))
        for cluster, rps in self.demand.items():
            self.put(demand_state(cluster, rps, now))
            for site in SITES:
                near = site == cluster.lower()
                self.put(network_state(cluster, site, 0.001 if near else 0.060, now))
        self._publisher.flush(5.0)

    def start(self) -> None:
        self.declare()
        self.beat_once()
        self._beating.start()

    def stop(self) -> None:
        self._stop.set()
        if self._beating.is_alive():
            self._beating.join(15.0)
        self._publisher.close(2.0)

    def _beat(self) -> None:
        while not self._stop.wait(0.5):
            self.beat_once()


@dataclass
class EarlyReader:
    """Follows the weights topic from its beginning and keeps everything it was told."""

    kafka: KafkaSettings
    topic: str
    snapshots: list[Snapshot] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    records: list[RawRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = CompactedReader(self.kafka, [self.topic])
        self._assembler = SnapshotAssembler()

    def until(self, enough: Callable[[Snapshot], bool], timeout_s: float = WAIT_S) -> Snapshot:
        """Read on until a snapshot is as wanted; earlier ones do not count."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for snapshot in self.read(0.1):
                if enough(snapshot):
                    return snapshot
        last = self.snapshots[-1].commit if self.snapshots else None
        raise AssertionError(f"no such snapshot within {timeout_s} s; the last is {last}; refused {self.refused}")

    def read(self, timeout_s: float) -> list[Snapshot]:
        new: list[Snapshot] = []
        for record in self._reader.poll(timeout_s):
            self.records.append(record)
            outcome = self._assembler.offer(record)
            if isinstance(outcome, Assembled):
                new.append(outcome.snapshot)
            elif isinstance(outcome, Refused):
                self.refused.append(outcome)
        self.snapshots += new
        return new

    def read_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.1)

    def to_the_end(self) -> Snapshot:
        while not self._reader.caught_up:
            self.read(0.1)
        return self.snapshots[-1]

    def close(self) -> None:
        self._reader.close()


class Solver(ChildProcess):
    """`headrace solver` as a process of its own."""

    def __init__(self, desk: Desk, log: Path, *settings: str, shadow: str | None = None) -> None:
        flags = {"kafka.broker": desk.kafka.broker, "topics.prefix": desk.topics.prefix}
        pairs = [f"{key}={value}" for key, value in flags.items()]
        sets = [
            part
            for pair in (*pairs, f"topics.partitions={desk.topics.partitions}", *QUICK, *settings)
            for part in ("--set", pair)
        ]
        command = (str(Path(sys.executable).with_name("headrace")), "solver", "--log-level", "debug")
        looks_on = () if shadow is None else ("--shadow", shadow)
        super().__init__((*command, "--bootstrap", desk.kafka.bootstrap_servers, *looks_on, *sets), log)

    def said(self) -> list[Mapping[str, object]]:
        lines: list[Mapping[str, object]] = []
        for line in self.log.read_text("utf-8").splitlines() if self.log.exists() else ():
            with suppress(json.JSONDecodeError):
                lines.append(json.loads(line))
        return lines

    def events(self) -> list[str]:
        return [str(line.get("event")) for line in self.said()]

    def until_said(self, start: str, timeout_s: float = WAIT_S, times: int = 1) -> None:
        until(lambda: sum(event.startswith(start) for event in self.events()) >= times, timeout_s, self.log_tail)


def until(met: Callable[[], bool], timeout_s: float, what: Callable[[], str] = str) -> None:
    """Wait until a condition is met; `what` is told where it is not."""
    deadline = time.monotonic() + timeout_s
    while not met():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what()}"
        time.sleep(0.05)


def weights_of(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    return {
        route.cluster: {t.engine_id: t.weight_ppm for t in route.targets if t.weight_ppm} for route in snapshot.routes
    }
