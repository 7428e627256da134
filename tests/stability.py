"""Closed-loop experiments on stability: one run, what is measured of it, and summaries with confidence intervals.

    0 ── settle ── quiet ── failure (an engine dies, and is back after a while) ── shift (demand moves) ── end

Everything is virtual time and seeded. A session's request counts as a hit where it is answered by the engine that
answered the session's previous one; a retry that ends elsewhere is a miss.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headrace.infra.fleet.closed_loop import ClosedLoop, LoopSettings
from headrace.infra.fleet.request import Ended, Kind, Request
from headrace.infra.fleet.scenario import Scenario
from headrace.infra.fleet.scenarios.three_regions import scenario as three_regions
from headrace.infra.fleet.script import parse_script
from headrace.replay.score.movement import moved_per_minute
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from headrace.streams.settings import StreamsSettings

START_MS = 1_700_000_000_000
PHASES = ("quiet", "failure", "shift")
_T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 14: 2.14, 19: 2.09, 29: 2.05}


@dataclass(frozen=True, slots=True)
class Lengths:
    """Seconds of each part. The dead engine is away for half of `failure_s`.

    `after` lengthens them for signals that come late, so that what a phase causes is not counted in the next one.
    """

    settle_s: float = 20.0
    quiet_s: float = 40.0
    failure_s: float = 40.0
    shift_s: float = 40.0

    def after(self, delay_s: float) -> "Lengths":
        """Give the same for a delay."""
        late = 1.5 * delay_s
        return Lengths(self.settle_s + late, self.quiet_s, self.failure_s + late, self.shift_s + late)

    def script(self) -> str:
        """Give the commands of a run."""
        quiet, failure = self.settle_s, self.settle_s + self.quiet_s
        shift = failure + self.failure_s
        return f"""
            t={quiet}s phase quiet
            t={failure}s phase failure
            t={failure}s kill engine-b
            t={failure + self.failure_s / 2}s revive engine-b
            t={shift}s phase shift
            t={shift}s surge cluster-b 0.6
            t={shift}s surge cluster-a 1.4
        """

    @property
    def total_s(self) -> float:
        """Length of the whole run."""
        return self.settle_s + self.quiet_s + self.failure_s + self.shift_s


@dataclass(frozen=True, slots=True)
class Errors:
    """How wrong what the solver believes is: engines in turn too fast and too slow, too large and too small."""

    speed: float = 0.0
    capacity: float = 0.0


RIGHT = Errors()


@dataclass(frozen=True, slots=True)
class Case:
    """One run: settings of the loop, seed, lengths, and how wrong the solver's beliefs are."""

    solver: SolverSettings
    delay_s: float
    seed: int
    lengths: Lengths = Lengths()
    errors: Errors = RIGHT
    streams: StreamsSettings = field(default_factory=StreamsSettings)


def measure(case: Case) -> dict[str, dict[str, float]]:
    """Run one case; give each phase's numbers."""
    fleet = misjudged(scaled(three_regions()), case.errors)
    loop = ClosedLoop(
        fleet,
        LoopSettings(streams=case.streams, solver=case.solver, delay_s=case.delay_s),
        Glop(threads=1),
        START_MS,
        np.random.default_rng(case.seed),
    )
    watch = Watch(loop)
    loop.simulation.listeners.append(watch.end)
    loop.warm_up(limit_s=60.0)
    start_s = loop.simulation.timeline.now_s
    for timed in parse_script(case.lengths.script(), fleet.names):
        loop.simulation.schedule(timed, start_s)
    loop.simulation.timeline.every(1.0, watch.second)
    loop.simulation.run_until(start_s + case.lengths.total_s)
    return {phase: watch.numbers(phase, start_s, case.lengths) for phase in PHASES}


def scaled(fleet: Scenario, demand: float = 0.9) -> Scenario:
    """Give the scenario at a share of its demand: 225 RPS on 280, so that quiet is not the edge of overload."""
    return replace(fleet, clusters=tuple(replace(c, rate_rps=demand * c.rate_rps) for c in fleet.clusters))


