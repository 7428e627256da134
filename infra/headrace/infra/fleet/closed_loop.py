"""The whole loop in virtual time: fleet -> fold -> state -> problem -> weights -> routers -> fleet, without a broker.

    signals ──delay_s──► KeyedFold ─► StateFold ─► assemble ─► decide ─► Router.apply     at each period of the solver

The same pure functions as the workers run, so that a minute of the demo takes about a second and gives the same bytes
each time. What is left out is the transport: `delay_s` stands for it.

Failure mode: a tick that has nothing to solve installs nothing, as in the worker; routers then refuse or go on.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from numpy.random import Generator

from headrace.dataplane.decision import Outcome
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.fleet.scenario import Scenario
from headrace.infra.fleet.simulation import Simulation
from headrace.infra.fleet.sink import MemorySink
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import FLEET, PROFILES, STATE_OF, TopicSettings, topic_table
from headrace.schemas.weights import Snapshot
from headrace.solver.core.decide import Decided, decide
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.state_view import StateFold, StateView
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.problem import Problem
from headrace.solver.core.tick import Tick, TickStamp
from headrace.solver.settings import SolverSettings
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.settings import StreamsSettings

TOPICS = TopicSettings(prefix="", partitions=1)
"""Topics are called by their roles here, and have one partition, so a record's place says all about its order."""

Watcher = Callable[[Problem, Tick], None]


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Settings of each part, and how long a signal takes to reach the fold."""

    streams: StreamsSettings = field(default_factory=StreamsSettings)
    solver: SolverSettings = field(default_factory=SolverSettings)
    dataplane: DataPlaneSettings = field(default_factory=DataPlaneSettings)
    delay_s: float = 0.25


class ClosedLoop:
    """A fleet and the control plane that steers it.

    Args:
        scenario: the fleet.
        settings: of each part.
        lp: the linear solver; handed in, since the fleet knows no library.
        start_ms: the instant of virtual time 0.
        rng: the seeded generator of the fleet.

    Attributes:
        simulation: the fleet; commands go there.
        snapshots: every snapshot installed, with its virtual time.
        watchers: are given each tick's problem and what was decided, once it is installed.
    """

    def __init__(
        self, scenario: Scenario, settings: LoopSettings, lp: LinearSolver, start_ms: int, rng: Generator
    ) -> None:
        self._settings = settings
        self._lp = lp
        self._sink = MemorySink()
        self._routers = {c.name: Router(settings.dataplane, c.name) for c in scenario.clusters}
        self.simulation = Simulation(scenario, self._routers, self._sink, start_ms, rng)
        self.snapshots = list[tuple[float, Snapshot]]()
        self.watchers = list[Watcher]()
        self._folds = {role: KeyedFold(KINDS[role], settings.streams, TOPICS.partitions) for role in STATE_OF}
        self._stored: dict[str, dict[bytes, bytes]] = {role: {} for role in STATE_OF}
        self._under_way: deque[RawRecord] = deque()
        self._view = StateFold(topic_table(TOPICS))
        for offset, profile in enumerate(scenario.profiles):
            self._offer(RawRecord(PROFILES, 0, offset, start_ms, profile.key, encode(profile)))
        for offset, setup in enumerate(scenario.engines):
            self._offer(RawRecord(FLEET, 0, offset, start_ms, setup.spec.key, encode(setup.spec)))
        self._empty_ms = start_ms
        self.simulation.timeline.every(settings.solver.period_ms / 1000, self._tick)

    def warm_up(self, limit_s: float = 30.0) -> None:
        """Let engines and probes be heard until every router has weights, then let requests arrive.

        Raises:
            TimeoutError: they had not within `limit_s`.
        """
        while not all(self._routes(router) for router in self._routers.values()):
            if self.simulation.timeline.now_s >= limit_s:
                raise TimeoutError(f"not every router has weights after {limit_s:g} s of virtual time")
            self.simulation.run_until(self.simulation.timeline.now_s + self._settings.solver.period_ms / 1000)
        self.simulation.start_arrivals()

    def _routes(self, router: Router) -> bool:
        decision = router.route(self.simulation.scenario.model, key=b"warm-up", now_ms=self.simulation.now_ms)
        return decision.outcome is Outcome.ROUTED

    def _tick(self) -> None:
        now_s, now_ms = self.simulation.timeline.now_s, self.simulation.now_ms
        self._under_way.extend(self._sink.drain())
        self._fold_arrived(now_ms)
        problem = assemble(self._view.view(), self._settings.solver, now_ms)
        previous = self.snapshots[-1][1] if self.snapshots else None
        stamp = TickStamp(epoch=1, version=len(self.snapshots) + 1, now_ms=now_ms)
        outcome = decide(problem, previous, self._settings.solver, self._lp, stamp, self._empty_ms)
        if not isinstance(outcome, Decided):
            if outcome.nothing_to_solve:
                self._empty_ms = now_ms
            return
        self.snapshots.append((now_s, outcome.tick.snapshot))
        for router in self._routers.values():
            router.apply(outcome.tick.snapshot)
        for watch in self.watchers:
            watch(problem, outcome.tick)

    def states(self, role: str) -> Mapping[bytes, bytes]:
        """Give the newest state of each key of a signals topic, as it would stand on the topic of states."""
        return self._stored[role]

    def view(self) -> StateView:
        """Give what the newest tick saw."""
        return self._view.view()

    def _fold_arrived(self, now_ms: int) -> None:
        arrived: dict[str, list[RawRecord]] = {role: [] for role in STATE_OF}
        while self._under_way and self._under_way[0].timestamp_ms + 1000 * self._settings.delay_s <= now_ms:
            record = self._under_way.popleft()
            arrived[record.topic].append(record)
        for role, records in arrived.items():
            stored = self._stored[role]
            folded = self._folds[role].fold(records, stored.get, None)
            if folded.rejected:
                raise AssertionError(f"the fleet published what the fold refuses: {folded.rejected[0].detail}")
            stored.update(folded.states)
            for key, value in folded.states.items():
                self._offer(RawRecord(STATE_OF[role], 0, 0, now_ms, key, value))

    def _offer(self, record: RawRecord) -> None:
        rejected = self._view.offer(record)
        if rejected is not None:
            raise AssertionError(f"{record.topic} holds what the solver refuses: {rejected.detail}")
