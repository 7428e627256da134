"""One demo from start to stop: broker, topics, fleet and profiles, workers, data planes, and the simulated fleet.

    broker ─ topics ─ fleet, profiles ─ workers ─ data planes ─ fleet publishes ─ every router has an engine ─ requests

The fleet runs at the pace of the wall clock: `step` lets virtual time pass up to now. Whatever fails, `stop` ends all
that was started, in the opposite order; the children end with this process even where it is killed.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from headrace.infra.brokers import start_broker
from headrace.infra.brokers.contract import Broker
from headrace.infra.configuration.config import Config
from headrace.infra.demo.bus_sink import BusSink
from headrace.infra.demo.logbook import Logbook
from headrace.infra.demo.planes import Planes
from headrace.infra.demo.recent import Recent
from headrace.infra.demo.state_tail import StateTail
from headrace.infra.demo.workers import WorkerEndedError, Workers
from headrace.infra.fleet.commands import Command
from headrace.infra.fleet.scenario import Scenario
from headrace.infra.fleet.script import Timed
from headrace.infra.fleet.simulation import Simulation
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.publisher import Publisher
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import encode
from headrace.schemas.errors import HeadraceError
from headrace.schemas.made_folder import made_folder
from headrace.schemas.topics import FLEET, PROFILES, Topic, topic_table

START_TIMEOUT_S = 60.0
CHECK_EVERY_S = 0.5


class StartError(HeadraceError):
    """The demo did not get as far as its first routed request."""


class BrokerGoneError(HeadraceError):
    """The demo's broker ended in mid-run: what follows was routed by its last weights."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to run. `folder` takes logs and the workers' configuration."""

    scenario: Scenario
    broker: str
    seed: int
    folder: Path
    script: tuple[Timed, ...] = ()


@dataclass(slots=True)
class StartTimes:
    """Seconds from the start of the command to each step; None where it was not reached."""

    broker_s: float | None = None
    topics_s: float | None = None
    workers_started_s: float | None = None
    first_snapshot_s: float | None = None
    first_routed_request_s: float | None = None


@dataclass(slots=True)
class Session:
    """A running demo. `start` once, `step` often, `stop` always."""

    options: DemoOptions
    config: Config
    times: StartTimes = field(default_factory=StartTimes)
    behind_max_ms: float = 0.0
    ran_s: float = 0.0
    broker_ended: str | None = None
    worker_ended: str | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _began: float = field(default_factory=time.monotonic)
    _arrivals_s: float | None = None
    _finished: bool = False
    _checked: float = 0.0
    simulation: Simulation = field(init=False)
    planes: Planes = field(init=False)
    workers: Workers = field(init=False)
    logbook: Logbook = field(init=False)
    recent: Recent = field(init=False)
    _broker: Broker = field(init=False)
    _tail: StateTail = field(init=False)
    _sink: BusSink = field(init=False)
    _zero: float = field(init=False)

    def start(self) -> None:
        """Start everything, and return when every router has an engine for a request and requests arrive.

        Raises:
            HeadraceError: something could not be started, or a worker ended; `stop` is still to be called.
        """
        made_folder(self.options.folder, "--folder")
        clusters = self.options.scenario.names.clusters
        self.logbook = Logbook(clusters)
        broker = self._broker = self._stack.enter_context(start_broker(self.options.broker))
        self.times.broker_s = self._elapsed()
        apply_topics(broker.kafka, self.config.topics)
        topics = topic_table(self.config.topics)
        publisher = self._declare_fleet(broker.kafka, topics)
        self.times.topics_s = self._elapsed()
        self.workers = Workers(self.config, broker.kafka, self.options.folder)
        self._stack.callback(self.workers.stop)
        self.workers.start()
        self.times.workers_started_s = self._elapsed()
        self.planes = Planes(broker.kafka, topics, self.config.dataplane, clusters)
        self._stack.callback(self.planes.stop)
        self.planes.start()
        self._tail = StateTail(broker.kafka, topics)
        self._stack.callback(self._tail.stop)
        self._tail.start()
        self._sink = BusSink(publisher, topics)
        self._begin_fleet()
        self._wait_for_routes()
        while self.times.first_routed_request_s is None:
            self.step()
            time.sleep(0.005)

    def stop(self) -> None:
        """End all that was started."""
        self._stack.close()

    @property
    def now_s(self) -> float:
        """Virtual time since requests began to arrive; below 0 before."""
        since = self.simulation.timeline.now_s
        return since if self._arrivals_s is None else since - self._arrivals_s

    def do(self, command: Command) -> None:
        """Do one thing to the fleet, now, and write it down; nothing any more once the session has finished."""
        if self._finished:
            return
        before = self._capacities()
        self.simulation.command(command)
        changed = [
            f"; {name} can serve {now:.0f} RPS now, {before[name]:.0f} before"
            for name, now in self._capacities().items()
            if now != before[name]
        ]
        self.logbook.note(self.now_s, command.sentence + "".join(changed))

    def _capacities(self) -> dict[str, float]:
        now_s = self.simulation.timeline.now_s
        return {name: engine.capacity_rps(now_s) for name, engine in self.simulation.engines.items()}

    def step(self) -> None:
        """Let virtual time pass up to the wall clock; take note of all that came in.

        Raises:
            WorkerEndedError: a worker has ended.
        """
        due_s = max(0.0, time.monotonic() - self._zero)
        self.behind_max_ms = max(self.behind_max_ms, 1000 * (due_s - self.simulation.timeline.now_s))
        self.simulation.run_until(due_s)
        if self.times.first_routed_request_s is None and self.simulation.tally.attempts:
            self.times.first_routed_request_s = self._elapsed()
        self._take_note()
        if time.monotonic() - self._checked >= CHECK_EVERY_S:
            self._checked = time.monotonic()
            self._check_broker()
            if self.broker_ended is None:
                self._check_workers()

    def finish(self) -> None:
        """Let every request end, faster than the clock, with nothing published any more."""
        self.ran_s, self._finished = self.now_s, True
        self._sink.close()
        self.simulation.drain()
        self._take_note()

    def _take_note(self) -> None:
        for one in self.planes.take_installed():
            self.logbook.note_installed(self.now_s, one)
        self.logbook.note_states(self._tail.take())
        problems = self.planes.take_problems()
        if problems:
            self._check_broker()
        # Without a broker every client of it complains, without an end: that it is gone is said once.
        for problem in problems if self.broker_ended is None else ():
            self.logbook.note(self.now_s, f"data plane: {problem}")

    def _check_workers(self) -> None:
        try:
            self.workers.check()
        except WorkerEndedError as error:
            self.worker_ended = str(error).partition(";")[0]  # what follows is its log
            self.logbook.note(self.now_s, self.worker_ended)
            raise

    def _check_broker(self) -> None:
        """Write down that the broker has ended by itself: once, and requests go on by the last weights."""
        if self.broker_ended is not None:
            return
        reason = self._broker.why_ended()
        if reason is not None:
            self.broker_ended = reason.partition("\n")[0].rstrip(":")  # what follows is its log
            self.logbook.note(self.now_s, f"the broker is gone, the last weights stay: {self.broker_ended}")

    def _declare_fleet(self, kafka: KafkaSettings, topics: Mapping[str, Topic]) -> Publisher:
        publisher = Publisher(kafka)
        self._stack.callback(publisher.close, 2.0)
        for profile in self.options.scenario.profiles:
            publisher.publish(topics[PROFILES].name, profile.key, encode(profile))
        for setup in self.options.scenario.engines:
            publisher.publish(topics[FLEET].name, setup.spec.key, encode(setup.spec))
        left = publisher.flush(10.0)
        if left or publisher.counts.failed:
            raise StartError(f"{left + publisher.counts.failed} records of the fleet could not be published")
        return publisher

    def _begin_fleet(self) -> None:
        """Begin virtual time at the next whole second of the wall clock, so that periods end on whole seconds."""
        now_ms = time.time_ns() // 1_000_000
        start_ms = (now_ms // 1000 + 1) * 1000
        self._zero = time.monotonic() + (start_ms - now_ms) / 1000
        rng = np.random.default_rng(self.options.seed)
        self.simulation = Simulation(self.options.scenario, self.planes.routers, self._sink, start_ms, rng)
        self.simulation.reports_demand = False
        self.recent = Recent(lambda: self.simulation.timeline.now_s)
        self.simulation.listeners.append(self.recent)

    def _wait_for_routes(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.planes.all_route(self.options.scenario.model, self.simulation.now_ms):
            if time.monotonic() >= deadline:
                logs = ", ".join(map(str, self.workers.logs.values()))
                said = self.workers.last_complaints()
                why = f"; {said}" if said else ""
                raise StartError(f"no weights for every cluster after {START_TIMEOUT_S:g} s{why}; see {logs}")
            self.step()
            time.sleep(0.01)
        self.times.first_snapshot_s = self._elapsed()
        self._arrivals_s = self.simulation.timeline.now_s
        self.simulation.start_arrivals()
        for timed in self.options.script:
            self.simulation.timeline.at(self._arrivals_s + timed.at_s, partial(self.do, timed.command))

    def _elapsed(self) -> float:
        return time.monotonic() - self._began
