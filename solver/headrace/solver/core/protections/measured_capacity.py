"""cap_eff = min(cap_eff, what the engine was measured to serve at its wall), with a slow way back up.

    full      waiting > `STANDS` x in service, until waiting <= `GONE` x in service; event time, of the same replicas
    measured  full for as long as `RECENT_S` and one service time: finished per second in the newest seconds, and of the
              whole window once it has been full for all of it
    believed  what is stated, derated (`derate`), until a count is off by more than `SIGMAS` Poisson deviations; then
              that count, until another one is; down at most by half a second, and never below measured_capacity_least
    served    where nothing was counted, a window without a queue that is above what is believed by as much counts, too
    up        measured_capacity_probe of the stated capacity per second while nobody stands in line; `QUICK` while the
              engine holds no more requests than an engine as profiled would, and less than `HALE` of it is believed;
              until it is what its trim leaves, which is what is believed where nothing was counted

What is stated of an engine may be wrong, and what was right may change: a queue that stands before an engine which
finishes less than it is stated to serve tells its capacity. Without this the program goes on sending what the engine
then refuses. Before it has been full for a service time, what it finishes is what came before it was full.

Additive increase and multiplicative decrease: Chiu and Jain 1989. `measured_capacity_least` 1 switches this off.
"""

import math
from dataclasses import replace

import numpy as np

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.weights import PPM, EngineMemory
from headrace.solver.core.problem import Engine, Throughput
from headrace.solver.core.profile.load_cost import MS, latency_ms
from headrace.solver.core.protections.derate import believed_share, derated_share
from headrace.solver.core.protections.guarded import Change, Guarded, Moment, scaled
from headrace.solver.settings import SolverSettings

STANDS = 0.25
GONE = 0.05
RECENT_S = 3.0
SIGMAS = 1.5
QUICK = 0.1
HALE = 0.8
AS_PROFILED = 1.25


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:
    """Give each engine no more capacity than it was measured to have."""
    if settings.measured_capacity_least >= 1.0:
        return guarded
    changes: dict[str, Change] = {}
    for engine in guarded.problem.engines:
        if engine.exclusion is not None or _at_rest(engine, guarded.remembered.get(engine.engine_id)):
            continue
        before = guarded.memory(engine.engine_id)
        memory = _remembered(engine, before, guarded.problem.profiles.get(engine.profile_id), settings, moment)
        share = 1.0 if memory.capacity_ppm is None else memory.capacity_ppm / PPM
        if share < engine.factor:
            factor, stated = share / engine.factor, engine.ready_replicas * engine.capacity_rps_per_replica
            sentence = f"measured to serve {share * stated:.1f} RPS at its wall, {100 * share:.0f} % of what is stated"
            changes[engine.engine_id] = Change(scaled(engine, factor, sentence), memory, factor, sentence)
        elif memory != before:
            changes[engine.engine_id] = Change(engine, memory)
    return guarded.changed("measured_capacity", changes)


def _at_rest(engine: Engine, before: EngineMemory | None) -> bool:
    """Say whether there is nothing to measure and nothing to give back: true of nearly all of them."""
    if before is not None and (before.full_since_ms is not None or believed_share(before) < 1.0):
        return False
    return engine.throughput is None or engine.throughput.waiting <= STANDS * engine.throughput.running


def _remembered(
    engine: Engine, before: EngineMemory, profile: LatencyProfile | None, settings: SolverSettings, moment: Moment
) -> EngineMemory:
    """Give what is remembered of an engine after this tick."""
    stated = engine.ready_replicas * engine.capacity_rps_per_replica
    now, share = engine.throughput, believed_share(before)
    if now is None or stated <= 0.0:
        return before
    since_ms = _full_since_ms(engine, now, before)
    if since_ms is None:
        rate = QUICK if share < HALE and _as_profiled(now, stated, profile) else settings.measured_capacity_probe
        capacity_ppm = _given_back(before, rate * moment.elapsed_s)
        if before.capacity_ppm is None and _is_more(now, share * stated, stated, engine.mix.grain):
            capacity_ppm = _ppm(now.window_rps / stated)
    else:
        wall_s = 0.0 if profile is None else _latency_s(profile, 1.0)
        served = _served_rps(now, (now.signal_ms - since_ms) / MS - wall_s, share * stated, engine.mix.grain)
        least = max(settings.measured_capacity_least, share * 0.5**moment.elapsed_s)
        capacity_ppm = before.capacity_ppm if served is None else _ppm(max(served / stated, least))
    return replace(
        before,
        capacity_ppm=capacity_ppm,
        full_since_ms=since_ms,
        full_replicas=None if since_ms is None else engine.ready_replicas,
    )


def _given_back(before: EngineMemory, more: float) -> int | None:
    """Give what is remembered of a wall that nobody is at; nothing, once it is as far up as would be assumed anyway.

    What was counted beyond that stands until another count: what is given back is a guess, and there a worse one.
    """
    if before.capacity_ppm is None:
        return None
    share, assumed = before.capacity_ppm / PPM, derated_share(before)
    if share >= assumed:
        return before.capacity_ppm
    return None if assumed <= share + more else _ppm(share + more)


def _is_more(now: Throughput, believed_rps: float, stated: float, grain: float) -> bool:
    """Say whether a window contradicts what is believed from above; what is far above all was other replicas' work."""
    rate, seconds = now.window_rps, now.window_s
    if seconds < RECENT_S or rate - stated > _chance(stated, grain, seconds):
        return False
    return rate - believed_rps > _chance(believed_rps, grain, seconds)


def _ppm(share: float) -> int:
    return round(min(share, 1.0) * PPM)


def _full_since_ms(engine: Engine, now: Throughput, before: EngineMemory) -> int | None:
    """Give the event time since when requests stand in line before the same replicas; None where they do not."""
    same = before.full_since_ms is not None and before.full_replicas == engine.ready_replicas
    if now.waiting <= (GONE if same else STANDS) * now.running or now.waiting < 1.0:
        return None
    return before.full_since_ms if same else now.signal_ms


def _served_rps(now: Throughput, full_s: float, believed_rps: float, grain: float) -> float | None:
    """Give a count of an engine that has been full for that long, where it contradicts what is believed; else None."""
    if full_s >= now.window_s:
        rate, seconds = now.window_rps, now.window_s
    elif full_s >= RECENT_S and now.recent_rps is not None:
        rate, seconds = now.recent_rps, RECENT_S
    else:
        return None
    return rate if abs(rate - believed_rps) > _chance(believed_rps, grain, seconds) else None


def _chance(rps: float, grain: float, seconds: float) -> float:
    """Give how far a rate, counted in grains of work for so long, is from what it should be at most, RPS."""
    return SIGMAS * math.sqrt(rps * grain / seconds)


def _as_profiled(now: Throughput, stated: float, profile: LatencyProfile | None) -> bool:
    """Say whether what is inside, by Little's law, goes through as fast as the profile says."""
    if profile is None or not now.recent_rps:
        return False
    predicted_s = _latency_s(profile, min(now.recent_rps / stated, 1.0))
    return now.running + now.waiting <= AS_PROFILED * predicted_s * now.recent_rps


def _latency_s(profile: LatencyProfile, load: float) -> float:
    ttft, tbot = latency_ms(profile, np.array([load]))
    return float(ttft[0] + profile.output_tokens * tbot[0]) / MS
