"""What single decisions tell of another policy: each was drawn with a known probability, and its outcome is on record.

    w = probability under the other policy / propensity
    IPS   = sum w cost / n            unbiased, wild              SNIPS = sum w cost / sum w       the same, tamed
    DR    = mean of  sum_e pi(e) m(e) + w (cost - m(engine))      m: mean cost of that route on that engine so far seen
    effective sample size = (sum w)^2 / sum_s (sum of w in session s)^2

A session's hash is drawn once, so its requests are one draw; those of no session are each their own. Refused below a
stated effective sample size, and where the other policy sends traffic to where none was ever sent. All three take one
request at a time: had many moved, the engines' loads, and so all costs, would be others. They speak of policies near
the recorded one; the fleet model speaks of those far from it.

Source: Horvitz and Thompson 1952; Swaminathan and Joachims 2015 (self-normalised); Dudik, Langford and Li 2011 (DR).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.replay.score.latency_mass import Floats, Ints
from headrace.replay.score.settings import ScoreSettings

UNSUPPORTED_AT_MOST = 0.05


@dataclass(frozen=True, slots=True)
class LoggedChoice:
    """One request's decision: where it went, with which probability, 0..1, and what its user then waited.

    `session` is any number that its requests share; None where it stands alone.
    """

    at_ms: int
    route: str
    engine_id: str
    propensity: float
    cost_ms: float
    session: int | None = None


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
    doubly = model + weight * (cost - known)
    return _estimated(_Draws(cost, weight, doubly, _sessions(kept)), unsupported / len(kept), settings)


@dataclass(frozen=True, slots=True, eq=False)
class _Draws:
    """Choices as arrays, (n,): cost, w, the doubly robust term, and the number of the session."""

    cost: Floats
    weight: Floats
    doubly: Floats
    session: Ints


def _estimated(draws: _Draws, unsupported: float, settings: ScoreSettings) -> OffPolicyEstimate | OffPolicyRefused:
    cost, weight = draws.cost, draws.weight
    count, total = len(cost), float(weight.sum())
    by_session = np.bincount(draws.session, weight)
    effective = total**2 / float(by_session @ by_session) if total > 0.0 else 0.0
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
    off = np.bincount(draws.session, weight * (cost - snips))
    return OffPolicyEstimate(
        choices=count,
        effective=effective,
        unsupported=unsupported,
        ips_ms=float(weight @ cost) / count,
        snips_ms=snips,
        dr_ms=float(draws.doubly.mean()),
        error_ms=math.sqrt(float(off @ off)) / total,
    )


def _sessions(choices: Sequence[LoggedChoice]) -> Ints:
    """Number the sessions by their first choices; a choice of no session is one of its own."""
    numbers: dict[tuple[bool, int], int] = {}
    named = ((True, i) if c.session is None else (False, c.session) for i, c in enumerate(choices))
    return np.array([numbers.setdefault(name, len(numbers)) for name in named], dtype=np.int64)


def _direct(choices: Sequence[LoggedChoice]) -> dict[str, dict[str, float]]:
    """Give the mean cost of each route on each engine it was ever sent to."""
    sums: dict[str, dict[str, tuple[float, int]]] = {}
    for choice in choices:
        of_route = sums.setdefault(choice.route, {})
        cost, count = of_route.get(choice.engine_id, (0.0, 0))
        of_route[choice.engine_id] = (cost + choice.cost_ms, count + 1)
    return {route: {e: cost / count for e, (cost, count) in engines.items()} for route, engines in sums.items()}
