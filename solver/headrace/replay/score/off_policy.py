"""What single decisions tell of another policy: each was drawn with a known probability, and its outcome is on record.

    w = probability under the other policy / propensity
    IPS   = sum w cost / n            unbiased, wild              SNIPS = sum w cost / sum w       the same, tamed
    DR    = mean of  sum_e pi(e) m(e) + w (cost - m(engine))      m: mean cost of that route on that engine so far seen
    effective sample size = (sum w)^2 / sum w^2

Refused below a stated effective sample size, and where the other policy sends traffic to where none was ever sent. All
three take one request at a time: had many moved, the engines' loads, and so all costs, would be others. They speak of
policies near the recorded one; the fleet model speaks of those far from it.

Source: Horvitz and Thompson 1952; Swaminathan and Joachims 2015 (self-normalised); Dudik, Langford and Li 2011 (DR).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.settings import ScoreSettings

UNSUPPORTED_AT_MOST = 0.05


@dataclass(frozen=True, slots=True)
class LoggedChoice:
    """One request's decision: where it went, with which probability, 0..1, and what its user then waited."""

    at_ms: int
    route: str
    engine_id: str
    propensity: float
    cost_ms: float


@dataclass(frozen=True, slots=True)
class OffPolicyEstimate:
    """Mean cost of the other policy, ms, three ways; `error_ms` is the standard error of SNIPS."""

    choices: int
    effective: float
    unsupported: float
    ips_ms: float
    snips_ms: float
    dr_ms: float
    error_ms: float


@dataclass(frozen=True, slots=True)
class OffPolicyRefused:
    """Why there is no estimate."""

    reason: str
    choices: int
    effective: float


WeightsAt = Callable[[int, str], Mapping[str, float]]
"""(instant, route) -> share by engine of the other policy, 0..1."""


def off_policy(
    choices: Sequence[LoggedChoice], weights_at: WeightsAt, settings: ScoreSettings
) -> OffPolicyEstimate | OffPolicyRefused:
    """Estimate another policy's mean cost from logged choices; those with a propensity outside (0, 1] are left out."""
    kept = [c for c in choices if 0.0 < c.propensity <= 1.0 and math.isfinite(c.cost_ms)]
    if not kept:
        return OffPolicyRefused("no decision carries a propensity", 0, 0.0)
    direct = _direct(kept)
    cost, weight = np.array([c.cost_ms for c in kept]), np.zeros(len(kept))
    known, model, unsupported = np.zeros(len(kept)), np.zeros(len(kept)), 0.0
    for i, choice in enumerate(kept):
        shares, seen = weights_at(choice.at_ms, choice.route), direct[choice.route]
        supported = {engine: share for engine, share in sorted(shares.items()) if engine in seen}
        unsupported += sum(shares.values()) - sum(supported.values())
        weight[i] = shares.get(choice.engine_id, 0.0) / choice.propensity
        known[i] = seen[choice.engine_id]
        total = sum(supported.values())
        model[i] = sum(s * seen[e] for e, s in supported.items()) / total if total > 0.0 else known[i]
    return _estimated(cost, weight, model + weight * (cost - known), unsupported / len(kept), settings)


def _estimated(
    cost: Floats, weight: Floats, doubly: Floats, unsupported: float, settings: ScoreSettings
) -> OffPolicyEstimate | OffPolicyRefused:
    count, total = len(cost), float(weight.sum())
    effective = total**2 / float(weight @ weight) if total > 0.0 else 0.0
    if effective < settings.fewest_effective:
        return OffPolicyRefused(
            f"effective sample size {effective:.0f} of {count:,} choices; at least {settings.fewest_effective:.0f}",
            count,
            effective,
        )
    if unsupported > UNSUPPORTED_AT_MOST:
        return OffPolicyRefused(
            f"{unsupported:.0%} of its traffic goes where no choice was ever made; at most {UNSUPPORTED_AT_MOST:.0%}",
            count,
            effective,
        )
    snips = float(weight @ cost) / total
    return OffPolicyEstimate(
        choices=count,
        effective=effective,
        unsupported=unsupported,
        ips_ms=float(weight @ cost) / count,
        snips_ms=snips,
        dr_ms=float(doubly.mean()),
        error_ms=math.sqrt(float((weight**2) @ (cost - snips) ** 2)) / total,
    )


def _direct(choices: Sequence[LoggedChoice]) -> dict[str, dict[str, float]]:
    """Give the mean cost of each route on each engine it was ever sent to."""
    sums: dict[str, dict[str, tuple[float, int]]] = {}
    for choice in choices:
        of_route = sums.setdefault(choice.route, {})
        cost, count = of_route.get(choice.engine_id, (0.0, 0))
        of_route[choice.engine_id] = (cost + choice.cost_ms, count + 1)
    return {route: {e: cost / count for e, (cost, count) in engines.items()} for route, engines in sums.items()}
