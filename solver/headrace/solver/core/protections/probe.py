"""L'(u) = 0 up to probe_share: the first of an engine's capacity counts for nothing while nothing is known of it.

    little evidence   usable, and fewer than `FEWEST` requests in its window, while others of its models are measured
    probed            the program sees its profile with a first segment that costs no engine time; beyond it as profiled

An engine that the best answer leaves idle is never measured again: whatever made it dear (a trim, an outlier's
penalty, a wall that was measured low) stays believed for ever. So it is given a little, where its network costs less
than the best way costs, and never more than that share of its capacity. Once it is measured it has its own price again.
`probe_share` 0 switches this off.

Exploration with a bound, as the probing of half-open circuit breakers: Nygard, "Release It!" (2007).
"""

from dataclasses import replace

from headrace.solver.core.problem import Engine
from headrace.solver.core.profile.load_cost import PROBED
from headrace.solver.core.protections.guarded import Change, Guarded, Moment
from headrace.solver.settings import SolverSettings

FEWEST = 20
"""Requests in a window from which a latency is evidence: what `residual` asks for."""


def protect(guarded: Guarded, settings: SolverSettings, moment: Moment) -> Guarded:  # noqa: ARG001 - a protection's signature
    """Make the first of the capacity of engines free that nothing is known of."""
    if settings.probe_share <= 0.0:
        return guarded
    problem = guarded.problem
    known = {model for engine in problem.engines if _measured(engine) for model in engine.models}
    asked = {row.route.model for row in problem.rows if row.demand_rps > 0.0}
    profiles, changes = dict(problem.profiles), dict[str, Change]()
    for engine in problem.engines:
        profile = problem.profiles.get(engine.profile_id)
        if profile is None or _measured(engine) or engine.capacity_rps <= 0.0:
            continue
        if known.isdisjoint(engine.models) or asked.isdisjoint(engine.models):
            continue
        profile_id = f"{engine.profile_id}{PROBED}"
        profiles[profile_id] = replace(profile, profile_id=profile_id)
        sentence = (
            f"not measured of late: the first {100 * settings.probe_share:.1f} % of its capacity counts for nothing"
        )
        probed = replace(engine, profile_id=profile_id)
        changes[engine.engine_id] = Change(probed, guarded.memory(engine.engine_id), 1.0, sentence)
    changed = guarded.changed("probe", changes)
    return replace(changed, problem=replace(changed.problem, profiles=profiles))


def _measured(engine: Engine) -> bool:
    return engine.measured is not None and engine.measured.samples >= FEWEST
