"""The whole path for tests: a simulated fleet at the wall clock's pace, workers as processes, data planes beside it.

fleet ──► signals.* ──► headrace streams ──► state.* ──► headrace solver ──► weights ──► data planes ──► fleet
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from streams_run import Bus, Worker

from headrace.dataplane.route_table import RouteTable
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.demo.bus_sink import BusSink
from headrace.infra.demo.planes import Planes
from headrace.infra.fleet.scenario import Scenario
from headrace.infra.fleet.scenarios import load_scenario
from headrace.infra.fleet.simulation import Simulation
from headrace.schemas.bus.publisher import Publisher
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import encode
from headrace.schemas.topics import FLEET, PROFILES, TopicSettings, topic_table
from headrace.schemas.weights import Snapshot
from solver_desk import Desk, EarlyReader, Solver


@dataclass
class WholePath:
    """A running path. `run_until` lets the fleet live on until something holds."""

    kafka: KafkaSettings
    topics: TopicSettings
    folder: Path
    stack: ExitStack
    scenario: Scenario = field(default_factory=lambda: load_scenario("three-regions"))

    def __post_init__(self) -> None:
        self.table = topic_table(self.topics)
        self.bus = Bus(self.kafka, self.topics)
        self.publisher = Publisher(self.kafka)
        self.stack.callback(self.publisher.close, 2.0)
        for profile in self.scenario.profiles:
            self.publisher.publish(self.table[PROFILES].name, profile.key, encode(profile))
        for setup in self.scenario.engines:
            self.publisher.publish(self.table[FLEET].name, setup.spec.key, encode(setup.spec))
        assert self.publisher.flush(10.0) == 0
        self.worker = self.start_worker()
        self.solver = self.start_solver("solver.log")
        self.planes = self.start_planes()
        self.reader = EarlyReader(self.kafka, self.table["weights"].name)
        self.stack.callback(self.reader.close)
        self.sink = BusSink(self.publisher, self.table)
        now_ms = time.time_ns() // 1_000_000
        start_ms = (now_ms // 1000 + 1) * 1000
        self._zero = time.monotonic() + (start_ms - now_ms) / 1000
        self.simulation = Simulation(self.scenario, self.planes.routers, self.sink, start_ms, np.random.default_rng(7))
        self.simulation.reports_demand = False

    def start_worker(self) -> Worker:
        """Start `headrace streams`; it is killed at the test's end if it still runs."""
        worker = Worker(self.bus, self.folder)
        self.stack.callback(worker.kill)
        return worker

    def start_solver(self, log: str, *settings: str) -> Solver:
        """Start `headrace solver`; it is killed at the test's end if it still runs."""
        solver = Solver(Desk(self.kafka, self.topics), self.folder / log, *settings)
        self.stack.callback(solver.kill)
        solver.start()
        return solver

    def start_planes(self) -> Planes:
        """Start a data plane per cluster."""
        planes = Planes(
            self.kafka,
            self.table,
            DataPlaneSettings(routed_share=0.2),
            [cluster.name for cluster in self.scenario.clusters],
        )
        self.stack.callback(planes.stop)
        planes.start()
        return planes

    def step(self) -> None:
        """Let the fleet live up to now, and read what was published."""
        self.simulation.run_until(max(0.0, time.monotonic() - self._zero))
        self.reader.read(0.01)

    def run_for(self, seconds: float) -> None:
        """Let the fleet live for some time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.step()

    def run_until(self, what: str, holds: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Let the fleet live until something holds."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            last = self.snapshot.commit if self.reader.snapshots else "none"
            assert time.monotonic() < deadline, (
                f"not within {timeout_s} s: {what}; last snapshot: {last}\n{self.solver.log_tail()}\n"
                f"{self.worker.said()[-2000:]}"
            )
            self.step()

    def open_to_arrivals(self) -> None:
        """Wait until every cluster's router has an engine, then let requests arrive."""
        model = self.scenario.model
        self.run_until("every router has an engine", lambda: self.planes.all_route(model, self.simulation.now_ms))
        self.simulation.start_arrivals()

    def stop_signals(self) -> None:
        """Let every request end; nothing is published any more, and what was is on the broker."""
        self.sink.close()
        self.simulation.drain()
        assert self.publisher.flush(20.0) == 0
        self.planes.stop()

    @property
    def snapshot(self) -> Snapshot:
        """The newest whole snapshot that the early reader has seen."""
        return self.reader.snapshots[-1]


@contextmanager
def whole_path(kafka: KafkaSettings, topics: TopicSettings, folder: Path) -> Iterator[WholePath]:
    """Start the path, and end all of it whatever happens."""
    with ExitStack() as stack:
        yield WholePath(kafka, topics, folder, stack)


def slots(planes: Planes) -> dict[str, dict[tuple[str, str], list[str | None]]]:
    """Give the engine of every slot of every route of every data plane."""

    def owners(table: RouteTable) -> list[str | None]:
        return [table.by_slot[index].engine_id for index in table.slots]

    return {
        name: {route: owners(table) for route, table in router.installation.tables.items()}
        for name, router in planes.routers.items()
        if router.installation is not None
    }