def misjudged(fleet: Scenario, errors: Errors) -> Scenario:
    """Give the scenario with wrong beliefs: engine i's profile and stated capacity are off, by turns up and down."""
    if errors == RIGHT:
        return fleet
    (profile,) = fleet.profiles
    setups, profiles = list(fleet.engines), [profile]
    for i, setup in enumerate(fleet.engines):
        sign = 1.0 if i % 2 == 0 else -1.0
        speed, capacity = 1.0 + sign * errors.speed, 1.0 + sign * errors.capacity
        believed = replace(
            profile,
            profile_id=f"{profile.profile_id}-{i}",
            ttft_s=tuple(s / speed for s in profile.ttft_s),
            tbot_s=tuple(s / speed for s in profile.tbot_s),
        )
        rps = setup.spec.capacity_rps_per_replica
        assert rps is not None
        spec = replace(setup.spec, profile_id=believed.profile_id, capacity_rps_per_replica=rps * capacity)
        setups[i] = replace(setup, spec=spec)
        profiles.append(believed)
    return replace(fleet, engines=tuple(setups), profiles=tuple(profiles))


class Watch:
    """What is measured while a loop runs."""

    def __init__(self, loop: ClosedLoop) -> None:
        self._loop = loop
        self._engine_of: dict[bytes, str] = {}
        self._seen: dict[str, list[int]] = {}
        self._hits: dict[str, list[int]] = {}
        self._overload: dict[str, float] = {}
        self._ends: dict[str, list[int]] = {}

    def end(self, request: Request, ended: Ended) -> None:
        """Count an ending in the phase in which it came."""
        phase = self._loop.simulation.tally.phase
        ends = self._ends.setdefault(phase, [0, 0])
        ends[0] += 1
        ends[1] += ended.kind is not Kind.ANSWERED
        if ended.kind is not Kind.ANSWERED or ended.engine_id is None:
            return
        before = self._engine_of.get(request.session)
        self._engine_of[request.session] = ended.engine_id
        if before is not None:
            hits = self._hits.setdefault(phase, [0, 0])
            hits[0] += 1
            hits[1] += before == ended.engine_id

    def second(self) -> None:
        """Count engines that have somebody waiting, engine seconds."""
        phase = self._loop.simulation.tally.phase
        waiting = sum(engine.waiting > 0 for engine in self._loop.simulation.engines.values())
        self._overload[phase] = self._overload.get(phase, 0.0) + waiting

    def numbers(self, phase: str, start_s: float, lengths: Lengths) -> dict[str, float]:
        """Give a phase's numbers; a phase that nobody was answered in has NaN latencies."""
        latency = self._loop.simulation.tally.latency(phase)
        ended, unserved = self._ends.get(phase, [0, 0])
        seen, hit = self._hits.get(phase, [0, 0])
        from_s = start_s + lengths.settle_s
        spans = {"quiet": lengths.quiet_s, "failure": lengths.failure_s, "shift": lengths.shift_s}
        for name in PHASES[: PHASES.index(phase)]:
            from_s += spans[name]
        return {
            "mean_ms": math.nan if latency.mean_ms is None else latency.mean_ms,
            "p99_ms": math.nan if latency.p99_ms is None else latency.p99_ms,
            "moved": moved_per_minute(self._loop.snapshots, from_s, from_s + spans[phase]),
            "kv_hit": 100.0 * hit / seen if seen else math.nan,
            "shed": 100.0 * unserved / ended if ended else math.nan,
            "overload_s": self._overload.get(phase, 0.0),
        }


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Give mean and half width of its 95 % confidence interval (Student's t); the half width of one value is NaN."""
    found = [v for v in values if not math.isnan(v)]
    if not found:
        return math.nan, math.nan
    mean = sum(found) / len(found)
    if len(found) < 2:
        return mean, math.nan
    spread = math.sqrt(sum((v - mean) ** 2 for v in found) / (len(found) - 1))
    known = max(n for n in _T95 if n <= len(found) - 1)
    return mean, _T95[known] * spread / math.sqrt(len(found))


def averaged(runs: Sequence[Mapping[str, Mapping[str, float]]], phase: str, name: str) -> tuple[float, float]:
    """Give one number over several runs, with its interval."""
    return interval([run[phase][name] for run in runs])
