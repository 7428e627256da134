"""One policy's run as flows: the same decision code, on signals made of what engines did, `delay_s` late.

    step k   weights of the last tick + demand ─► fleet (profiles, fluid queue) ─► what engines show
    tick     what was shown up to now - delay, a window of it ─► Problem ─► decide() ─► weights

A step is a tick's period. No request is told from another: no sessions, no choices, no chance below the wall. What it
is for: days of a trace in minutes, with the policies' own dynamics and the delay that makes them swing.
"""

from collections import deque
from dataclasses import replace

import numpy as np

from headrace.infra.fleet.closed_loop import LoopSettings
from headrace.infra.simulate.flow_demand import FlowDemand
from headrace.infra.simulate.flow_fleet import CLASS, FlowFleet, Step, believed
from headrace.infra.simulate.observer import WeightsHistory
from headrace.infra.simulate.run import START_MS, Advance, Plan, SimulatedRun
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.told import NOTHING_TOLD, Arrived, Told
from headrace.replay.score.latency_mass import Floats, mass_of
from headrace.replay.score.measured import NOTHING_MEASURED, MeasuredFleet
from headrace.replay.score.sums import Of, no_sums
from headrace.replay.score.users_met import UsersMetFold
from headrace.replay.score.variant import VariantScorer
from headrace.replay.score.world import Happened
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import Reason, Snapshot
from headrace.solver.core.decide import Decided, decide
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.problem import Engine, Exclusion, Measured, Problem, Throughput
from headrace.solver.core.tick import TickStamp

TELL_EVERY_S = 60.0
SEEN_S = 3.0
"""Time constant with which flows are believed: they have no noise to average away, and a step is seen in seconds."""


def simulate_flows(
    name: str, plan: Plan, demand: FlowDemand, settings: LoopSettings, lp: LinearSolver, advance: Advance
) -> SimulatedRun:
    """Run one policy over the rates of a trace."""
    fleet = FlowFleet(plan.scenario, plan.faults, plan.score)
    tokens = plan.scenario.mean_tokens[1]
    measured = MeasuredFleet(NOTHING_MEASURED.fleet, {}, plan.spread, {})
    scorer = VariantScorer(name, plan.score, measured)
    signals = _Signals(fleet, settings)
    factors, met = np.array(plan.spread.factors), UsersMetFold(START_MS, plan.score)
    previous: Snapshot | None = None
    told = NOTHING_TOLD
    untold_s, steps = 0.0, int(plan.seconds / demand.step_s)
    done = 0
    for k in range(steps):
        begin_s = k * demand.step_s
        now_ms = START_MS + round(1000 * begin_s)
        problem = signals.problem(begin_s, now_ms, demand.rps[:, k])
        stamp = TickStamp(1, k + 1, now_ms)
        decided = decide(problem, previous, settings.solver, lp, stamp, START_MS - settings.solver.first_wait_ms)
        if isinstance(decided, Decided):
            tick, stood, previous = decided.tick, previous, decided.tick.snapshot
            scorer.add(PlayedTick(now_ms, problem, previous, tick.record, told, stood, settings.solver))
        step, happened = fleet.step(previous, demand.rps[:, k], begin_s, demand.step_s)
        signals.add(step)
        told = _told(plan, step, now_ms, now_ms + round(1000 * demand.step_s))
        if happened is not None:
            met.flow(now_ms, *_met(happened, factors, demand.step_s))
        done, untold_s = k + 1, untold_s + demand.step_s
        if untold_s >= TELL_EVERY_S or k == steps - 1:
            stop, untold_s = advance(untold_s), 0.0
            if stop:
                break
    # Engines that follow their profiles exactly are no test of profiles: nothing of them is told as measured.
    found = MeasuredFleet(NOTHING_MEASURED.fleet, {}, plan.spread, {plan.scenario.model: tokens})
    score = replace(scorer.finish(), met=met.finish())
    return SimulatedRun(score, found, (), WeightsHistory([]), done * demand.step_s)


