"""One policy's run: warm up, settle, then score while the closed loop goes on; stops when asked, with what there is.

0 ── warm-up (no requests) ── settle (windows fill) ── scored: t=0 of the faults ──► seconds
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.infra.fleet.closed_loop import ClosedLoop, LoopSettings
from headrace.infra.fleet.scenario import Scenario
from headrace.infra.fleet.script import Timed
from headrace.infra.simulate.observer import Observer, WeightsHistory
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.told import Teller, pooled
from headrace.replay.score.length_spread import LengthSpread
from headrace.replay.score.measured import NOTHING_MEASURED, MeasuredFleet, MeasuredFold
from headrace.replay.score.off_policy import LoggedChoice
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.variant import VariantScorer
from headrace.replay.score.variant_score import VariantScore
from headrace.schemas.codec import decode
from headrace.schemas.state import EngineState
from headrace.schemas.topics import SIGNALS_ENGINE
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.problem import Problem
from headrace.solver.core.tick import Tick
from headrace.solver.settings import SolverSettings

START_MS = 1_700_000_000_000
SETTLE_S = 15.0
SLICE_S = 1.0
STATES_EVERY_MS = 1_000

Advance = Callable[[float], bool]
"""Told how many seconds have passed; says whether to stop."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What all policies of a comparison share.

    Attributes:
        scenario: the fleet with its arrivals.
        seconds: scored time.
        faults: commands, timed from the begin of scoring.
        spread: of the lengths of the trace's answers.
        seed: of the fleet.
        score: assumptions of the score.
    """

    scenario: Scenario
    seconds: float
    faults: Sequence[Timed]
    spread: LengthSpread
    seed: int
    score: ScoreSettings


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedRun:
    """One policy's run; `seconds` is how far it came, and `score.met` what its users met."""

    score: VariantScore
    measured: MeasuredFleet
    choices: Sequence[LoggedChoice]
    weights: WeightsHistory
    seconds: float


def simulate(name: str, plan: Plan, settings: LoopSettings, lp: LinearSolver, advance: Advance) -> SimulatedRun:
    """Run one policy.

    Raises:
        TimeoutError: the fleet got no weights in its warm-up.
    """
    loop = ClosedLoop(plan.scenario, settings, lp, START_MS, np.random.default_rng(plan.seed))
    loop.warm_up(limit_s=60.0 + 2.0 * settings.delay_s)
    begins_s = loop.simulation.timeline.now_s + SETTLE_S + settings.delay_s
    observer = Observer(plan.scenario.model, begins_s, lambda at_s: START_MS + round(1000 * at_s), plan.score)
    loop.simulation.listeners.append(observer.end)
    for timed in plan.faults:
        loop.simulation.schedule(timed, begins_s)
    loop.simulation.run_until(begins_s)
    tokens = {plan.scenario.model: plan.scenario.mean_tokens[1]}
    known = replace(NOTHING_MEASURED, spread=plan.spread, output_tokens=tokens)
    recorder = _Recorder(loop, VariantScorer(name, plan.score, known), settings.solver)
    loop.watchers.append(recorder.tick)
    done_s = 0.0
    while done_s < plan.seconds:
        step = min(SLICE_S, plan.seconds - done_s)
        loop.simulation.run_until(begins_s + done_s + step)
        done_s += step
        if advance(step):
            break
    score = replace(recorder.scorer.finish(), sessions=observer.sessions, met=observer.met)
    measured = replace(recorder.measured.finish(), spread=plan.spread, output_tokens=tokens)
    weights = WeightsHistory(loop.snapshots)
    return SimulatedRun(score, measured, observer.choices, weights, done_s)


class _Recorder:
    """Gives each tick of a loop to a scorer, and reads the engines' states once a second."""

    def __init__(self, loop: ClosedLoop, scorer: VariantScorer, solver: SolverSettings) -> None:
        self.scorer = scorer
        self.measured = MeasuredFold(loop.simulation.now_ms)
        self._loop = loop
        self._solver = solver
        self._read_ms = 0
        self._teller = Teller()

    def tick(self, problem: Problem, tick: Tick) -> None:
        """Take a tick; a `Watcher`."""
        now_ms = tick.snapshot.commit.tick_ms
        view = self._loop.view()
        told = self._teller.tell(view.demands, pooled(view.engines))
        stood = self._loop.snapshots[-2][1] if len(self._loop.snapshots) > 1 else None
        self.scorer.add(PlayedTick(now_ms, problem, tick.snapshot, tick.record, told, stood, self._solver))
        if now_ms >= self._read_ms:
            self._read_ms = now_ms + STATES_EVERY_MS
            for value in self._loop.states(SIGNALS_ENGINE).values():
                state = decode(EngineState, value)
                if isinstance(state, EngineState):
                    self.measured.add(state)
