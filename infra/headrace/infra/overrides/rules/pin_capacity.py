"""sum over an engine's pins of least x demand <= its capacity, as it is measured now."""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override
from headrace.schemas.weights import PPM
from headrace.solver.core.problem import Engine, Problem
from headrace.solver.core.program.eligibility import row_exclusion

FORCEABLE = False


def broken(stands: Stands, override: Override) -> str | None:
    """Say what the pins ask of the engine, and what it has."""
    problem, cluster = stands.problem, override.cluster
    engine = None if problem is None else next((e for e in problem.engines if e.engine_id == override.target), None)
    if problem is None or engine is None or cluster is None or override.least_ppm is None:
        return None
    if engine.exclusion is not None:
        return None  # it has none: `pin_out` says why
    own = override.least_ppm / PPM * _asked(problem, engine, cluster)
    pins = [p for p in problem.pins if p.engine_id == override.target and p.cluster != cluster]
    others = sum(p.least * _asked(problem, engine, p.cluster) for p in pins)
    if own + others <= engine.capacity_rps * (1.0 + 1e-9):
        return None
    beside = f", beside {others:.1f} of other pins" if others > 0.0 else ""
    why = f" ({engine.factor_sentence})" if engine.factor_sentence else ""
    return (
        f"{100 * override.least_ppm / PPM:g} % of {cluster}'s {_asked(problem, engine, cluster):.1f} RPS is "
        f"{own:.1f} RPS{beside}; {override.target} has {engine.capacity_rps:.1f}{why}"
    )


def _asked(problem: Problem, engine: Engine, cluster: str) -> float:
    """Add up what a cluster asks for of what the engine may serve, RPS of work 1."""
    rows = (row for row in problem.rows if row.route.cluster == cluster and row_exclusion(row, engine) is None)
    return sum(row.demand_work for row in rows)
