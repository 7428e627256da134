"""The fleet behind a simulation of flows: what its engines really are now, and what each did in the last step.

Engines follow their profiles exactly, times a slow factor; beyond the wall a fluid queue. Faults are the script's, but
those of single requests: `errors` and `silence` need requests, and are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.infra.fleet import commands as do
from headrace.infra.fleet.round_trips import round_trip
from headrace.infra.fleet.scenario import EngineSetup, Scenario
from headrace.infra.fleet.script import Timed
from headrace.replay.score.fleet_model import engines_of
from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.placement import Numbers, Placer
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.slowness import Slowness
from headrace.replay.score.world import Happened, World
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import Snapshot
from headrace.solver.core.problem import Engine, Problem, Row

CLASS = "default"
_NEEDS_REQUESTS = (do.Errors, do.Silence)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What engines showed in a step, by engine, in the order of the fleet; `alive` and `ready` at its end."""

    end_s: float
    demand: Floats
    served: Floats
    latency_s: Floats
    waiting: Floats
    alive: tuple[bool, ...]
    ready: tuple[int, ...]


class FlowFleet:
    """Engines, clusters and round trips of a scenario, and the faults that befall them."""

    def __init__(self, scenario: Scenario, faults: Sequence[Timed], rules: ScoreSettings) -> None:
        wrong = tuple(f"{t.command.sentence}: flows have no requests" for t in faults if _needs_requests(t))
        if wrong:
            raise InvalidInputError("faults", wrong)
        self.scenario = scenario
        self.setups: tuple[EngineSetup, ...] = tuple(sorted(scenario.engines, key=lambda s: s.spec.engine_id))
        self.network_s: dict[tuple[str, str], float | None] = {
            (c.name, s.spec.site): round_trip(c.region, s.spec.site, np.random.default_rng(0)).median_s
            for c in scenario.clusters
            for s in self.setups
        }
        self.profiles = {profile.profile_id: profile for profile in scenario.profiles}
        self._faults = sorted(faults, key=lambda timed: timed.at_s)
        self._replicas = {s.spec.engine_id: s.replicas for s in self.setups}
        self._dead: dict[str, float] = {}
        self._slow: dict[str, float] = {}
        self._surge = {c.name: 1.0 for c in scenario.clusters}
        self._world = World(rules)
        self._numbers = Numbers()
        self._placer = Placer(self._numbers)

    def problem(self, demand: Sequence[float]) -> Problem:
        """Give the fleet as it is, with what each cluster asks for."""
        rows = [
            Row(RouteKey(c.name, self.scenario.model, CLASS), 0, rps)
            for c, rps in zip(self.scenario.clusters, demand, strict=True)
        ]
        engines = tuple(self.engine(s, self._replicas[s.spec.engine_id]) for s in self.setups)
        return Problem(tuple(sorted(rows, key=lambda row: row.route)), engines, self.network_s, self.profiles)

    def engine(self, setup: EngineSetup, ready: int) -> Engine:
        """Give one engine with so many ready replicas, nothing measured."""
        spec = setup.spec
        return Engine(
            engine_id=spec.engine_id,
            site=spec.site,
            models=spec.models,
            capabilities=spec.capabilities,
            residency=spec.residency,
            address=spec.address,
            profile_id=spec.profile_id,
            ready_replicas=ready,
            capacity_rps_per_replica=setup.curve.capacity_rps,
        )

    def step(
        self, snapshot: Snapshot | None, demand: Floats, begin_s: float, seconds: float
    ) -> tuple[Step, Happened | None]:
        """Let a step pass under these weights; faults due at its begin happen first."""
        self._befall(begin_s)
        asked = demand * np.array([self._surge[c.name] for c in self.scenario.clusters])
        truth = self.problem(asked.tolist())
        happened = None
        count = len(self.setups)
        served, latency, waiting = np.zeros(count), np.zeros(count), np.zeros(count)
        if snapshot is not None:
            placement = self._placer.place(truth, snapshot)
            order = [self._numbers.of(s.spec.engine_id) for s in self.setups]
            numbers = np.array([*order, len(self._numbers.ids)], dtype=np.int64)
            engines = engines_of(truth, numbers, self._slowness(), {}, frozenset(self._dead))
            by_cluster = {c.name: rps for c, rps in zip(self.scenario.clusters, asked.tolist(), strict=True)}
            rows = np.array([by_cluster[r.cluster] for r in placement.routes])
            happened = self._world.play(placement, engines, rows, np.zeros(len(rows)), seconds)
            seen = happened.behaviour
            served = seen.served[order]
            tokens = engines.tokens[order]
            latency = seen.ttft_s[order] + tokens * seen.tbot_s[order]
            waiting = (seen.wait_s * seen.served)[order]
        alive = tuple(s.spec.engine_id not in self._dead for s in self.setups)
        ready = tuple(self._replicas[s.spec.engine_id] for s in self.setups)
        return Step(begin_s + seconds, asked, served, latency, waiting, alive, ready), happened

    def _slowness(self) -> Slowness:
        return Slowness.known(self._slow)

    def _befall(self, now_s: float) -> None:
        while self._faults and self._faults[0].at_s <= now_s:
            self._do(self._faults.pop(0).command, now_s)
        for engine_id, back_s in list(self._dead.items()):
            if back_s <= now_s:
                del self._dead[engine_id]

    def _do(self, command: do.Command, now_s: float) -> None:
        match command:
            case do.Kill(engine_id):
                self._dead[engine_id] = float("inf")
            case do.Revive(engine_id):
                self._dead.pop(engine_id, None)
            case do.Restart(engine_id):
                self._dead[engine_id] = now_s + self.scenario.times.down_s
            case do.Slow(engine_id, factor):
                self._slow[engine_id] = factor
            case do.Heal(engine_id):
                self._slow.pop(engine_id, None)
            case do.Replicas(engine_id, count):
                self._replicas[engine_id] = count
            case do.Surge(cluster, factor):
                self._surge[cluster] = factor
            case _:
                pass  # a phase's name changes nothing; the others were refused


def believed(engine: Engine, **changes: object) -> Engine:
    """Give an engine with what signals say of it."""
    return replace(engine, **changes)  # type: ignore[arg-type]  # fields of Engine, by name


def _needs_requests(timed: Timed) -> bool:
    return isinstance(timed.command, _NEEDS_REQUESTS)
