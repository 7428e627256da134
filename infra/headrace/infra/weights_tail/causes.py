"""Why traffic moved between two snapshots: what else differs between them, and which of it is the likeliest cause.

    facts    engine out or back            its capacity, RPS
             capacity counted              |after - before|                load of all routes / utilisation
             protection began, ended       |factor after - before| x its capacity
             demand                        |after - before|; the route's own before that of others
    hints    trim                          |speed after - before| x its capacity

A cause points the way of the move: an engine that loses became worse, one that gains better, and what is shed for
demand is shed for more of it. The greatest fact is told, one of an engine that the move does not touch, or of another's
demand, at half its size; else the greatest hint of an engine of the move; else what still holds back an engine that
lost: weights may follow what acts for several ticks; else what the solver says of the engine that gained most. That an
operator pinned an engine of the move, or took a pin back, comes before all. Differences below `SOME` are noise.
Pure: two snapshots in, words out; whatever protections a snapshot carries are told, by their own sentences.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from headrace.infra.demo.movement import SHED
from headrace.infra.weights_tail.route_move import RouteMove
from headrace.schemas.weights import PPM, Excluded, Protected, Reason, RouteWeights, Snapshot, SnapshotCommit
from headrace.solver.core.answer.pinned import PIN

SOME = 0.05
SOME_DEMAND = 0.1
SOME_CAPACITY = 0.1
"""A route that stayed keeps the utilisation that was true when it was written, so capacity is read with more room."""
SAME_PRICE = 1e-9
FARTHER = 0.5
"""What a difference elsewhere counts beside one of the move itself."""
TELL_AGE_MS = 2_000
"""Between a tick and the next, "before" says enough."""
TRIM = "trim"
"""Scales latencies and no capacity: above 1 is slower. All other protections scale capacity."""
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
    """One difference of an engine. `rps` is its size; `better` whether it can do more for it, None where that is open.

    `said` is an operator's word; a `hint` moves no capacity.
    """

    subject: str
    rps: float
    better: bool | None
    sentence: str
    said: bool = False
    hint: bool = False


def out_of_all(snapshot: Snapshot) -> Mapping[str, Excluded]:
    """Give the engines that no route may use, for a reason of their own, by id."""
    return {e.engine_id: e for route in snapshot.routes for e in route.excluded if e.reason in GONE}


def loads_rps(snapshot: Snapshot) -> Mapping[str, float]:
    """Give the load that a snapshot plans for each engine with traffic."""
    load: dict[str, float] = {}
    for route in snapshot.routes:
        served = route.demand_rps * (1.0 - route.shed_ratio)
        for target in route.targets:
            load[target.engine_id] = load.get(target.engine_id, 0.0) + served * target.weight_ppm / PPM
    return load


def counted_rps(snapshot: Snapshot) -> Mapping[str, float]:
    """Give the capacity that the solver counted of each engine with traffic: its load over its utilisation.

    Of no engine where classes are of unlike work: requests would then be read as capacity, and another mix of them as
    more or less of it.
    """
    if _is_of_unlike_work(snapshot):
        return {}
    load = loads_rps(snapshot)
    used: dict[str, tuple[int, float]] = {}
    for route in snapshot.routes:
        for target in route.targets:
            if target.utilisation is not None and used.get(target.engine_id, (-1, 0.0))[0] < route.version:
                used[target.engine_id] = route.version, target.utilisation
    return {name: load[name] / share for name, (_, share) in used.items() if share > 0.0 and load[name] > 0.0}


def _is_of_unlike_work(snapshot: Snapshot) -> bool:
    """Say whether requests of two classes cost one engine unlike prices, told in one tick: each pays for its work."""
    told: dict[tuple[str, int], tuple[str, float]] = {}
    for route in snapshot.routes:
        for target in route.targets:
            price = target.engine_price_ms
            if price is None:
                continue
            name, first = told.setdefault((target.engine_id, route.version), (route.request_class, price))
            if name != route.request_class and abs(price - first) > SAME_PRICE * abs(first):
                return True
    return False


def protections_of(commit: SnapshotCommit) -> Mapping[tuple[str, str], Protected]:
    """Give a commit's protections by (engine, protection)."""
    return {(p.engine_id, p.protection): p for p in commit.protections}


