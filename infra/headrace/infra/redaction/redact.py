"""Snapshots and explanations that may leave the company: no addresses, no absolute capacities or rates, no own names.

    engine      engine-<first 12 hex digits of HMAC-SHA256(redact.secret, engine_id)>
    rates       shares: a route's demand of all demand; weights, loads and budgets are shares already
    left out    addresses, sentences (they name engines and numbers), positions in topics, what is remembered of engines

What is given out is built up field by field, so that a field which comes later is left out until somebody adds it. With
the same secret an engine has the same name in every line, file and run; without the secret nobody gets back to it, not
even by trying the names that he expects. Clusters, models, classes and sites keep their names; latencies and prices in
ms are what there is to see. Pure: scaling every rate by the same factor changes no byte of what comes out.
"""

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from headrace.infra.weight_why.report import WeightReport
from headrace.infra.weights_tail.fold import Shown
from headrace.schemas.ids import RouteKey, parse_route_key
from headrace.schemas.weights import Excluded, Protected, RouteWeights, SnapshotCommit
from headrace.solver.core.why.explanation import PriceTerms

HEX_DIGITS = 12


@dataclass(frozen=True, slots=True)
class RedactedTarget:
    """One engine's share of a route."""

    engine: str
    weight_ppm: int
    solver_ppm: int
    previous_ppm: int
    network_s: float
    ttft_s: float | None
    tbot_s: float | None
    utilisation: float | None
    engine_price_ms: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class RedactedExcluded:
    """An engine that may not take the route's traffic, and why."""

    engine: str
    reason: str


@dataclass(frozen=True, slots=True)
class RedactedProtection:
    """A protection that changed what the program was given of an engine, by which factor."""

    engine: str
    protection: str
    factor: float


@dataclass(frozen=True, slots=True)
class RedactedRoute:
    """The weights of one route. `demand_share` is of the whole snapshot's demand, null where there is none."""

    cluster: str
    model: str
    request_class: str
    tier: int
    epoch: int
    version: int
    demand_share: float | None
    targets: tuple[RedactedTarget, ...]
    excluded: tuple[RedactedExcluded, ...]
    shed_ratio: float
    retry_ratio: float
    marginal_ms: float | None


@dataclass(frozen=True, slots=True)
class RedactedCommit:
    """A snapshot's commit."""

    epoch: int
    version: int
    mode: str
    status: str
    tick_ms: int
    period_ms: int
    valid_until_ms: int
    route_count: int
    policy: str
    policy_hash: str
    protections: tuple[RedactedProtection, ...]


