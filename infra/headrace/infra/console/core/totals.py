"""What one version comes to, in a handful of numbers; and those numbers over the versions held.

    shed  = sum over routes of demand x shed ratio         retry = mean retry ratio, weighted by demand

The decision record of the tick, where it is held, knows the demand of every route at that tick, the capacity and what
moved; the weights alone hold each route's demand as of when it was last written, and know neither of the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.infra.console.core.decision import Decision
from headrace.schemas.weights import Snapshot

MAX_POINTS = 720


@dataclass(frozen=True, slots=True)
class Totals:
    """One version in numbers; null is not known. `retry_ratio_min` is that of the route with the smallest budget."""

    version: int
    tick_ms: int
    status: str
    demand_rps: float
    shed_rps: float
    retry_ratio: float | None
    retry_ratio_min: float | None
    capacity_rps: float | None
    utilisation: float | None
    moved_rps: float | None
    gap: float | None
    took_ms: float | None


@dataclass(frozen=True, slots=True)
class TotalsSeries:
    """The versions held, as columns, oldest first; one of `every` versions where there are many.

    Where several versions are one point, demand, capacity and retry ratio are those of the last, shed and moved the
    greatest: a spike is never thinned away.
    """

    every: int
    versions: tuple[int, ...]
    tick_ms: tuple[int, ...]
    demand_rps: tuple[float, ...]
    capacity_rps: tuple[float | None, ...]
    shed_rps: tuple[float, ...]
    moved_rps: tuple[float | None, ...]
    retry_ratio: tuple[float | None, ...]


def totals(snapshot: Snapshot) -> Totals:
    """Give what the weights alone say of a version."""
    demand = sum(route.demand_rps for route in snapshot.routes)
    shed = sum(route.demand_rps * route.shed_ratio for route in snapshot.routes)
    retry = sum(route.demand_rps * route.retry_ratio for route in snapshot.routes)
    commit = snapshot.commit
    return Totals(
        version=commit.version,
        tick_ms=commit.tick_ms,
        status=commit.status.value,
        demand_rps=demand,
        shed_rps=shed,
        retry_ratio=retry / demand if demand > 0.0 else None,
        retry_ratio_min=min((route.retry_ratio for route in snapshot.routes if route.demand_rps > 0.0), default=None),
        capacity_rps=None,
        utilisation=None,
        moved_rps=None,
        gap=None,
        took_ms=None,
    )


def with_decision(found: Totals, decision: Decision | None) -> Totals:
    """Give the numbers with what the tick's decision record knows better."""
    if decision is None:
        return found
    return Totals(
        version=found.version,
        tick_ms=found.tick_ms,
        status=found.status,
        demand_rps=decision.demand_rps,
        shed_rps=decision.shed_rps,
        retry_ratio=found.retry_ratio,
        retry_ratio_min=found.retry_ratio_min,
        capacity_rps=decision.capacity_rps,
        utilisation=decision.utilisation,
        moved_rps=decision.moved_rps,
        gap=decision.gap,
        took_ms=decision.took_ms,
    )


def totals_series(held: Sequence[Totals], decisions: Mapping[int, Decision]) -> TotalsSeries:
    """Give the numbers over time, at most MAX_POINTS of them."""
    every = max(1, -(-len(held) // MAX_POINTS))
    joined = [with_decision(each, decisions.get(each.version)) for each in held]
    bins = [joined[i : i + every] for i in range(0, len(joined), every)]
    last = [each[-1] for each in bins]
    return TotalsSeries(
        every=every,
        versions=tuple(point.version for point in last),
        tick_ms=tuple(point.tick_ms for point in last),
        demand_rps=tuple(point.demand_rps for point in last),
        capacity_rps=tuple(point.capacity_rps for point in last),
        shed_rps=tuple(max(point.shed_rps for point in points) for points in bins),
        moved_rps=tuple(
            max((point.moved_rps for point in points if point.moved_rps is not None), default=None) for points in bins
        ),
        retry_ratio=tuple(point.retry_ratio for point in last),
    )