def ended_words(engine_id: str, protection: str) -> str:
    """Say that a protection of an engine has ended."""
    if protection == PIN:
        return f"{engine_id}: its pin has ended"
    if protection == TRIM:
        return f"{engine_id}: as fast as its profile says again ({TRIM})"
    return f"{engine_id}: {protection} no longer holds it back"


def engine_causes(before: Snapshot, after: Snapshot) -> tuple[Cause, ...]:
    """Give what differs of the engines, facts and hints."""
    old, new = counted_rps(before), counted_rps(after)
    was, now = loads_rps(before), loads_rps(after)

    def size(name: str) -> float:
        known = max(old.get(name, 0.0), new.get(name, 0.0))
        return known or max(was.get(name, 0.0), now.get(name, 0.0))

    found: list[Cause] = []
    was_out, is_out = out_of_all(before), out_of_all(after)
    for name in sorted(is_out.keys() - was_out.keys()):
        out = f"{name} is out: {is_out[name].reason}, {is_out[name].sentence}"
        found.append(Cause(name, size(name), better=False, sentence=out))
    back = sorted(was_out.keys() - is_out.keys())
    found += [Cause(name, size(name), better=True, sentence=f"{name} is back") for name in back]
    protections = [c for c in _protection_causes(before, after, size_of=size) if c.subject not in is_out]
    found += protections
    for name in sorted(old.keys() & new.keys()):
        by = abs(new[name] - old[name])
        if by < SOME_CAPACITY * max(new[name], old[name]):
            continue
        better = new[name] > old[name]
        # A protection that accounts for most of it says more than the number does.
        if any(c.subject == name and not c.hint and c.better is better and c.rps >= by / 2 for c in protections):
            continue
        sentence = f"{name} counts {new[name]:.0f} RPS of capacity, {old[name]:.0f} {_then(before, after)}"
        found.append(Cause(name, by, better, sentence))
    return tuple(found)


def _protection_causes(before: Snapshot, after: Snapshot, size_of: Callable[[str], float]) -> Iterator[Cause]:
    old, new = protections_of(before.commit), protections_of(after.commit)
    for key in sorted(old.keys() | new.keys()):
        engine_id, protection = key
        was, now = (_speed(each.get(key)) for each in (old, new))
        sentence = f"{engine_id}: {new[key].sentence} ({protection})" if key in new else ended_words(*key)
        # An operator's word scales nothing; that it came, went or was changed is all there is to it.
        if protection == PIN and (key not in old or key not in new or old[key].sentence != new[key].sentence):
            yield Cause(engine_id, size_of(engine_id), None, sentence, said=True)
        elif abs(now - was) >= SOME:
            rps = abs(now - was) * size_of(engine_id)
            yield Cause(engine_id, rps, now > was, sentence, hint=protection == TRIM)


def _speed(acting: Protected | None) -> float:
    """Give what a protection leaves of an engine, as a factor of which more is better."""
    if acting is None:
        return 1.0
    return 1.0 / max(acting.factor, 1e-6) if acting.protection == TRIM else acting.factor


