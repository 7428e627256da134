"""cap_eff x (s + (1 - s) (now - returned) / ramp): an engine that comes back is filled over `cold_ramp_ms`.

Its caches are empty, so its first requests are dearer than its profile says, and whatever took it away may come again.
It is away while it is excluded as silent, unhealthy, without replicas or never heard of, and back at the first tick at
which nothing excludes it. An engine that was there at the first snapshot is warm. `cold_ramp_ms` 0 switches this off.

It is not for a fleet that is short: where the demand for an engine's models is above `SHORT` of what would be left of
all their engines, the ramp goes on counting and caps nothing. A cold answer is better than none.
"""

from collections.abc import Iterator
from dataclasses import replace

from headrace.schemas.weights import Reason
from headrace.solver.core.problem import Engine, Problem
from headrace.solver.core.protections.guarded import Change, Guarded, Moment, scaled
from headrace.solver.settings import SolverSettings

_AWAY = frozenset({Reason.STALE, Reason.UNHEALTHY, Reason.NO_READY_REPLICA, Reason.NO_STATE})
SHORT = 0.9


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:
    """Cap the engines that are back for less than the ramp."""
    changes = dict(_aways(guarded))
    back: dict[str, tuple[int, float]] = {}
    for engine in guarded.problem.engines:
        memory = guarded.remembered.get(engine.engine_id)
        if memory is not None and engine.exclusion is None and (memory.away or memory.returned_ms is not None):
            since_ms = moment.now_ms if memory.returned_ms is None else memory.returned_ms
            back[engine.engine_id] = since_ms, _share(moment.now_ms - since_ms, settings)
    short = _short_models(guarded.problem, {name: share for name, (_, share) in back.items()}) if back else set[str]()
    for engine in guarded.problem.engines if back else ():
        if engine.engine_id in back:
            since_ms, share = back[engine.engine_id]
            capped = share < 1.0 and short.isdisjoint(engine.models)
            changes[engine.engine_id] = _ramped(guarded, engine, moment.now_ms, (since_ms, share, capped))
    return guarded.changed("cold_ramp", changes)


def _aways(guarded: Guarded) -> Iterator[tuple[str, Change]]:
    for engine in guarded.problem.engines:
        if engine.exclusion is not None and engine.exclusion.reason in _AWAY:
            memory = guarded.memory(engine.engine_id)
            yield engine.engine_id, Change(engine, replace(memory, away=True, returned_ms=None))


def _share(back_ms: int, settings: SolverSettings) -> float:
    if back_ms >= settings.cold_ramp_ms or settings.cold_ramp_ms == 0:
        return 1.0
    start = settings.cold_start_share
    return start + (1.0 - start) * max(back_ms, 0) / settings.cold_ramp_ms


def _ramped(guarded: Guarded, engine: Engine, now_ms: int, ramp: tuple[int, float, bool]) -> Change:
    (since_ms, share, capped), memory = ramp, guarded.memory(engine.engine_id)
    remembered = replace(memory, away=False, returned_ms=since_ms if share < 1.0 else None)
    if not capped:
        return Change(engine, remembered)
    sentence = f"back for {(now_ms - since_ms) / 1000:.1f} s: {100 * share:.0f} % of capacity while it warms up"
    return Change(scaled(engine, share, sentence), remembered, share, sentence)


def _short_models(problem: Problem, shares: dict[str, float]) -> set[str]:
    """Give the models that are asked for more than the ramped engines and all others should serve."""
    demand: dict[str, float] = {}
    capacity: dict[str, float] = {}
    for row in problem.rows:
        demand[row.route.model] = demand.get(row.route.model, 0.0) + row.demand_work
    for engine in problem.engines:
        for model in engine.models:
            left = engine.capacity_rps * shares.get(engine.engine_id, 1.0)
            capacity[model] = capacity.get(model, 0.0) + left
    return {model for model, rps in demand.items() if rps > SHORT * capacity.get(model, 0.0)}
