"""Closed-loop experiments on stability: one run, what is measured of it, and summaries with confidence intervals.

    0 ── settle ── quiet ── failure (an engine dies, and is back after a while) ── shift (demand moves) ── end

Everything is virtual time and seeded; each seed begins at another place of the trace, or twenty seeds would see one and
the same demand. A session's request counts as a hit where it is answered by the engine that answered the session's
request before it, in the order of arrival; a retry that ends elsewhere is a miss.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.fleet.closed_loop import ClosedLoop, LoopSettings
from headrace.infra.fleet.request import Ended, Kind, Request
from headrace.infra.fleet.scenario import Scenario
from headrace.infra.fleet.scenarios.three_regions import scenario as three_regions
from headrace.infra.fleet.script import parse_script
from headrace.replay.score.movement import moved_per_minute
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from headrace.streams.settings import StreamsSettings

METRICS = (
    ("mean_ms", "mean ms", -1),
    ("p99_ms", "p99 ms", -1),
    ("kv_hit", "kv hit %", 1),
    ("in_time", "in time %", 1),
    ("moved", "moved %/min", -1),
    ("shed", "shed %", -1),
    ("overload_s", "overload s", -1),
)
"""What is measured in each phase: its name, how it is shown, and 1 where more is better."""
TAIL_S = 6.0
START_MS = 1_700_000_000_000
PHASES = ("quiet", "failure", "shift")
_T95 = dict(
    enumerate(
        (
            12.71,
            4.30,
            3.18,
            2.78,
            2.57,
            2.45,
            2.36,
            2.31,
            2.26,
            2.23,
            2.20,
            2.18,
            2.16,
            2.14,
            2.13,
            2.12,
            2.11,
            2.10,
            2.09,
        ),
        start=1,
    )
)
"""Student's t of a 95 % interval by degrees of freedom; of more than the last, the last: too wide a little."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Seconds of each part. The dead engine is away for half of `failure_s`.

    `after` lengthens them for signals that come late, so that what a phase causes is not counted in the next one; nor
    are the arrivals of a phase's last `TAIL_S`, whose answers come in the next. Before the first signals of demand are
    there nothing is known of it, and what has queued up by then must have drained when the run has settled. That takes
    30 s and four delays, and is as long as 20 s need wherever they are shorter: quiet is then the same piece of the
    trace at every delay, with the same steps of demand in it.
    """

    settle_s: float = 110.0
    quiet_s: float = 40.0
    failure_s: float = 40.0
    shift_s: float = 40.0

    def after(self, delay_s: float) -> "Lengths":
        """Give the same for a delay."""
        late = 1.5 * delay_s
        settle = max(self.settle_s, 30.0 + 4.0 * delay_s)
        return Lengths(settle, self.quiet_s, self.failure_s + late, self.shift_s + late)

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

    def span(self, phase: str) -> tuple[float, float]:
        """Give from when to when a phase's arrivals count."""
        lengths = {"quiet": self.quiet_s, "failure": self.failure_s, "shift": self.shift_s}
        begin = self.settle_s + sum(lengths[name] for name in PHASES[: PHASES.index(phase)])
        return begin, begin + lengths[phase] - TAIL_S

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
    """One run: settings of the loop, seed, lengths, and how wrong the solver's beliefs are.

    The data plane is the same for every policy; `relieved` says whether its crowded engines let sessions go.
    """

    solver: SolverSettings
    delay_s: float
    seed: int
    lengths: Lengths = Lengths()
    errors: Errors = RIGHT
    streams: StreamsSettings = field(default_factory=StreamsSettings)
    relieved: bool = True


def data_plane(case: Case) -> DataPlaneSettings:
    """Give the data plane's settings: as they ship, or with a crowd that no engine ever has."""
    settings = DataPlaneSettings()
    return settings if case.relieved else replace(settings, guards=replace(settings.guards, in_flight_min=1_000_000))


def measure(case: Case) -> dict[str, dict[str, float]]:
    """Run one case; give each phase's numbers."""
    fleet = misjudged(elsewhere(scaled(three_regions()), case.seed), case.errors)
    loop = ClosedLoop(
        fleet,
        LoopSettings(case.streams, case.solver, data_plane(case), case.delay_s),
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


def elsewhere(fleet: Scenario, seed: int) -> Scenario:
    """Give the scenario at another place of its trace, for all clusters alike, so that they stay apart on it."""
    shift = float(np.random.default_rng((seed, 1)).random())
    return replace(fleet, clusters=tuple(replace(c, trace_start=(c.trace_start + shift) % 1.0) for c in fleet.clusters))


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


IN_TIME_S = 3.0
"""What a user waits at most for a whole answer, three times the mean of a quiet fleet."""


@dataclass(frozen=True, slots=True)
class Served:
    """How one request ended: `engine_id` and `latency_s` are None unless it was answered."""

    arrived_s: float
    number: int
    session: bytes
    engine_id: str | None
    latency_s: float | None


class Watch:
    """What is measured while a loop runs. A request belongs to the phase in which it arrived, however it ended."""

    def __init__(self, loop: ClosedLoop) -> None:
        self._loop = loop
        self._served: list[Served] = []
        self._overload: dict[str, float] = {}

    def end(self, request: Request, ended: Ended) -> None:
        """Note an ending."""
        engine_id = ended.engine_id if ended.kind is Kind.ANSWERED else None
        self._served.append(Served(request.arrived_s, request.number, request.session, engine_id, ended.latency_s))

    def second(self) -> None:
        """Count engines that have somebody waiting, engine seconds."""
        phase = self._loop.simulation.tally.phase
        waiting = sum(engine.waiting > 0 for engine in self._loop.simulation.engines.values())
        self._overload[phase] = self._overload.get(phase, 0.0) + waiting

    def numbers(self, phase: str, start_s: float, lengths: Lengths) -> dict[str, float]:
        """Give a phase's numbers; a phase that nobody was answered in has NaN latencies."""
        from_s, to_s = (start_s + at_s for at_s in lengths.span(phase))
        here = [s for s in self._served if from_s <= s.arrived_s < to_s]
        latency = sorted(1000.0 * s.latency_s for s in here if s.latency_s is not None)
        seen, hit = hits(self._served, from_s, to_s)
        share = 100.0 / len(here) if here else math.nan
        return {
            "mean_ms": sum(latency) / len(latency) if latency else math.nan,
            "p99_ms": latency[math.ceil(0.99 * len(latency)) - 1] if latency else math.nan,
            "moved": moved_per_minute(self._loop.snapshots, from_s, to_s),
            "kv_hit": 100.0 * hit / seen if seen else math.nan,
            "in_time": share * sum(ms <= 1000.0 * IN_TIME_S for ms in latency),
            "shed": share * (len(here) - len(latency)),
            "overload_s": self._overload.get(phase, 0.0),
        }


def hits(served: Sequence[Served], from_s: float, to_s: float) -> tuple[int, int]:
    """Count requests that continue a session, and those of them on the engine of the session's request before.

    In the order in which they arrived: a request that waited long may be answered after its successor, and neither of
    them has moved for that.
    """
    engine_of: dict[bytes, str] = {}
    seen = hit = 0
    for one in sorted(served, key=lambda s: s.number):
        if one.engine_id is None:
            continue
        before = engine_of.get(one.session)
        engine_of[one.session] = one.engine_id
        if before is not None and from_s <= one.arrived_s < to_s:
            seen += 1
            hit += before == one.engine_id
    return seen, hit


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