def _met(happened: Happened, factors: Floats, seconds: float) -> tuple[Floats, Floats]:
    """Give what users met in a step, as sums and by latency."""
    sums, served = no_sums(), happened.served * seconds
    sums[Of.OFFERED], sums[Of.SERVED] = happened.first.sum() * seconds, served.sum()
    sums[Of.SHED], sums[Of.REFUSED] = happened.shed.sum() * seconds, happened.refused.sum() * seconds
    sums[Of.ENGINE] = served @ (happened.fixed_s + happened.decode_s)
    times = happened.fixed_s[:, None] + happened.decode_s[:, None] * factors[None, :]
    return sums, mass_of(times, np.repeat(served[:, None] / len(factors), len(factors), 1))


def _told(plan: Plan, step: Step, from_ms: int, to_ms: int) -> Told:
    """Give what arrived in a step, as states of demand tell it after it."""
    asked = zip(plan.scenario.clusters, step.demand.tolist(), strict=True)
    routes = ((RouteKey(cluster.name, plan.scenario.model, CLASS), rps) for cluster, rps in asked)
    return Told(tuple(Arrived(route, ((from_ms, to_ms, rps),)) for route, rps in routes))


class _Signals:
    """What engines and clusters showed, as late as signals are, over a sliding window."""

    def __init__(self, fleet: FlowFleet, settings: LoopSettings) -> None:
        self._fleet = fleet
        self._delay_s = settings.delay_s
        self._solver = settings.solver
        self._window_s = settings.streams.window_ms / 1000.0
        self._tau_s = SEEN_S
        self._under_way: deque[Step] = deque()
        self._window: deque[Step] = deque()
        self._demand: Floats | None = None
        self._smoothed = [0.0 for _ in fleet.setups]
        self._spoke_s = [0.0 for _ in fleet.setups]

    def add(self, step: Step) -> None:
        """Take what a step showed; it is heard of `delay_s` later."""
        self._under_way.append(step)

    def problem(self, now_s: float, now_ms: int, first_rps: Floats) -> Problem:
        """Give what is believed now; before anything was heard, the fleet as it was declared and the first rates."""
        while self._under_way and self._under_way[0].end_s + self._delay_s <= now_s:
            self._hear(self._under_way.popleft())
        while self._window and self._window[0].end_s <= self._window[-1].end_s - self._window_s:
            self._window.popleft()
        demand = first_rps if self._demand is None else self._demand
        truth = self._fleet.problem(demand.tolist())
        engines = [self._engine(i, now_s, now_ms) for i in range(len(self._fleet.setups))]
        return Problem(truth.rows, tuple(engines), truth.network_s, truth.profiles)

    def _hear(self, step: Step) -> None:
        length = step.end_s - self._window[-1].end_s if self._window else step.end_s
        share = 1.0 - float(np.exp(-max(length, 1e-3) / self._tau_s))
        self._demand = step.demand if self._demand is None else self._demand + share * (step.demand - self._demand)
        for i, alive in enumerate(step.alive):
            if alive:
                self._spoke_s[i] = step.end_s
            seen = float(step.latency_s[i])
            before = self._smoothed[i]
            self._smoothed[i] = seen if before <= 0.0 else before + share * (seen - before)
        self._window.append(step)

    def _engine(self, i: int, now_s: float, now_ms: int) -> Engine:
        setup = self._fleet.setups[i]
        if not self._window:
            return self._fleet.engine(setup, setup.replicas)
        last = self._window[-1]
        plain = self._fleet.engine(setup, last.ready[i])
        silent_s = last.end_s - self._spoke_s[i]
        if silent_s * 1000.0 >= self._solver.expired_after_ms:
            return believed(plain, exclusion=Exclusion(Reason.STALE, f"silent for {silent_s:g} s"))
        heard = [step for step in self._window if step.alive[i]]
        rate = sum(float(step.served[i]) for step in heard) / max(len(heard), 1)
        if not heard or rate <= 0.0:
            return plain
        latency = sum(float(s.latency_s[i] * s.served[i]) for s in heard) / (rate * len(heard))
        waiting = float(heard[-1].waiting[i])
        inside = float(heard[-1].served[i] * heard[-1].latency_s[i])
        measured = Measured(
            rate_rps=rate,
            latency_s=latency,
            smoothed_s=self._smoothed[i],
            samples=round(rate * self._window_s),
            inside=inside,
            waiting=waiting,
        )
        spoke_ms = now_ms - round(1000 * (now_s - self._spoke_s[i]))
        recent = float(heard[-1].served[i])
        through = Throughput(spoke_ms, inside - waiting, waiting, recent, rate, self._window_s)
        return believed(plain, measured=measured, throughput=through)
