"""cap_eff / s for an engine that is s times as slow as its profile, until its wall has been measured.

    s         its trim, once the program is given it: how slow it is at its load, judged at the load of what is believed
    derating  1 / s, at least `LEAST`, never above 1

What an engine shows at one load does not say whether it is slow or its wall is nearer than stated: both lift the same
curve. Yet the two go together: where the same work takes s times as long, with as much of it at a time, 1 / s as much
of it is done per second (Little's law at the wall). Believed at full size, such an engine is filled over a wall that
nobody has seen yet by the first failure elsewhere, and by the time its queue is heard of everybody waits in it.

Both settle together: where latency goes up by e per cent a per cent of load, a residual r leaves s = r^(1 / (1 + e)).
It is never taken for more than is stated, however quick it is. What was counted at the wall (`measured_capacity`) is
known, and needs no guess: an engine that is slow and serves all that is stated is found out there.

`trim_bound` 1 switches this off.
"""

from headrace.schemas.weights import PPM, EngineMemory
from headrace.solver.core.protections.guarded import Change, Guarded, Moment, scaled
from headrace.solver.settings import SolverSettings

LEAST = 0.8


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:  # noqa: ARG001 - a protection's signature
    """Take engines that are slow for smaller than stated."""
    if settings.trim_bound <= 1.0:
        return guarded
    changes: dict[str, Change] = {}
    for engine in guarded.problem.engines:
        memory = guarded.remembered.get(engine.engine_id)
        if memory is None or memory.capacity_ppm is not None or engine.exclusion is not None:
            continue
        share = derated_share(memory)
        if share < 1.0:
            sentence = f"slower than its profile, its wall never measured: {100 * share:.0f} % of capacity"
            changes[engine.engine_id] = Change(scaled(engine, share, sentence), memory, share, sentence)
    return guarded.changed("derate", changes)


def derated_share(memory: EngineMemory) -> float:
    """Give the share of its stated capacity that its trim leaves an engine, 0..1; all where it is given no trim."""
    return 1.0 if memory.trim_step <= 0 else min(max(PPM / memory.trim_ppm, LEAST), 1.0)


def believed_share(memory: EngineMemory) -> float:
    """Give the share of its stated capacity that an engine is believed to have, 0..1: measured, else derated."""
    return derated_share(memory) if memory.capacity_ppm is None else memory.capacity_ppm / PPM


def believed_shares(guarded: Guarded) -> dict[str, float]:
    """Give the same of every engine that anything is remembered of, by its id."""
    return {engine_id: believed_share(memory) for engine_id, memory in guarded.remembered.items()}
