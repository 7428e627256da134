"""cap_eff x penalty for an engine that is slower against its profile than its peers of the pool are against theirs.

    outlier   log residual > median + max(log outlier_ratio, outlier_mads x 1.4826 MAD), of three peers or more
    penalty   halves every outlier_half_ms while it is one, down to `LEAST`; doubles every outlier_recovery_ms after
    cap       at most outlier_max_share of a pool's capacity is penalised: the worst first, the rest is left alone
    panic     penalties are ignored, and stay as they are, while less than panic_share of a pool's engines is there

A whole pool that is slow has no outlier: that is for the trim. So is a pool of one or two, where nobody can say which
of them is the odd one. Where the cap leaves no room, as in a pool of three equals, nobody is penalised.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from headrace.schemas.weights import PPM, Reason
from headrace.solver.core.problem import Engine
from headrace.solver.core.protections.guarded import Change, Guarded, Moment, scaled
from headrace.solver.core.protections.residual import residuals
from headrace.solver.settings import SolverSettings

MAD_TO_SIGMA = 1.4826
FEWEST_PEERS = 3
LEAST = 0.1


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:
    """Penalise the outliers of each pool."""
    pools: dict[object, list[Engine]] = {}
    for engine in sorted(guarded.problem.engines, key=lambda e: e.engine_id):
        if engine.exclusion is None or engine.exclusion.reason is not Reason.DRAINED:
            pools.setdefault((engine.site, engine.models, engine.capabilities, engine.residency), []).append(engine)
    changes: dict[str, Change] = {}
    told = residuals(guarded.problem, guarded.problem.engines)
    for members in pools.values():
        there = [engine for engine in members if engine.capacity_rps > 0.0]
        if len(there) >= settings.panic_share * len(members):
            changes.update(_of_pool(guarded, there, told, settings, moment))
    return guarded.changed("outlier", changes)


def _of_pool(
    guarded: Guarded, there: Sequence[Engine], told: Mapping[str, float], settings: SolverSettings, moment: Moment
) -> Iterator[tuple[str, Change]]:
    outliers = outliers_of({e.engine_id: told[e.engine_id] for e in there if e.engine_id in told}, settings)
    if not outliers and all(guarded.memory(engine.engine_id).penalty_ppm == PPM for engine in there):
        return
    penalty: dict[str, float] = {}
    for engine in there:
        before = guarded.memory(engine.engine_id).penalty_ppm / PPM
        if engine.engine_id in outliers:
            penalty[engine.engine_id] = max(LEAST, before * 0.5 ** (moment.elapsed_s * 1000 / settings.outlier_half_ms))
        else:
            penalty[engine.engine_id] = min(
                1.0, before * 2.0 ** (moment.elapsed_s * 1000 / settings.outlier_recovery_ms)
            )
    room = settings.outlier_max_share * sum(e.capacity_rps for e in there)
    for engine in sorted(there, key=lambda e: (penalty[e.engine_id], e.engine_id)):
        name, memory = engine.engine_id, guarded.memory(engine.engine_id)
        left = round(penalty[name] * PPM)
        # A ppm of room: a cap that is met exactly must not be missed by the last bit of a sum.
        if left < PPM and engine.capacity_rps <= room * (1.0 + 1.0 / PPM):
            room -= engine.capacity_rps
            sentence = _sentence(outliers.get(name), left)
            yield (
                name,
                Change(scaled(engine, left / PPM, sentence), replace(memory, penalty_ppm=left), left / PPM, sentence),
            )
        elif memory.penalty_ppm != PPM:
            yield name, Change(engine, replace(memory, penalty_ppm=PPM))


def outliers_of(residuals: Mapping[str, float], settings: SolverSettings) -> Mapping[str, float]:
    """Give the engines whose residual stands out of their peers', with how many times the median it is."""
    if len(residuals) < FEWEST_PEERS:
        return {}
    logs = {engine_id: math.log(value) for engine_id, value in residuals.items()}
    middle = median(logs.values())
    spread = MAD_TO_SIGMA * median(abs(value - middle) for value in logs.values())
    limit = middle + max(math.log(settings.outlier_ratio), settings.outlier_mads * spread)
    return {engine_id: math.exp(value - middle) for engine_id, value in logs.items() if value > limit}


def _sentence(times: float | None, left_ppm: int) -> str:
    share = f"{100 * left_ppm / PPM:.0f} % of capacity"
    return f"recovering as an outlier: {share}" if times is None else f"{times:.1f} times as slow as its peers: {share}"
