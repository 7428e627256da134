"""What engines do with the load that weights send them: their profile's curve, filling up, and a queue beyond the wall.

    in service at load u = u capacity latency(u)                  Little's law; all slots are busy at u = 1, the wall
    inside'  = inside + (offered - u capacity) dt                 u is that of those in service at the step's end
    waiting  = inside - slots                                     at most queue_per_slot x slots; more is refused
    wait     = mean waiting / capacity                            first come, first served
    TTFT, TBOT = slowness x profile(u), TTFT + wait
    capacity = ready replicas x capacity of one / slowness x latency at the wall by the profile's tokens / by these

An engine does not follow its load at once: a surge first fills the slots that are free, then the queue. Answers that
are longer than the profile's hold their slots longer, and the wall comes down. The step is implicit (backward Euler),
so it is stable for any length. A run begins with what was inside each engine when its first tick was made: that is
history's, whatever the policy; where that was not measured, with what the first load keeps inside.

Around these means is chance (`filling`): as much as requests that come and end by themselves make, less what is known
of when they came. An engine that is dead, silent beyond its time, or without replicas has no capacity, and what was
inside is lost: what is sent there all the same is refused.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.replay.score.filling import filled, filling_of, queued
from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.lengths import Answers
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

    Capacity, and what is inside, is in requests of work 1, and `tokens` are those of one. `inside` is what was told to
    be in service or to wait at each; NaN where that was not measured.
    """

    capacity: Floats
    inside: Floats
    slowness: Floats
    tokens: Floats
    profiles: tuple[tuple[LatencyProfile, Ints], ...]

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return len(self.capacity)


@dataclass(frozen=True, slots=True, eq=False)
class Behaviour:
    """What engines did over one tick, (E,). `load` is of true capacity; beyond the wall it is 1 and they wait.

    `waits` is the share of requests that have any of `wait_s` to wait.
    """

    load: Floats
    offered: Floats
    served: Floats
    refused_share: Floats
    ttft_s: Floats
    tbot_s: Floats
    wait_s: Floats
    waits: Floats
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
    capacity, slow, length, inside = np.zeros(count), np.ones(count), np.zeros(count), np.full(count, np.nan)
    of_profile: dict[str, list[int]] = {}
    answers, told = Answers(problem, tokens), list[tuple[int, float, float, float, float]]()
    for number, engine in zip(numbers[:-1].tolist(), problem.engines, strict=True):
        answer = answers.of(engine)
        if answer is None or is_gone(engine) or engine.engine_id in gone:
            continue
        factor, (each, stretch), through = slowness.of(engine.engine_id), answer, engine.throughput
        rps = engine.ready_replicas * engine.capacity_rps_per_replica / factor / stretch
        held = math.nan if through is None else (through.running + through.waiting) * engine.mix.mean
        told.append((number, rps, factor, each, held))
        of_profile.setdefault(engine.profile_id, []).append(number)
    if told:
        columns = np.array(told).T
        at = columns[0].astype(np.int64)
        capacity[at], slow[at], length[at], inside[at] = columns[1:]
    grouped = tuple((problem.profiles[p], np.array(e, dtype=np.int64)) for p, e in sorted(of_profile.items()))
    return Engines(capacity, inside, slow, length, grouped)


def is_gone(engine: Engine) -> bool:
    """Say whether an engine answers nobody; one that is only drained still serves what it is sent."""
    return engine.exclusion is not None and engine.exclusion.reason in _GONE