def demand_cause(before: Snapshot, after: Snapshot, move: RouteMove) -> Cause | None:
    """Give the demand that changed most: of the move's route, else of all; None where none did that explains it."""
    old = {route.route: route.demand_rps for route in before.routes}
    more = _shed_more(move)
    changes = [
        (abs(route.demand_rps - old[route.route]), route)
        for route in after.routes
        if route.route in old
        and abs(route.demand_rps - old[route.route]) > SOME_DEMAND * max(route.demand_rps, 1.0)
        and more in (None, route.demand_rps > old[route.route])
    ]
    own = [change for change in changes if change[1].route == move.route]
    if not changes:
        return None
    by_rps, route = max(own or changes, key=lambda change: change[0])
    asked = f"{route.route.cluster} asks for {route.demand_rps:.1f} RPS of {route.route.model}"
    sentence = f"{asked}, {old[route.route]:.1f} {_then(before, after)}"
    return Cause(str(route.route), by_rps if own else FARTHER * by_rps, None, sentence)


def _shed_more(move: RouteMove) -> bool | None:
    """Say whether the move sheds more, or less; None where it sheds as before."""
    if any(name == SHED for name, _ in move.gained):
        return True
    return False if any(name == SHED for name, _ in move.lost) else None


def _then(before: Snapshot, after: Snapshot) -> str:
    """Say when a number was: of moves told together, each is held against the snapshot that its route was told of."""
    age_ms = after.commit.tick_ms - before.commit.tick_ms
    return "before" if age_ms < TELL_AGE_MS else f"RPS {age_ms / 1000:.0f} s before"


def cause_of(move: RouteMove, before: Snapshot, after: Snapshot, earlier: Snapshot | None = None) -> str:
    """Give the likeliest cause of a move between two snapshots, in words.

    Args:
        move: what the route did.
        before: the snapshot that it is held against.
        after: the snapshot that it is a move of.
        earlier: where the route began to move, if it has moved up to `before`: a fact that came in between still acts.
    """
    facts = _fact(move, before, after)
    if facts is None and earlier is not None:
        facts = _fact(move, earlier, after)
    if facts is not None:
        return facts.sentence
    hints = [c for c in engine_causes(before, after) if c.hint and c.subject in move.engines and _explains(c, move)]
    if hints:
        return _greatest(hints).sentence
    acting = _acting(move, after)
    if acting is not None:
        return acting.sentence
    return _solver_words(move, next(r for r in after.routes if r.route == move.route))


def _fact(move: RouteMove, before: Snapshot, after: Snapshot) -> Cause | None:
    """Give the greatest fact that explains a move; None where there is none."""
    facts: list[Cause] = []
    for cause in engine_causes(before, after):
        touched = cause.subject in move.engines
        if cause.said and touched:
            return cause
        if not cause.hint and not cause.said and _explains(cause, move):
            facts.append(cause if touched else replace(cause, rps=FARTHER * cause.rps))
    demand = demand_cause(before, after, move)
    return _greatest([*facts, demand] if demand is not None else facts) if facts or demand is not None else None


def _explains(cause: Cause, move: RouteMove) -> bool:
    """Say whether a cause points the way of a move."""
    if cause.better is None:
        return True
    if cause.subject in move.engines:
        side = move.gained if cause.better else move.lost
        return any(name == cause.subject for name, _ in side)
    return _shed_more(move) in (None, not cause.better)


def _greatest(causes: list[Cause]) -> Cause:
    return max(causes, key=lambda cause: (cause.rps, cause.subject, cause.sentence))


def _acting(move: RouteMove, after: Snapshot) -> Cause | None:
    """Give the strongest protection that holds back an engine of those that lost; None where none does."""
    lost = {name for name, _ in move.lost}
    acting = [
        Cause(p.engine_id, 1.0 - _speed(p), better=False, sentence=f"{p.engine_id}: {p.sentence} ({p.protection})")
        for p in after.commit.protections
        if p.engine_id in lost and 1.0 - _speed(p) >= SOME
    ]
    return _greatest(acting) if acting else None


def _solver_words(move: RouteMove, route: RouteWeights) -> str:
    gained = [name for name, _ in move.gained if name != SHED]
    target = next((t for t in route.targets if t.engine_id in gained[:1]), None)
    if target is not None:
        return f"{target.engine_id}: {target.sentence}"
    return route.sentence
