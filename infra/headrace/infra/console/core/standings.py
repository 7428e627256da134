"""How each engine stands at a version, in one word with its reason: what the weights say, beside what the fleet says.

    OUT       the solver may not use it, whatever the route: STALE, DRAINED, UNHEALTHY, ...
    FULL      its planned load is FULL_FROM of its counted capacity or more
    LIMITED   a protection left it less than its capacity
    SERVING   requests go there
    IDLE      it may serve, and nobody sends it anything
The first that holds. An engine that some routes may not use for their own reasons (residency, a capability) is not OUT.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headrace.infra.weights_tail.causes import GONE
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.weights import PPM, Protected, Reason, Snapshot

FULL_FROM = 0.95
SCALES_LATENCY = "trim"
"""The protection whose factor is one of latency: it takes no capacity away."""
LEAST_UTILISATION = 1e-3
"""Below it, load over utilisation is no measure of capacity."""


class Standing(StrEnum):
    """How an engine stands."""

    OUT = "OUT"
    FULL = "FULL"
    LIMITED = "LIMITED"
    SERVING = "SERVING"
    IDLE = "IDLE"


@dataclass(frozen=True, slots=True)
class EngineStanding:
    """One engine at one version.

    `load_rps` is what is planned to go there; `capacity_rps` what the plan counted it as, of requests as they are mixed
    there, None where nothing is planned to go there. `reason` is a code, empty where nothing is to be said; `sentence`
    says it in words.
    """

    engine_id: str
    standing: Standing
    reason: str
    sentence: str
    load_rps: float
    capacity_rps: float | None
    utilisation: float | None
    protections: tuple[Protected, ...]


@dataclass(slots=True)
class _Seen:
    """What the routes say of one engine, while they are read."""

    load_rps: float = 0.0
    utilisation: float | None = None
    version: int = -1
    out: tuple[Reason, str] | None = None
    out_version: int = -1


def standings(snapshot: Snapshot, specs: Mapping[str, EngineSpec]) -> tuple[EngineStanding, ...]:
    """Give every engine of the fleet and of the snapshot, sorted by id."""
    seen: dict[str, _Seen] = {engine_id: _Seen() for engine_id in specs}
    for route in snapshot.routes:
        kept_rps = route.demand_rps * (1.0 - route.shed_ratio)
        for target in route.targets:
            engine = seen.setdefault(target.engine_id, _Seen())
            engine.load_rps += kept_rps * target.weight_ppm / PPM
            # Only changed routes are written again: the newest word on an engine's load is the one to go by.
            if target.utilisation is not None and route.version > engine.version:
                engine.utilisation, engine.version = target.utilisation, route.version
        for excluded in route.excluded:
            engine = seen.setdefault(excluded.engine_id, _Seen())
            if excluded.reason in GONE and route.version > engine.out_version:
                # Its numbers are of that tick: a silence goes on, and the route is not written again for it.
                older = route.version < snapshot.commit.version
                said = f"{excluded.sentence}, as of version {route.version}" if older else excluded.sentence
                engine.out, engine.out_version = (excluded.reason, said), route.version
    acted: dict[str, list[Protected]] = {}
    for protected in snapshot.commit.protections:
        acted.setdefault(protected.engine_id, []).append(protected)
    return tuple(_standing(name, seen[name], tuple(acted.get(name, ()))) for name in sorted(seen))


def _standing(engine_id: str, seen: _Seen, protections: tuple[Protected, ...]) -> EngineStanding:
    limits = [p for p in protections if p.factor < 1.0 and p.protection != SCALES_LATENCY]
    full = seen.utilisation is not None and seen.utilisation >= FULL_FROM and seen.load_rps > 0.0
    if seen.out is not None:
        word, reason, sentence = Standing.OUT, seen.out[0].value, seen.out[1]
    elif full:
        word, reason = Standing.FULL, Reason.AT_CAPACITY.value
        sentence = f"its planned load is {100 * FULL_FROM:.0f} % of its counted capacity or more"
    elif limits:
        least = min(limits, key=lambda p: p.factor)
        word, reason, sentence = Standing.LIMITED, least.protection.upper(), least.sentence
    elif seen.load_rps > 0.0:
        word, reason, sentence = Standing.SERVING, "", ""
    else:
        word, reason, sentence = Standing.IDLE, "", "it may serve, and nothing is planned to go there"
    used = seen.utilisation if seen.load_rps > 0.0 else None
    counted = seen.load_rps / used if used is not None and used > LEAST_UTILISATION else None
    return EngineStanding(engine_id, word, reason, sentence, seen.load_rps, counted, used, protections)
