"""log trim <- log trim + a (log residual - log trim), a = 1 - (1 - trim_power)^(dt / trim_period): a slow correction.

    residual = measured / predicted by the untrimmed profile, at the load at which it was measured
    trim     within 1 / trim_bound .. trim_bound; the profile's latencies are multiplied by it

The same as (measured / predicted)^trim_power a trim period, however often there is a tick. It is feedback on the
model's error at a known load, not on the load: what the weights do to the load does not come back through it. The load
is that of the capacity the engine is believed to have (`derate`), and none is known while requests stand in its queue.

The program is given the trim in steps of `STEP`; a step stays until the trim is `HOLD` steps away from it, or noise
would move traffic. An engine of which nothing is measured keeps what it has. `trim_bound` 1 switches this off.
"""

import math
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.weights import PPM, EngineMemory
from headrace.solver.core.problem import Engine
from headrace.solver.core.profile.load_cost import MS
from headrace.solver.core.protections.derate import believed_shares
from headrace.solver.core.protections.guarded import Change, Guarded, Moment
from headrace.solver.core.protections.residual import residuals
from headrace.solver.settings import SolverSettings

STEP = 0.05
HOLD = 1.5
_NAMES = tuple(field.name for field in fields(EngineMemory))
_VALUES = attrgetter(*_NAMES)


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:
    """Scale the profile of each engine by its trim."""
    changes: dict[str, Change] = {}
    profiles = dict(guarded.problem.profiles)
    told = residuals(guarded.problem, guarded.problem.engines, believed_shares(guarded))
    for engine in guarded.problem.engines:
        error = told.get(engine.engine_id)
        if error is None and engine.engine_id not in guarded.remembered:
            continue
        change = _change(guarded, engine, error, settings, moment)
        if change is None:
            continue
        changes[engine.engine_id] = change
        profile = guarded.problem.profiles.get(engine.profile_id)
        if change.memory.trim_step and profile is not None:
            profiles[change.engine.profile_id] = _scaled(profile, change.engine.profile_id, change.factor)
    changed = guarded.changed("trim", changes)
    return replace(changed, problem=replace(changed.problem, profiles=profiles))


def _change(
    guarded: Guarded, engine: Engine, error: float | None, settings: SolverSettings, moment: Moment
) -> Change | None:
    memory, bound = guarded.memory(engine.engine_id), math.log(settings.trim_bound)
    trim = math.log(memory.trim_ppm / PPM)
    if error is not None:
        gain = 1.0 - (1.0 - settings.trim_power) ** (moment.elapsed_s * MS / settings.trim_period_ms)
        trim += gain * (math.log(error) - trim)
    trim = min(max(trim, -bound), bound)
    exact = trim / STEP
    step = memory.trim_step if abs(exact - memory.trim_step) <= HOLD else round(exact)
    remembered = _with_trim(memory, round(PPM * math.exp(trim)), step)
    if step == 0:
        return None if remembered is memory else Change(engine, remembered)
    factor = math.exp(step * STEP)
    slower = f"{100 * abs(factor - 1):.0f} % {'slower' if step > 0 else 'faster'} than its profile"
    trimmed = replace(engine, profile_id=f"{engine.profile_id}@{step:+d}")
    return Change(trimmed, remembered, factor, f"measured {slower} at its load: latencies are scaled")


def _with_trim(memory: EngineMemory, trim_ppm: int, trim_step: int) -> EngineMemory:
    """Give a memory with another trim: itself where it has that one; asked of every engine at every tick."""
    if memory.trim_ppm == trim_ppm and memory.trim_step == trim_step:
        return memory
    values: dict[str, Any] = dict(zip(_NAMES, _VALUES(memory), strict=True))
    values |= {"trim_ppm": trim_ppm, "trim_step": trim_step}
    return EngineMemory(**values)


def _scaled(profile: LatencyProfile, profile_id: str, factor: float) -> LatencyProfile:
    return replace(
        profile,
        profile_id=profile_id,
        ttft_s=tuple(factor * value for value in profile.ttft_s),
        tbot_s=tuple(factor * value for value in profile.tbot_s),
    )
