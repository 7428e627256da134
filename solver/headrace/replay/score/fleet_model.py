"""What engines do with the load that weights send them: their profile's curve, and a fluid queue beyond the wall.

    served   = min(backlog / dt + offered, capacity)        capacity = ready replicas x capacity of one / slowness
    backlog' = backlog + (offered - served) dt              at most queue_per_slot x capacity x latency at the wall;
                                                            what is beyond is refused
    wait     = mean backlog / capacity                      first come, first served
    TTFT, TBOT = slowness x profile(served / capacity), TTFT + wait

A run begins with what waited at each engine when its first tick was made: that is history's, whatever the policy.

A fluid has no chance in it: queues that come of bursts shorter than a tick are not in it, below the wall there is none.
An engine that is dead, silent beyond its time, or without replicas has no capacity, and its backlog is lost: what is
sent there all the same is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.slowness import Slowness
from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.weights import Reason
from headrace.solver.core.problem import Engine, Problem
from headrace.solver.core.profile.load_cost import MS, latency_ms

Ints = npt.NDArray[np.int64]
_GONE = frozenset(
    {Reason.STALE, Reason.UNHEALTHY, Reason.NO_READY_REPLICA, Reason.NO_STATE, Reason.INVALID_STATE, Reason.NO_PROFILE}
)


@dataclass(frozen=True, slots=True, eq=False)
class Engines:
    """The engines of one tick by number, (E,); numbers that are not there have no capacity.

    Capacity, and what waits, is in requests of work 1, and `tokens` are those of one. `waiting` is what was told to
    wait at each; 0 where that was not measured.
    """

    capacity: Floats
    waiting: Floats
    slowness: Floats
    tokens: Floats
    profiles: tuple[tuple[LatencyProfile, Ints], ...]

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return len(self.capacity)


@dataclass(frozen=True, slots=True, eq=False)
class Behaviour:
    """What engines did over one tick, (E,). `load` is of true capacity; beyond the wall it is 1 and they wait."""

    load: Floats
    offered: Floats
    served: Floats
    refused_share: Floats
    ttft_s: Floats
    tbot_s: Floats
    wait_s: Floats
    idle_ttft_s: Floats
    beyond_s: Floats
    unmeasured: npt.NDArray[np.bool_]


def engines_of(
    problem: Problem, numbers: Ints, slowness: Slowness, tokens: Mapping[str, float], gone: frozenset[str]
) -> Engines:
    """Give a problem's engines as arrays over all numbers.

    Args:
        problem: the tick's.
        numbers: of the problem's engines, in its order, and last how many numbers there are.
        slowness: of engines.
        tokens: mean tokens of an answer by model, where known.
        gone: engines that were dead, though the problem has them in.
    """
    count = int(numbers[-1])
    capacity, slow, length, waiting = np.zeros(count), np.ones(count), np.zeros(count), np.zeros(count)
    of_profile: dict[str, list[int]] = {}
    work = _mean_work(problem)
    for number, engine in zip(numbers[:-1].tolist(), problem.engines, strict=True):
        profile = problem.profiles.get(engine.profile_id)
        if profile is None or is_gone(engine) or engine.engine_id in gone:
            continue
        slow[number] = slowness.of(engine.engine_id)
        capacity[number] = engine.ready_replicas * engine.capacity_rps_per_replica / slow[number]
        told = (tokens[m] / work.get(m, 1.0) for m in engine.models if m in tokens)
        length[number] = next(told, profile.output_tokens)
        waiting[number] = 0.0 if engine.throughput is None else engine.throughput.waiting * engine.mix.mean
        of_profile.setdefault(engine.profile_id, []).append(number)
    grouped = tuple((problem.profiles[p], np.array(e, dtype=np.int64)) for p, e in sorted(of_profile.items()))
    return Engines(capacity, waiting, slow, length, grouped)


def _mean_work(problem: Problem) -> dict[str, float]:
    """Give the mean work of what is asked for, by model, where it is not 1: measured answers are of that mix."""
    if all(row.work == 1.0 for row in problem.rows):
        return {}
    asked: dict[str, tuple[float, float]] = {}
    for row in problem.rows:
        requests, work = asked.get(row.route.model, (0.0, 0.0))
        asked[row.route.model] = requests + row.demand_rps, work + row.demand_work
    return {model: work / requests for model, (requests, work) in asked.items() if requests > 0.0}


def is_gone(engine: Engine) -> bool:
    """Say whether an engine answers nobody; one that is only drained still serves what it is sent."""
    return engine.exclusion is not None and engine.exclusion.reason in _GONE


class FleetModel:
    """One world: how fast its engines are against their profiles, and what waits at each.

    Args:
        queue_per_slot: see `ScoreSettings`.
        slower: every latency is this many times the profile's, and every capacity is divided by it.
    """

    def __init__(self, queue_per_slot: float, slower: float = 1.0) -> None:
        self._queue_per_slot = queue_per_slot
        self._slower = slower
        self._backlog: Floats | None = None

    def step(self, engines: Engines, offered: Floats, seconds: float) -> Behaviour:
        """Let `offered` RPS, (E,), arrive for some seconds."""
        capacity = engines.capacity / self._slower
        slow = engines.slowness * self._slower
        backlog = self._carried(engines, capacity)
        wall_ttft, wall_tbot, idle_ttft = _ends(engines)
        room = self._queue_per_slot * capacity * slow * (wall_ttft + engines.tokens * wall_tbot)
        arriving = offered * seconds
        served = np.minimum(backlog + arriving, capacity * seconds)
        left = backlog + arriving - served
        refused = np.where(capacity > 0.0, np.maximum(left - room, 0.0), arriving)
        after = np.where(capacity > 0.0, np.minimum(left, room), 0.0)
        safe = np.where(capacity > 0.0, capacity, 1.0)
        load = np.where(capacity > 0.0, served / (safe * seconds), 0.0)
        wait_s = np.where(capacity > 0.0, (backlog + after) / (2.0 * safe), 0.0)
        ttft, tbot, beyond, unmeasured = self._read(engines.profiles, np.minimum(load, 1.0))
        self._backlog = after
        return Behaviour(
            load=load,
            offered=offered,
            served=served / seconds,
            refused_share=np.where(arriving > 0.0, np.minimum(refused / np.maximum(arriving, 1e-12), 1.0), 0.0),
            ttft_s=slow * ttft + wait_s,
            tbot_s=slow * tbot,
            wait_s=wait_s,
            idle_ttft_s=slow * idle_ttft,
            beyond_s=slow * beyond,
            unmeasured=unmeasured,
        )

    def _carried(self, engines: Engines, capacity: Floats) -> Floats:
        backlog = engines.waiting if self._backlog is None else np.zeros(engines.count)
        if self._backlog is not None:
            backlog[: len(self._backlog)] = self._backlog
        return np.where(capacity > 0.0, backlog, 0.0)

    def _read(
        self, profiles: Sequence[tuple[LatencyProfile, Ints]], load: Floats
    ) -> tuple[Floats, Floats, Floats, npt.NDArray[np.bool_]]:
        """Give TTFT, TBOT, what of the latency lies beyond the measured range, and whether the load does."""
        ttft, tbot, beyond = np.zeros_like(load), np.zeros_like(load), np.zeros_like(load)
        unmeasured = np.zeros(load.shape, dtype=np.bool_)
        for profile, numbers in profiles:
            u = load[numbers]
            ttft_ms, tbot_ms = latency_ms(profile, u)
            ttft[numbers], tbot[numbers] = ttft_ms / MS, tbot_ms / MS
            outside = (u > profile.measured_to_load + 1e-9) | ((u > 0.0) & (u < profile.measured_from_load - 1e-9))
            if outside.any():
                edge = np.clip(u, profile.measured_from_load, profile.measured_to_load)
                edge_ttft, edge_tbot = latency_ms(profile, edge)
                gap = ttft_ms - edge_ttft + profile.output_tokens * (tbot_ms - edge_tbot)
                beyond[numbers] = np.where(outside, gap / MS, 0.0)
                unmeasured[numbers] = outside
        return ttft, tbot, beyond, unmeasured


def _ends(engines: Engines) -> tuple[Floats, Floats, Floats]:
    """Give each engine's TTFT and TBOT at its wall, and its TTFT when idle, in seconds, by its profile."""
    wall_ttft, wall_tbot, idle_ttft = np.zeros(engines.count), np.zeros(engines.count), np.zeros(engines.count)
    for profile, numbers in engines.profiles:
        wall_ttft[numbers], wall_tbot[numbers], idle_ttft[numbers] = _ends_of(profile)
    return wall_ttft, wall_tbot, idle_ttft


@lru_cache(maxsize=4096)
def _ends_of(profile: LatencyProfile) -> tuple[float, float, float]:
    ttft_ms, tbot_ms = latency_ms(profile, np.array([0.0, 1.0]))
    return float(ttft_ms[1]) / MS, float(tbot_ms[1]) / MS, float(ttft_ms[0]) / MS