class FleetModel:
    """One world: how fast its engines are against their profiles, and how many requests are inside each.

    Args:
        queue_per_slot: see `ScoreSettings`.
        slower: every latency is this many times the profile's, and every capacity is divided by it.
        chance: see `ScoreSettings`.
    """

    def __init__(self, queue_per_slot: float, slower: float = 1.0, chance: float = 0.0) -> None:
        self._queue_per_slot = queue_per_slot
        self._slower = slower
        self._chance = chance
        self._inside: Floats | None = None

    def step(self, engines: Engines, offered: Floats, seconds: float, drawn: Floats | None = None) -> Behaviour:
        """Let requests arrive for some seconds.

        Args:
            engines: of the tick.
            offered: (E,) RPS.
            seconds: above 0.
            drawn: (E,) share of them that chance brought here, 0..1; None for none.
        """
        alive = engines.capacity > 0.0
        capacity = np.where(alive, engines.capacity / self._slower, 1.0)
        slow = engines.slowness * self._slower
        noise = self._chance * (1.0 + (0.0 if drawn is None else drawn)) / 2.0 / capacity
        before = np.where(alive, self._carried(engines), 0.0) / capacity
        coming = offered * seconds / capacity
        load, ttft, tbot = (np.zeros(engines.count) for _ in range(3))
        after, wait, waits, refused, idle_ttft = (np.zeros(engines.count) for _ in range(5))
        for profile, unordered in engines.profiles:
            numbers = _by_content(unordered, before + coming, coming)
            table = filling_of(profile)
            scale = slow[numbers] * table.stretches(engines.tokens[numbers])
            steady = table.steady(offered[numbers] / capacity[numbers]) * scale
            begun = np.where(np.isnan(before[numbers]), steady, before[numbers])
            room = (1.0 + self._queue_per_slot) * table.slots_s * scale
            waiting, waited = queued(table, begun, scale, noise[numbers])
            at_end = filled(table, begun + coming[numbers], seconds, scale, noise[numbers])
            load[numbers], ttft[numbers], tbot[numbers] = at_end.load, at_end.ttft_s, at_end.tbot_s
            refused[numbers] = np.maximum(at_end.inside_s - room, 0.0)
            after[numbers] = np.minimum(at_end.inside_s, room)
            most = self._queue_per_slot * table.slots_s * scale
            wait[numbers] = (np.minimum(waiting, most) + np.minimum(at_end.waiting_s, most)) / 2.0
            waits[numbers] = (waited + at_end.waits) / 2.0
            idle_ttft[numbers] = table.ttft_s[0]
        refused = np.where(alive, refused, coming)
        self._inside = np.where(alive, after * capacity, 0.0)
        beyond, unmeasured = _beyond(engines.profiles, load)
        return Behaviour(
            load=load,
            offered=offered,
            served=load * capacity,
            refused_share=np.where(coming > 0.0, np.minimum(refused / np.maximum(coming, 1e-12), 1.0), 0.0),
            ttft_s=slow * ttft + wait,
            tbot_s=slow * tbot,
            wait_s=wait,
            waits=waits,
            idle_ttft_s=slow * idle_ttft,
            beyond_s=slow * beyond,
            unmeasured=unmeasured,
        )

    def _carried(self, engines: Engines) -> Floats:
        """Give what is inside as a step begins; NaN of an engine of which that is not known."""
        if self._inside is None:
            return engines.inside
        known = np.full(engines.count, np.nan)
        known[: len(self._inside)] = self._inside
        return known


def _by_content(numbers: Ints, content: Floats, otherwise: Floats) -> Ints:
    """Give engines by how much they have to serve; by what comes where the rest is not known."""
    each = content[numbers]
    order = np.argsort(np.where(np.isnan(each), otherwise[numbers], each), kind="stable")
    return numbers[order]


def _beyond(profiles: Sequence[tuple[LatencyProfile, Ints]], load: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Give what of the latency lies beyond the measured range, and whether the load does."""
    beyond, unmeasured = np.zeros_like(load), np.zeros(load.shape, dtype=np.bool_)
    for profile, numbers in profiles:
        u = load[numbers]
        outside = (u > profile.measured_to_load + 1e-9) | ((u > 0.0) & (u < profile.measured_from_load - 1e-9))
        if outside.any():
            edge = np.clip(u, profile.measured_from_load, profile.measured_to_load)
            (ttft_ms, tbot_ms), (edge_ttft, edge_tbot) = latency_ms(profile, u), latency_ms(profile, edge)
            gap = ttft_ms - edge_ttft + profile.output_tokens * (tbot_ms - edge_tbot)
            beyond[numbers] = np.where(outside, gap / MS, 0.0)
            unmeasured[numbers] = outside
    return beyond, unmeasured
