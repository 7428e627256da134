"""Which engine may serve which route: masks that fail closed, each "no" with a reason and a sentence.

An engine may serve a row if it is not excluded as a whole, has usable capacity and a profile, serves the model, has
every capability asked for, sits in one of the residencies allowed, and the round trip to its site is known. Anything
unknown is a no.
"""

from collections.abc import Mapping

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.weights import Reason
from headrace.solver.core.problem import Engine, Exclusion, Problem, Row

MIN_CAPACITY_RPS = 1e-9
"""Less is none: a program cannot tell it from its own rounding."""


def engine_exclusion(engine: Engine, profiles: Mapping[str, LatencyProfile]) -> Exclusion | None:
    """Give why an engine can take nothing at all, or None where it can take something."""
    if engine.exclusion is not None:
        return engine.exclusion
    if engine.ready_replicas <= 0:
        return Exclusion(Reason.NO_READY_REPLICA, f"{engine.ready_replicas} replicas are ready")
    if engine.profile_id not in profiles:
        return Exclusion(Reason.NO_PROFILE, f"its latency profile {engine.profile_id!r} is not known")
    if not engine.capacity_rps >= MIN_CAPACITY_RPS:
        why = engine.factor_sentence or (
            f"{engine.ready_replicas} replicas x {engine.capacity_rps_per_replica:g} RPS x factor {engine.factor:g}"
        )
        return Exclusion(Reason.UNHEALTHY, f"its usable capacity is 0: {why}")
    return None


def row_exclusion(row: Row, engine: Engine) -> Exclusion | None:
    """Give why an engine that can take something may not take this row's requests, network aside; None where it may."""
    if row.route.model not in engine.models:
        return Exclusion(Reason.MODEL_NOT_SERVED, f"it serves {_listed(engine.models)}, not {row.route.model}")
    missing = [name for name in row.requires if name not in engine.capabilities]
    if missing:
        return Exclusion(Reason.CAPABILITY_MISSING, f"it lacks {_listed(missing)}")
    if row.residency and not set(row.residency) & set(engine.residency):
        return Exclusion(
            Reason.RESIDENCY, f"its residency is {_listed(engine.residency)}; allowed: {_listed(row.residency)}"
        )
    return None


def network_exclusion(problem: Problem, cluster: str, site: str) -> Exclusion | None:
    """Give why the network from a cluster to a site rules out a route, or None where a round trip is known."""
    link = (cluster, site)
    if link not in problem.network_s:
        return Exclusion(Reason.NETWORK_UNKNOWN, f"no round trip from {cluster} to {site} has been measured")
    if problem.network_s[link] is None:
        return Exclusion(Reason.NETWORK_LOST, f"every probe from {cluster} to {site} was lost")
    return None


def exclusion(problem: Problem, row: Row, engine: Engine) -> Exclusion | None:
    """Give the first reason why this engine may not serve this row, or None where it may."""
    return (
        row_exclusion(row, engine)
        or engine_exclusion(engine, problem.profiles)
        or network_exclusion(problem, row.route.cluster, engine.site)
    )


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names) if names else "none"
