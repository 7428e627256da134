"""cap_eff - backlog / max(backlog_drain_ms, 2 lag): an engine with a standing queue gets less than it serves.

    backlog = waiting - `NORMAL` x in service; at most `MOST` of capacity is withheld for it

A program that fills engines to the brim leaves their queues as they are, and everybody waits for those who came first.
With less coming in than going out a queue drains; what is too much is sent elsewhere, or shed a little earlier than the
full queue would refuse it. The signal is as late as the pipe: it drains no quicker than in twice the lag, or it would
answer queues that are gone and call for those that come. `backlog_drain_ms` 0 switches this off.
"""

from headrace.solver.core.problem import Engine
from headrace.solver.core.protections.guarded import Change, Guarded, Moment, scaled
from headrace.solver.settings import SolverSettings

NORMAL = 0.25
MOST = 0.25


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:  # noqa: ARG001 - a protection's signature
    """Withhold capacity where requests stand in line."""
    if settings.backlog_drain_ms == 0:
        return guarded
    drain_s = max(settings.backlog_drain_ms, 2 * guarded.problem.lag_ms) / 1000
    changes: dict[str, Change] = {}
    for engine in guarded.problem.engines:
        withheld = _withheld_rps(engine, drain_s)
        if withheld > 0.0:
            factor = 1.0 - min(withheld / engine.capacity_rps, MOST)
            sentence = f"{_backlog(engine):.0f} stand in line: {100 * factor:.0f} % of capacity while it drains"
            memory = guarded.memory(engine.engine_id)
            changes[engine.engine_id] = Change(scaled(engine, factor, sentence), memory, factor, sentence)
    return guarded.changed("backlog", changes)


def _withheld_rps(engine: Engine, drain_s: float) -> float:
    return _backlog(engine) * engine.mix.mean / drain_s if engine.capacity_rps > 0.0 else 0.0


def _backlog(engine: Engine) -> float:
    measured = engine.measured
    if measured is None or measured.inside is None:
        return 0.0
    running = measured.inside - measured.waiting
    return max(measured.waiting - NORMAL * running, 0.0)
