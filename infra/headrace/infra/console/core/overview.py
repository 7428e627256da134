"""The top of the page at one version: is it all right, who is out and why, each cluster, what acts and who said so."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.infra.console.core.standings import EngineStanding, Standing
from headrace.infra.console.core.totals import Totals
from headrace.schemas.overrides import Override
from headrace.schemas.weights import Protected, Snapshot

MAX_PROTECTIONS = 200


@dataclass(frozen=True, slots=True)
class StandingCount:
    """How many engines stand so."""

    standing: str
    engines: int


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """How many engines stand so for one reason; the first of them, and what is said of it."""

    standing: str
    reason: str
    engines: int
    engine_id: str
    sentence: str


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """One cluster: what it asks for, what of it is refused, how many engines it uses, its smallest retry budget."""

    cluster: str
    routes: int
    demand_rps: float
    shed_rps: float
    engines: int
    retry_ratio_min: float | None


@dataclass(frozen=True, slots=True)
class OverrideLine:
    """An operator's word; `holds` says whether it counts at the version's tick."""

    kind: str
    target: str
    author: str
    reason: str
    made_ms: int
    expires_ms: int
    holds: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """One version, seen from above. `protections` are at most MAX_PROTECTIONS of `protection_count`, tightest first."""

    version: int
    epoch: int
    tick_ms: int
    period_ms: int
    valid_until_ms: int
    status: str
    mode: str
    sentence: str
    policy: str
    routes: int
    totals: Totals
    standings: tuple[StandingCount, ...]
    reasons: tuple[ReasonCount, ...]
    clusters: tuple[ClusterLine, ...]
    protections: tuple[Protected, ...]
    protection_count: int
    overrides: tuple[OverrideLine, ...]


def overview(
    snapshot: Snapshot,
    found: Totals,
    engines: Sequence[EngineStanding],
    overrides: Sequence[Override],
) -> Overview:
    """Put it together; `engines` are the standings of the same snapshot."""
    commit = snapshot.commit
    counts = Counter(engine.standing for engine in engines)
    protections = sorted(commit.protections, key=lambda p: (p.factor, p.engine_id, p.protection))
    return Overview(
        version=commit.version,
        epoch=commit.epoch,
        tick_ms=commit.tick_ms,
        period_ms=commit.period_ms,
        valid_until_ms=commit.valid_until_ms,
        status=commit.status.value,
        mode=commit.mode.value,
        sentence=commit.sentence,
        policy=commit.policy,
        routes=len(snapshot.routes),
        totals=found,
        standings=tuple(StandingCount(standing.value, counts[standing]) for standing in Standing),
        reasons=_reasons(engines),
        clusters=_clusters(snapshot),
        protections=tuple(protections[:MAX_PROTECTIONS]),
        protection_count=len(protections),
        overrides=tuple(_override(each, commit.tick_ms) for each in sorted(overrides, key=lambda o: o.expires_ms)),
    )


def _reasons(engines: Sequence[EngineStanding]) -> tuple[ReasonCount, ...]:
    by_reason: dict[tuple[str, str], list[EngineStanding]] = {}
    for engine in engines:
        if engine.reason:
            by_reason.setdefault((engine.standing.value, engine.reason), []).append(engine)
    order = [standing.value for standing in Standing]
    ranked = sorted(by_reason.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]), item[0][1]))
    return tuple(
        ReasonCount(standing, reason, len(some), some[0].engine_id, some[0].sentence)
        for (standing, reason), some in ranked
    )


def _clusters(snapshot: Snapshot) -> tuple[ClusterLine, ...]:
    by_cluster: dict[str, list[int]] = {}
    for i, route in enumerate(snapshot.routes):
        by_cluster.setdefault(route.cluster, []).append(i)
    lines: list[ClusterLine] = []
    for cluster, places in by_cluster.items():
        routes = [snapshot.routes[i] for i in places]
        lines.append(
            ClusterLine(
                cluster=cluster,
                routes=len(routes),
                demand_rps=sum(route.demand_rps for route in routes),
                shed_rps=sum(route.demand_rps * route.shed_ratio for route in routes),
                engines=len({t.engine_id for route in routes for t in route.targets if t.weight_ppm > 0}),
                retry_ratio_min=min((route.retry_ratio for route in routes if route.demand_rps > 0.0), default=None),
            )
        )
    return tuple(sorted(lines, key=lambda line: (-line.demand_rps, line.cluster)))


def _override(override: Override, now_ms: int) -> OverrideLine:
    return OverrideLine(
        kind=override.kind.value,
        target=override.target,
        author=override.author,
        reason=override.reason,
        made_ms=override.made_ms,
        expires_ms=override.expires_ms,
        holds=override.holds(now_ms),
    )
