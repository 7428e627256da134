"""A snapshot's weights as arrays over pairs of route and engine, made anew only for the routes that changed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace.replay.score.latency_mass import Floats
from headrace.schemas.weights import PPM, RouteWeights, Snapshot, Target
from headrace.solver.core.problem import Problem

if TYPE_CHECKING:
    from headrace.schemas.ids import RouteKey

Ints = npt.NDArray[np.int64]
Links = Mapping[tuple[str, str], float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """P pairs of R routes and engines, in the order of the snapshot's routes.

    Attributes:
        routes: (R).
        shed, retry: (R,) ratios.
        work: (R,) of one of the route's requests.
        route: (P,) index into routes.
        engine: (P,) number of the engine, as `Numbers` gives it.
        share: (P,) 0..1 of what the route does not shed.
        failover: (P,) parts of what falls to others while an engine is out; all 0 of a route: by the shares.
        kept: (P,) share of an engine's sessions that others have room for, while it is out.
        network_s: (P,) round trip.
        expected_s: (P,) time to first token that the weights were made for, network included; NaN where not told.
    """

    routes: tuple[RouteWeights, ...]
    shed: Floats
    retry: Floats
    work: Floats
    route: Ints
    engine: Ints
    share: Floats
    failover: Floats
    kept: Floats
    network_s: Floats
    expected_s: Floats


class Numbers:
    """Engines by number, in the order in which they were first seen; a number is never given twice."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._of: dict[str, int] = {}

    def of(self, engine_id: str) -> int:
        """Give the number of an engine, a new one at its first sight."""
        number = self._of.get(engine_id)
        if number is None:
            number = self._of[engine_id] = len(self.ids)
            self.ids.append(engine_id)
        return number


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One route's pairs, and the record they were made of."""

    record: RouteWeights
    engine: Ints
    share: Floats
    failover: Floats
    kept: Floats
    told_s: Floats
    expected_s: Floats
    sites: tuple[str, ...]


class Placer:
    """Makes placements; remembers one part per route of the last snapshot."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._parts: dict[bytes, _Part] = {}
        self._sites: dict[str, str] = {}

    def place(self, problem: Problem, snapshot: Snapshot) -> Placement:
        """Give a snapshot's weights; round trips are those of the problem, else those that the record tells."""
        self._sites = {engine.engine_id: engine.site for engine in problem.engines}
        parts = {route.key: self._part(route) for route in snapshot.routes}
        self._parts = parts
        kept = list(parts.values())
        work = {row.route: row.work for row in problem.rows}
        sizes = [len(part.engine) for part in kept]
        return Placement(
            routes=snapshot.routes,
            shed=np.array([route.shed_ratio for route in snapshot.routes], dtype=np.float64),
            retry=np.array([route.retry_ratio for route in snapshot.routes], dtype=np.float64),
            work=np.array([work.get(route.route, 1.0) for route in snapshot.routes], dtype=np.float64),
            route=np.repeat(np.arange(len(kept)), sizes),
            engine=np.concatenate([np.empty(0, np.int64), *(part.engine for part in kept)]),
            share=_floats([part.share for part in kept]),
            failover=_floats([part.failover for part in kept]),
            kept=_floats([part.kept for part in kept]),
            network_s=_floats([_round_trips(part, problem.network_s) for part in kept]),
            expected_s=_floats([part.expected_s for part in kept]),
        )

    def _part(self, route: RouteWeights) -> _Part:
        known = self._parts.get(route.key)
        if known is not None and known.record is route:
            return known
        told = {target.engine_id: target for target in route.targets}
        out = {each.engine_id for each in route.excluded}
        taken = {t.engine_id: t.weight_ppm for t in route.failover if t.weight_ppm > 0 and t.engine_id not in out}
        used = [engine for engine, target in told.items() if target.weight_ppm > 0]
        used += [engine for engine in taken if engine not in used]
        kept = [told[e].failover_kept if e in told else None for e in used]
        # Of an engine that the record tells no round trip of, and nobody measured: as far as the furthest.
        furthest = max((target.network_s for target in route.targets), default=0.0)
        return _Part(
            record=route,
            engine=np.array([self._numbers.of(e) for e in used], dtype=np.int64),
            share=np.array([told[e].weight_ppm / PPM if e in told else 0.0 for e in used], dtype=np.float64),
            failover=np.array([taken.get(e, 0) / PPM for e in used], dtype=np.float64),
            kept=np.array([1.0 if each is None or not taken else each for each in kept], dtype=np.float64),
            told_s=np.array([told[e].network_s if e in told else furthest for e in used], dtype=np.float64),
            expected_s=np.array([_expected_s(told.get(e)) for e in used], dtype=np.float64),
            sites=tuple(self._sites.get(e, "") for e in used),
        )


def demand_of(problem: Problem, routes: Sequence[RouteWeights]) -> Floats:
    """Give the demand of each route, RPS; 0 where the problem has no such row."""
    asked: dict[RouteKey, float] = {row.route: row.demand_rps for row in problem.rows}
    return np.array([asked.get(route.route, 0.0) for route in routes], dtype=np.float64)


def engine_numbers(problem: Problem, numbers: Numbers) -> Ints:
    """Give the number of each of the problem's engines, in its order, and last how many numbers there are."""
    known = [numbers.of(e.engine_id) for e in problem.engines]
    return np.array([*known, len(numbers.ids)], dtype=np.int64)


def _round_trips(part: _Part, links: Links) -> Floats:
    cluster = part.record.cluster
    found = [links.get((cluster, site)) for site in part.sites]
    if None not in found:
        return np.array(found, dtype=np.float64)
    return np.array([t if f is None else f for f, t in zip(found, part.told_s.tolist(), strict=True)], dtype=np.float64)


def _expected_s(target: Target | None) -> float:
    return math.nan if target is None or target.ttft_s is None else target.ttft_s + target.network_s


def _floats(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.zeros(0)
