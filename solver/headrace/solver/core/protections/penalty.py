"""cap_eff x penalty for an engine that stands out of its peers: slower than they are (outlier), or failing (errors).

    penalty   halves every outlier_half_ms while it stands out, down to `LEAST`; doubles every outlier_recovery_ms after
    cap       at most outlier_max_share of a group's capacity is penalised, the worst first; but always one engine
    room      never more than the others can take in: they are filled to a load between retry_load_low and
              retry_load_high, by the share of its requests that it fails; what nobody has room for is left to it.
              An estimate: who would be shed for it all the same, keeps it all (`Moment.spared`)
    panic     penalties are ignored, and stay as they are, while less than panic_share of a group's engines is there and
              not failing: the cause is likely not in the engines, and somebody has to answer

While there is a budget for retries most of what fails is answered at the second try: to fill the others up for an
engine that fails a tenth takes away more answers than it brings, and for one that fails all it does not.

Whoever stands out and keeps all it has is told too, by a factor of 1 and the reason.

An engine's group is its pool, or, where that is too small, the engines of its models wherever they are (`peers`). Both
causes share one penalty, one cap and one panic threshold: an engine is not penalised twice, nor a group more than its
share for having two kinds of trouble. What is left of an engine keeps it measured, so that it can come back.

In a small pool an engine is slow only where it is slower than its trim can say: sites are asked different things, and
the trim prices what is within its bound.

Source: Envoy's outlier detection (a largest share, yet one host), its priority levels (whoever has room takes over,
panic only where nobody has), and its panic threshold.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.schemas.weights import PPM, EngineMemory
from headrace.solver.core.problem import Engine
from headrace.solver.core.protections.error_cusum import Suspicion, suspicions_of
from headrace.solver.core.protections.guarded import Change, Guarded, Moment, scaled
from headrace.solver.core.protections.outlier import outliers_of
from headrace.solver.core.protections.peers import Groups, Pool, pools_of
from headrace.solver.core.protections.residual import residuals
from headrace.solver.core.protections.room import Room
from headrace.solver.settings import SolverSettings

LEAST = 0.1
OUTLIER, ERRORS = "outlier", "errors"
"""By which name a penalty is told; by its first cause while both are there."""


@dataclass(frozen=True, slots=True)
class _Findings:
    """What is held against engines: how many times too slow they are, and what their outcomes say."""

    slow: Mapping[str, float]
    outcomes: Mapping[str, Suspicion]

    def failing(self, engine_id: str) -> str:
        """Say how it fails; empty where it does not."""
        found = self.outcomes.get(engine_id)
        return "" if found is None else found.failing

    def stands_out(self, engine_id: str) -> bool:
        """Say whether it does, for either cause."""
        return engine_id in self.slow or bool(self.failing(engine_id))

    def causes(self, engine_id: str) -> str:
        """Say why it does; empty where it does not."""
        slow = f"{self.slow[engine_id]:.1f} times as slow as its peers" if engine_id in self.slow else ""
        return "; ".join(cause for cause in (self.failing(engine_id), slow) if cause)


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:
    """Penalise the engines that stand out of their groups."""
    pools = pools_of(guarded.problem.engines)
    found = _Findings(_slow(guarded, pools, settings), suspicions_of(guarded, pools, settings))
    changes: dict[str, dict[str, Change]] = {OUTLIER: {}, ERRORS: {}}
    candidates: list[Engine] = []
    known = guarded.remembered
    for engine in (engine for pool in pools for engine in pool.there):
        name = engine.engine_id
        if name not in known and name not in found.slow and name not in found.outcomes:
            continue  # true of nearly all: nothing of it changes
        before = guarded.memory(name)
        if found.stands_out(name) or before.penalty_ppm < PPM or before.penalty_for_errors:
            candidates.append(engine)
        if name in found.outcomes and found.outcomes[name].memory != before:
            changes[ERRORS][name] = Change(engine, found.outcomes[name].memory)
    for cause, engine_id, change in _penalised(guarded, pools, candidates, found, settings, moment):
        changes[ERRORS].pop(engine_id, None)
        changes[cause][engine_id] = change
    return guarded.changed(OUTLIER, changes[OUTLIER]).changed(ERRORS, changes[ERRORS])


def _slow(guarded: Guarded, pools: Sequence[Pool], settings: SolverSettings) -> Mapping[str, float]:
    """Give the engines that are too slow beside their peers: those of the pool, or alike ones at all sites."""
    told = residuals(guarded.problem, guarded.problem.engines)
    if not told:
        return {}
    slow: dict[str, float] = {}
    alike: dict[tuple[tuple[str, ...], str], dict[str, float]] = {}
    alone: set[str] = set()
    for pool in pools:
        here = {e.engine_id: told[e.engine_id] for e in pool.there if e.engine_id in told}
        for engine in pool.there if here else ():
            if engine.engine_id in here:
                alike.setdefault((engine.models, engine.profile_id), {})[engine.engine_id] = here[engine.engine_id]
        if pool.is_small:
            alone.update(here)
        else:
            slow.update(outliers_of(here, settings))
    beyond_trim = replace(settings, outlier_ratio=max(settings.outlier_ratio, settings.trim_bound))
    for values in alike.values() if alone else ():
        found = outliers_of(values, beyond_trim)
        slow.update({engine_id: times for engine_id, times in found.items() if engine_id in alone})
    return slow


def _penalised(
    guarded: Guarded,
    pools: Sequence[Pool],
    candidates: Sequence[Engine],
    found: _Findings,
    settings: SolverSettings,
    moment: Moment,
) -> Iterator[tuple[str, str, Change]]:
    """Give what changes, by cause and engine, and who is told that nothing does."""
    if not candidates:
        return
    groups = Groups(pools)
    in_panic = groups.short_of(lambda e: e.capacity_rps > 0.0 and not found.failing(e.engine_id), settings.panic_share)
    is_on = settings.outlier_max_share > 0.0
    for engine in candidates:
        if is_on and found.stands_out(engine.engine_id) and not in_panic.isdisjoint(groups.of(engine)):
            yield _spared(guarded, engine, found, "too few of those it is counted with are there and sound")
    left_ppm = {
        engine.engine_id: round(PPM * _left(guarded, engine, found, settings, moment))
        for engine in candidates
        if in_panic.isdisjoint(groups.of(engine))
    }
    order = sorted(
        (e for e in candidates if e.engine_id in left_ppm), key=lambda e: (left_ppm[e.engine_id], e.engine_id)
    )
    penalised = [e for e in order if left_ppm[e.engine_id] < PPM]
    chosen = _within_cap(penalised, groups, settings.outlier_max_share)
    room = Room(guarded.problem)
    for engine in order:
        name, before = engine.engine_id, guarded.memory(engine.engine_id)
        seen = found.outcomes.get(name)
        if name not in chosen:
            memory = _unpenalised(before, seen)
            if is_on and found.stands_out(name) and left_ppm[name] < PPM:
                yield _spared(guarded, engine, found, "enough of its peers' is withheld already", memory)
            elif memory != before:
                yield OUTLIER, name, Change(engine, memory)
            continue
        wanted = engine.capacity_rps * (1.0 - left_ppm[name] / PPM)
        full = _full(0.0 if seen is None else seen.share, settings)
        taken = 0.0 if name in moment.spared else room.take(engine, wanted, full)
        factor = left_ppm[name] / PPM if taken >= wanted else 1.0 - taken / engine.capacity_rps
        for_errors = bool(found.failing(name)) or (before.penalty_for_errors and name not in found.slow)
        memory = before if seen is None else seen.memory
        memory = replace(memory, penalty_ppm=left_ppm[name], penalty_for_errors=for_errors)
        sentence = _sentence(found, name, factor, for_errors=for_errors, is_whole=taken >= wanted)
        change = Change(scaled(engine, factor, sentence), memory, factor, sentence)
        yield ERRORS if for_errors else OUTLIER, name, change


def _full(share: float, settings: SolverSettings) -> float:
    """Give the load to which others may be filled for an engine that fails this share of its requests, 0..1."""
    low, high = settings.retry_load_low, settings.retry_load_high
    return low + share * (high - low)


def _spared(
    guarded: Guarded, engine: Engine, found: _Findings, why: str, memory: EngineMemory | None = None
) -> tuple[str, str, Change]:
    """Give the word that an engine stands out and keeps all it has."""
    name = engine.engine_id
    if memory is None:
        memory = found.outcomes[name].memory if name in found.outcomes else guarded.memory(name)
    cause = ERRORS if found.failing(name) else OUTLIER
    return cause, name, Change(engine, memory, 1.0, f"{found.causes(name)}: all of its capacity, since {why}")


def _left(guarded: Guarded, engine: Engine, found: _Findings, settings: SolverSettings, moment: Moment) -> float:
    """Give the share of its capacity that an engine is left with, were there room for the rest elsewhere."""
    left, elapsed_ms = guarded.memory(engine.engine_id).penalty_ppm / PPM, moment.elapsed_s * 1000
    if found.stands_out(engine.engine_id):
        halved: float = 0.5 ** (elapsed_ms / settings.outlier_half_ms)
        return max(LEAST, left * halved)
    doubled: float = 2.0 ** (elapsed_ms / settings.outlier_recovery_ms)
    return min(1.0, left * doubled)


def _within_cap(penalised: Iterable[Engine], groups: Groups, share: float) -> frozenset[str]:
    """Give those of the engines, the worst first, that may be penalised at once; one in each group at least."""
    if share <= 0.0:
        return frozenset()
    # A ppm of room: a cap that is met exactly must not be missed by the last bit of a sum.
    budget = {group: share * rps * (1.0 + 1.0 / PPM) for group, rps in groups.capacities().items()}
    begun: set[object] = set()
    chosen: set[str] = set()
    for engine in penalised:
        of = groups.of(engine)
        if all(engine.capacity_rps <= budget[group] or group not in begun for group in of):
            for group in of:
                budget[group] -= engine.capacity_rps
            begun.update(of)
            chosen.add(engine.engine_id)
    return frozenset(chosen)


def _unpenalised(before: EngineMemory, found: Suspicion | None) -> EngineMemory:
    """Give the memory of an engine that has all of its capacity; once it has it back, evidence begins anew."""
    if found is not None and (found.failing or not before.penalty_for_errors):
        return replace(found.memory, penalty_ppm=PPM, penalty_for_errors=False)
    if not before.penalty_for_errors:
        return replace(before, penalty_ppm=PPM)
    return replace(before, penalty_ppm=PPM, penalty_for_errors=False, error_ppm=None, error_until_ms=None)


def _sentence(found: _Findings, engine_id: str, factor: float, *, for_errors: bool, is_whole: bool) -> str:
    share = f"{100 * factor:.0f} % of capacity" if factor < 1.0 else "all of its capacity"
    if not is_whole:
        share += ", for which nobody else has room"
    if causes := found.causes(engine_id):
        return f"{causes}: {share}"
    return f"recovering from failed requests: {share}" if for_errors else f"recovering as an outlier: {share}"
