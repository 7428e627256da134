"""Protections, one per file: a problem and what is remembered go in, and come out changed, before any policy sees them.

    cold_ramp          an engine that comes back gets its traffic little by little
    penalty            an engine much slower than its peers, or that fails more requests than they do, is given less,
                       as far as others have room
    measured_capacity  an engine that is full and finishes less than it is stated to serve is given no more than that
    derate             an engine that is slow for its load is taken for smaller, too, until its wall was measured
    backlog            an engine with a standing queue is given less than it serves
    trim               a profile that is wrong is scaled, slowly, at known load
    probe              an engine that nothing is known of is given a little, so that it is measured

Memory travels in the snapshot's commit, so a tick stays a function of its arguments: whoever has the previous snapshot
goes on from the same. An engine whose memory is neutral is left out of it. Protections act alike for every policy.
"""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter

from headrace.schemas.weights import EngineMemory, Snapshot
from headrace.solver.core.inputs.in_work import in_work
from headrace.solver.core.problem import Problem
from headrace.solver.core.protections import backlog, cold_ramp, derate, measured_capacity, penalty, probe, trim
from headrace.solver.core.protections.guarded import Guarded, Moment
from headrace.solver.settings import SolverSettings

Protection = Callable[[Guarded, SolverSettings, Moment], Guarded]
PROTECTIONS: tuple[Protection, ...] = (
    cold_ramp.protect,
    penalty.protect,
    measured_capacity.protect,
    derate.protect,
    backlog.protect,
    trim.protect,
    probe.protect,
)
"""In the order in which they act: what an outlier is, is judged by profiles that are not trimmed yet."""
_ALL_BUT_ID = attrgetter(*(field.name for field in fields(EngineMemory) if field.name != "engine_id"))
LONGEST_STEP_S = 10.0
"""A longer pause between two ticks counts as this: one measurement is no more evidence for being old."""


def protect(
    problem: Problem,
    previous: Snapshot | None,
    settings: SolverSettings,
    now_ms: int,
    spared: frozenset[str] = frozenset(),
) -> Guarded:
    """Give the problem that the policy is to solve, with what changed it and what the next tick must know.

    `spared` are engines whose penalties are to take nothing from them.
    """
    elapsed_s = 0.0 if previous is None else (now_ms - previous.commit.tick_ms) / 1000.0
    problem = in_work(problem, previous)
    moment = Moment(now_ms, min(max(elapsed_s, 0.0), LONGEST_STEP_S), spared)
    known = {engine.engine_id for engine in problem.engines}
    before = () if previous is None else previous.commit.remembered
    guarded = Guarded(problem, {m.engine_id: m for m in before if m.engine_id in known})
    for protection in PROTECTIONS:
        guarded = protection(guarded, settings, moment)
    return guarded


def worth_remembering(guarded: Guarded) -> tuple[EngineMemory, ...]:
    """Give the memories that are not neutral, sorted by engine."""
    neutral = _ALL_BUT_ID(EngineMemory(""))
    return tuple(m for _, m in sorted(guarded.remembered.items()) if _ALL_BUT_ID(m) != neutral)