@dataclass(frozen=True, slots=True)
class RedactedLine:
    """A snapshot: its commit, the routes written since the line before (in the first line all), and those removed."""

    commit: RedactedCommit
    routes: tuple[RedactedRoute, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RedactedAlternative:
    """A way that carries nothing, and by how much it is too dear."""

    engines: tuple[str, ...]
    site: str
    gap_ms: float


@dataclass(frozen=True, slots=True)
class RedactedStep:
    """One step of the weight."""

    version: int
    tick_ms: int
    before_ppm: int
    after_ppm: int


@dataclass(frozen=True, slots=True)
class RedactedReport:
    """Why one engine has its weight in one route of one tick."""

    version: int
    epoch: int
    tick_ms: int
    status: str
    computed_again: bool
    inputs_proved: bool
    route: str
    engine: str
    weight_ppm: int
    terms_ms: PriceTerms | None
    route_marginal_ms: float | None
    utilisation: float | None
    excluded: RedactedExcluded | None
    alternatives: tuple[RedactedAlternative, ...]
    others_excluded: tuple[RedactedExcluded, ...]
    protections: tuple[RedactedProtection, ...]
    history: tuple[RedactedStep, ...]


T = TypeVar("T", RedactedTarget, RedactedExcluded, RedactedProtection)


class Redaction:
    """Redacts by one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def engine(self, engine_id: str) -> str:
        """Give the name that an engine goes by outside."""
        return f"engine-{hmac.digest(self._secret, engine_id.encode(), 'sha256').hex()[:HEX_DIGITS]}"

    def line(self, shown: Shown, wanted: Callable[[RouteKey], bool]) -> RedactedLine:
        """Redact what `tail --json` tells of a snapshot."""
        total_rps = sum(route.demand_rps for route in shown.snapshot.routes)
        return RedactedLine(
            self._commit(shown.snapshot.commit),
            tuple(self._route(route, total_rps) for route in shown.written() if wanted(route.route)),
            tuple(key for key in shown.removed() if wanted(parse_route_key(key.encode()))),
        )

    def report(self, report: WeightReport) -> RedactedReport:
        """Redact what `explain --json` tells."""
        return RedactedReport(
            version=report.version,
            epoch=report.epoch,
            tick_ms=report.tick_ms,
            status=report.status,
            computed_again=report.computed_again,
            inputs_proved=report.inputs_proved,
            route=report.route,
            engine=self.engine(report.engine_id),
            weight_ppm=report.weight_ppm,
            terms_ms=report.terms_ms,
            route_marginal_ms=report.route_marginal_ms,
            utilisation=report.utilisation,
            excluded=None if report.excluded is None else self._excluded(report.excluded),
            alternatives=tuple(
                RedactedAlternative(tuple(sorted(map(self.engine, each.engine_ids))), each.site, each.gap_ms)
                for each in report.alternatives
            ),
            others_excluded=_by_name(map(self._excluded, report.others_excluded)),
            protections=self._protections(report.protections),
            history=tuple(
                RedactedStep(step.version, step.tick_ms, step.before_ppm, step.after_ppm) for step in report.history
            ),
        )

    def _commit(self, commit: SnapshotCommit) -> RedactedCommit:
        return RedactedCommit(
            epoch=commit.epoch,
            version=commit.version,
            mode=commit.mode.value,
            status=commit.status.value,
            tick_ms=commit.tick_ms,
            period_ms=commit.period_ms,
            valid_until_ms=commit.valid_until_ms,
            route_count=commit.route_count,
            policy=commit.policy,
            policy_hash=commit.policy_hash,
            protections=self._protections(commit.protections),
        )

    def _route(self, route: RouteWeights, total_rps: float) -> RedactedRoute:
        return RedactedRoute(
            cluster=route.cluster,
            model=route.model,
            request_class=route.request_class,
            tier=route.tier,
            epoch=route.epoch,
            version=route.version,
            demand_share=_share(route.demand_rps, total_rps),
            targets=_by_name(
                RedactedTarget(
                    self.engine(target.engine_id),
                    target.weight_ppm,
                    target.solver_ppm,
                    target.previous_ppm,
                    target.network_s,
                    target.ttft_s,
                    target.tbot_s,
                    target.utilisation,
                    target.engine_price_ms,
                    target.reason.value,
                )
                for target in route.targets
            ),
            excluded=_by_name(map(self._excluded, route.excluded)),
            shed_ratio=route.shed_ratio,
            retry_ratio=route.retry_ratio,
            marginal_ms=route.marginal_ms,
        )

    def _excluded(self, excluded: Excluded) -> RedactedExcluded:
        return RedactedExcluded(self.engine(excluded.engine_id), excluded.reason.value)

    def _protections(self, protections: Iterable[Protected]) -> tuple[RedactedProtection, ...]:
        return _by_name(RedactedProtection(self.engine(p.engine_id), p.protection, p.factor) for p in protections)


def _by_name(items: Iterable[T]) -> tuple[T, ...]:
    """Give them in the order of their new names: the old order told the old names' alphabet."""
    return tuple(sorted(items, key=lambda each: each.engine))


def _share(rps: float, total_rps: float) -> float | None:
    """Give the share to a millionth: rounding, so that the last bit of a sum tells nothing of its size."""
    return round(rps / total_rps, 6) if total_rps > 0.0 else None
