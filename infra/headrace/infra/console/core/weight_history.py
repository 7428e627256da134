"""One route's weights over the versions held: a step line for each engine that mattered, the others as one."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.infra.console.core.flows import OTHERS, SHED
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import PPM, RouteWeights, SnapshotCommit

MAX_LINES = 7
"""Lines that can be told apart; more are one."""
MAX_POINTS = 720


@dataclass(frozen=True, slots=True)
class WeightLine:
    """One engine's share of the route's requests at each point, 0..1."""

    engine_id: str
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WeightHistory:
    """A route over time: at each point the instant, the version, the demand, and each line's share, largest first."""

    route: str
    tick_ms: tuple[int, ...]
    versions: tuple[int, ...]
    demand_rps: tuple[float, ...]
    lines: tuple[WeightLine, ...]


def weight_history(
    route: RouteKey, records: Sequence[tuple[int, RouteWeights | None]], commits: Sequence[SnapshotCommit]
) -> WeightHistory:
    """Give the history; a point for each version at which the route was written, and for the newest held.

    Args:
        route: which.
        records: its records by version, oldest first.
        commits: those held, oldest first.
    """
    tick_of = {commit.version: commit.tick_ms for commit in commits}
    found = [(version, record) for version, record in records if record is not None]
    oldest = commits[0].version if commits else 0
    found = [(max(version, oldest), record) for version, record in found]
    if found and commits and found[-1][0] < commits[-1].version:
        found.append((commits[-1].version, found[-1][1]))
    every = max(1, -(-len(found) // MAX_POINTS))
    points = [*found[:-1:every], *found[-1:]]
    shares = [_shares(record) for _, record in points]
    weight: dict[str, float] = {}
    for each in shares:
        for name, share in each.items():
            weight[name] = max(weight.get(name, 0.0), share)
    ranked = sorted(weight, key=lambda name: (-weight[name], name))
    kept = ranked if len(ranked) <= MAX_LINES + 1 else ranked[:MAX_LINES]
    lines = [WeightLine(name, tuple(each.get(name, 0.0) for each in shares)) for name in kept]
    if len(kept) < len(ranked):
        rest = tuple(max(0.0, sum(each.values()) - sum(each.get(name, 0.0) for name in kept)) for each in shares)
        lines.append(WeightLine(OTHERS, rest))
    return WeightHistory(
        route=str(route),
        tick_ms=tuple(tick_of.get(version, commits[-1].tick_ms) for version, _ in points),
        versions=tuple(version for version, _ in points),
        demand_rps=tuple(record.demand_rps for _, record in points),
        lines=tuple(lines),
    )


def _shares(route: RouteWeights) -> dict[str, float]:
    kept = 1.0 - route.shed_ratio
    found = {t.engine_id: round(kept * t.weight_ppm / PPM, 6) for t in route.targets if t.weight_ppm}
    return found | ({SHED: route.shed_ratio} if route.shed_ratio > 0.0 else {})
