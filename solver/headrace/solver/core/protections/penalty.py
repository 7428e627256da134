"""cap_eff x penalty for an engine that stands out of its pool: slower than its peers (outlier), or failing (errors).

    penalty   halves every outlier_half_ms while it stands out, down to `LEAST`; doubles every outlier_recovery_ms after
    cap       at most outlier_max_share of a pool's capacity is penalised: the worst first, the rest is left alone
    panic     penalties are ignored, and stay as they are, while less than panic_share of a pool's engines is there and
              not failing

Both causes share one penalty, one cap and one panic threshold: an engine is not penalised twice, nor a pool more than
its share for having two kinds of trouble. Where the cap leaves no room, as in a pool of three equals, nobody is
penalised. What is left of an engine keeps it measured, so that it can come back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.schemas.weights import PPM, EngineMemory, Reason
from headrace.solver.core.problem import Engine
from headrace.solver.core.protections.error_cusum import Suspicion, suspicions_of
from headrace.solver.core.protections.guarded import Change, Guarded, Moment, scaled
from headrace.solver.core.protections.outlier import outliers_of
from headrace.solver.core.protections.residual import residuals
from headrace.solver.settings import SolverSettings

LEAST = 0.1
OUTLIER, ERRORS = "outlier", "errors"
"""By which name a penalty is told; by its first cause while both are there."""


@dataclass(frozen=True, slots=True)
class _Findings:
    """What is held against the engines of a pool: how many times too slow, and what their outcomes say."""

    slow: Mapping[str, float]
    outcomes: Mapping[str, Suspicion]

    def failing(self, engine_id: str) -> str:
        """Say how it fails; empty where it does not."""
        found = self.outcomes.get(engine_id)
        return "" if found is None else found.failing


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:
    """Penalise the engines that stand out of each pool."""
    pools: dict[object, list[Engine]] = {}
    for engine in sorted(guarded.problem.engines, key=lambda e: e.engine_id):
        if engine.exclusion is None or engine.exclusion.reason is not Reason.DRAINED:
            pools.setdefault((engine.site, engine.models, engine.capabilities, engine.residency), []).append(engine)
    changes: dict[str, dict[str, Change]] = {OUTLIER: {}, ERRORS: {}}
    told = residuals(guarded.problem, guarded.problem.engines)
    for members in pools.values():
        there = [engine for engine in members if engine.capacity_rps > 0.0]
        slow = outliers_of({e.engine_id: told[e.engine_id] for e in there if e.engine_id in told}, settings)
        found = _Findings(slow, suspicions_of(guarded, there, settings))
        sound = len(there) - sum(bool(each.failing) for each in found.outcomes.values())
        if sound >= settings.panic_share * len(members):
            for cause, engine_id, change in _of_pool(guarded, there, found, settings, moment):
                changes[cause][engine_id] = change
        else:
            for engine in there:
                if engine.engine_id in found.outcomes:
                    seen = found.outcomes[engine.engine_id].memory
                    changes[ERRORS][engine.engine_id] = Change(engine, seen)
    return guarded.changed(OUTLIER, changes[OUTLIER]).changed(ERRORS, changes[ERRORS])


def _of_pool(
    guarded: Guarded, there: Sequence[Engine], found: _Findings, settings: SolverSettings, moment: Moment
) -> Iterator[tuple[str, str, Change]]:
    """Give what changes, by cause and engine."""
    penalty: dict[str, float] = {}
    # Of nearly all nothing is remembered or found; such an engine has its whole capacity, and nothing of it changes.
    known = guarded.remembered
    noted = [e for e in there if (name := e.engine_id) in known or name in found.slow or name in found.outcomes]
    for engine in noted:
        name = engine.engine_id
        left = guarded.memory(name).penalty_ppm / PPM
        if name in found.slow or found.failing(name):
            penalty[name] = max(LEAST, left * 0.5 ** (moment.elapsed_s * 1000 / settings.outlier_half_ms))
        else:
            penalty[name] = min(1.0, left * 2.0 ** (moment.elapsed_s * 1000 / settings.outlier_recovery_ms))
    room = settings.outlier_max_share * sum(e.capacity_rps for e in there)
    for engine in sorted(noted, key=lambda e: (penalty[e.engine_id], e.engine_id)):
        name, before = engine.engine_id, guarded.memory(engine.engine_id)
        left_ppm = round(penalty[name] * PPM)
        # A ppm of room: a cap that is met exactly must not be missed by the last bit of a sum.
        if left_ppm >= PPM or engine.capacity_rps > room * (1.0 + 1.0 / PPM):
            memory = _unpenalised(before, found.outcomes.get(name))
            if memory != before:
                yield OUTLIER, name, Change(engine, memory)
            continue
        room -= engine.capacity_rps
        seen = found.outcomes[name].memory if name in found.outcomes else before
        for_errors = bool(found.failing(name)) or (before.penalty_for_errors and name not in found.slow)
        memory = replace(seen, penalty_ppm=left_ppm, penalty_for_errors=for_errors)
        sentence = _sentence(found, name, left_ppm, for_errors=for_errors)
        cause = ERRORS if for_errors else OUTLIER
        factor = left_ppm / PPM
        yield cause, name, Change(scaled(engine, factor, sentence), memory, factor, sentence)


def _unpenalised(before: EngineMemory, found: Suspicion | None) -> EngineMemory:
    """Give the memory of an engine that has all of its capacity; once it has it back, evidence begins anew."""
    if found is not None and (found.failing or not before.penalty_for_errors):
        return replace(found.memory, penalty_ppm=PPM, penalty_for_errors=False)
    if not before.penalty_for_errors:
        return replace(before, penalty_ppm=PPM)
    return replace(before, penalty_ppm=PPM, penalty_for_errors=False, error_ppm=None, error_until_ms=None)


def _sentence(found: _Findings, engine_id: str, left_ppm: int, *, for_errors: bool) -> str:
    share = f"{100 * left_ppm / PPM:.0f} % of capacity"
    causes = [cause for cause in (found.failing(engine_id),) if cause]
    if engine_id in found.slow:
        causes.append(f"{found.slow[engine_id]:.1f} times as slow as its peers")
    if causes:
        return f"{'; '.join(causes)}: {share}"
    return f"recovering from failed requests: {share}" if for_errors else f"recovering as an outlier: {share}"
