"""Why traffic moved between two snapshots: what else differs between them, and which of it is the likeliest cause.

    engine out or back            1
    protection began, ended       |factor after - factor before|
    capacity counted              |after - before| / the greater          load of all routes / utilisation

A move's cause is the greatest difference of an engine that the move touches; else the demand that changed most; else
what still holds back an engine that lost: weights may follow what acts for several ticks; else another engine's
difference; else what the solver says of the engine that gained most. Differences below `SOME` are
noise. Pure: two snapshots in, words out; whatever protections a snapshot carries are told, by their own sentences.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.infra.demo.movement import SHED
from headrace.infra.weights_tail.route_move import RouteMove
from headrace.schemas.weights import PPM, Excluded, Protected, Reason, RouteWeights, Snapshot, SnapshotCommit
from headrace.solver.core.answer.pinned import PIN

SOME = 0.05
SOME_DEMAND = 0.1
SOME_CAPACITY = 0.1
"""A route that stayed keeps the utilisation that was true when it was written, so capacity is read with more room."""
TELL_AGE_MS = 2_000
"""Between a tick and the next, "before" says enough."""
GONE = frozenset(
    {
        Reason.STALE,
        Reason.UNHEALTHY,
        Reason.NO_READY_REPLICA,
        Reason.NO_STATE,
        Reason.INVALID_STATE,
        Reason.DRAINED,
        Reason.NO_PROFILE,
    }
)
"""Reasons that put an engine out of every route."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One difference. `size` is 0..1, or more where a factor grew by more than itself."""

    subject: str
    size: float
    sentence: str


def out_of_all(snapshot: Snapshot) -> Mapping[str, Excluded]:
    """Give the engines that no route may use, for a reason of their own, by id."""
    return {e.engine_id: e for route in snapshot.routes for e in route.excluded if e.reason in GONE}


def counted_rps(snapshot: Snapshot) -> Mapping[str, float]:
    """Give the capacity that the solver counted of each engine with traffic: its load over its utilisation."""
    load: dict[str, float] = {}
    used: dict[str, tuple[int, float]] = {}
    for route in snapshot.routes:
        served = route.demand_rps * (1.0 - route.shed_ratio)
        for target in route.targets:
            load[target.engine_id] = load.get(target.engine_id, 0.0) + served * target.weight_ppm / PPM
            if target.utilisation is not None and used.get(target.engine_id, (-1, 0.0))[0] < route.version:
                used[target.engine_id] = route.version, target.utilisation
    return {name: load[name] / share for name, (_, share) in used.items() if share > 0.0 and load[name] > 0.0}


def protections_of(commit: SnapshotCommit) -> Mapping[tuple[str, str], Protected]:
    """Give a commit's protections by (engine, protection)."""
    return {(p.engine_id, p.protection): p for p in commit.protections}


def engine_causes(before: Snapshot, after: Snapshot) -> Mapping[str, Cause]:
    """Give the greatest difference of each engine that has one."""
    found: dict[str, Cause] = {}

    def add(cause: Cause, least: float = SOME) -> None:
        if cause.size >= least and (cause.subject not in found or found[cause.subject].size < cause.size):
            found[cause.subject] = cause

    was_out, is_out = out_of_all(before), out_of_all(after)
    for name in is_out.keys() - was_out.keys():
        add(Cause(name, 1.0, f"{name} is out: {is_out[name].reason}, {is_out[name].sentence}"))
    for name in was_out.keys() - is_out.keys():
        add(Cause(name, 1.0, f"{name} is back"))
    for cause in _protection_causes(before, after):
        if cause.subject not in is_out:
            add(cause)
    old, new = counted_rps(before), counted_rps(after)
    for name in sorted((old.keys() & new.keys()) - found.keys()):
        size = abs(new[name] - old[name]) / max(new[name], old[name])
        sentence = f"{name} counts {new[name]:.0f} RPS of capacity, {old[name]:.0f} {_then(before, after)}"
        add(Cause(name, size, sentence), SOME_CAPACITY)
    return found


def _protection_causes(before: Snapshot, after: Snapshot) -> list[Cause]:
    old, new = protections_of(before.commit), protections_of(after.commit)
    causes: list[Cause] = []
    for key in sorted(old.keys() | new.keys()):
        engine_id, protection = key
        was = old[key].factor if key in old else 1.0
        now = new[key].factor if key in new else 1.0
        over = "its pin has ended" if protection == PIN else f"{protection} no longer holds it back"
        ended = f"{engine_id}: {over}"
        sentence = f"{engine_id}: {new[key].sentence} ({protection})" if key in new else ended
        # An operator's word scales nothing; that it came, went or was changed is all there is to it.
        said = protection == PIN and (key not in old or key not in new or old[key].sentence != new[key].sentence)
        causes.append(Cause(engine_id, 1.0 if said else abs(now - was), sentence))
    return causes


def demand_cause(before: Snapshot, after: Snapshot, first: RouteWeights) -> Cause | None:
    """Give the demand that changed most: of the route `first`, else of all; None where none did."""
    old = {route.route: route.demand_rps for route in before.routes}
    changes = [
        (abs(route.demand_rps - old[route.route]), route)
        for route in after.routes
        if route.route in old and abs(route.demand_rps - old[route.route]) > SOME_DEMAND * max(route.demand_rps, 1.0)
    ]
    own = [change for change in changes if change[1].route == first.route]
    by_rps, route = max(own or changes, key=lambda change: change[0], default=(0.0, first))
    if by_rps <= 0.0:
        return None
    asked = f"{route.route.cluster} asks for {route.demand_rps:.1f} RPS of {route.route.model}"
    return Cause(str(route.route), by_rps, f"{asked}, {old[route.route]:.1f} {_then(before, after)}")


def _then(before: Snapshot, after: Snapshot) -> str:
    """Say when a number was: of moves told together, each is held against the snapshot that its route was told of."""
    age_ms = after.commit.tick_ms - before.commit.tick_ms
    return "before" if age_ms < TELL_AGE_MS else f"RPS {age_ms / 1000:.0f} s before"


def cause_of(move: RouteMove, before: Snapshot, after: Snapshot) -> str:
    """Give the likeliest cause of a move between two snapshots, in words."""
    route = next(r for r in after.routes if r.route == move.route)
    engines = engine_causes(before, after)
    touched = [engines[name] for name in move.engines if name in engines]
    if touched:
        return max(touched, key=lambda cause: cause.size).sentence
    demand = demand_cause(before, after, route)
    if demand is not None:
        return demand.sentence
    acting = _acting(move, after)
    if acting is not None:
        return acting.sentence
    if engines:
        return max(engines.values(), key=lambda cause: (cause.size, cause.subject)).sentence
    return _solver_words(move, route)


def _acting(move: RouteMove, after: Snapshot) -> Cause | None:
    """Give the strongest protection that holds back an engine of those that lost; None where none does."""
    lost = {name for name, _ in move.lost}
    acting = [
        Cause(p.engine_id, 1.0 - p.factor, f"{p.engine_id}: {p.sentence} ({p.protection})")
        for p in after.commit.protections
        if p.engine_id in lost and 1.0 - p.factor >= SOME
    ]
    return max(acting, key=lambda cause: (cause.size, cause.sentence), default=None)


def _solver_words(move: RouteMove, route: RouteWeights) -> str:
    gained = [name for name, _ in move.gained if name != SHED]
    target = next((t for t in route.targets if t.engine_id in gained[:1]), None)
    if target is not None:
        return f"{target.engine_id}: {target.sentence}"
    return route.sentence
