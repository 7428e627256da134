"""A tick in one line of words, for the log: what moved and why, what is shed, what protected whom, which rung answered.

version 812: 3 routes, 250 RPS planned of 280 RPS capacity, moved 36.9 RPS, most of tokyo|m|default: 41 % from engine-b
    to engine-c (engine-b: silent for 16.0 s); trim 2, outlier 1; optimal by DUAL in 3 ms
"""

from collections import Counter

from headrace.schemas.decisions import SolveRecord
from headrace.schemas.weights import PPM, RouteWeights, Snapshot, SnapshotStatus
from headrace.solver.core.shed_of import shed_of
from headrace.solver.core.tick import Tick

MOVED_LITTLE = 0.005
"""Share of the demand below which a move is not worth naming."""
SHED = "shedding"


def everything_is_refused(record: SolveRecord) -> bool:
    """Say whether something was asked for and none of it is served."""
    return 0.0 < record.demand_rps <= record.shed_rps * (1.0 + 1e-9)


def moved_little(record: SolveRecord) -> bool:
    """Say whether less than MOVED_LITTLE of the traffic goes elsewhere than before."""
    return record.moved_rps < MOVED_LITTLE * record.demand_rps


def tick_line(tick: Tick, previous: Snapshot | None, took_us: int) -> str:
    """Say what a tick came to.

    Args:
        tick: what was published.
        previous: the snapshot before it.
        took_us: how long the decision took.
    """
    record, commit, count = tick.record, tick.snapshot.commit, len(tick.snapshot.routes)
    head = f"version {record.version}: {count} route{'' if count == 1 else 's'}"
    if tick.decision is None and commit.status is SnapshotStatus.HELD:
        return f"{head} held as they were: {record.sentence}"
    planned = f"{record.demand_rps - record.shed_rps:.0f} RPS planned"
    parts = [head, f"{planned}{_as_work(tick)} of {record.capacity_rps:.0f} RPS capacity"]
    if record.shed_rps > 0.0:
        parts.append(f"{record.shed_rps:.1f} RPS shed{_whose(tick)}")
    parts.append(f"moved {record.moved_rps:.1f} RPS{_greatest(tick, previous)}")
    acted = Counter(each.protection for each in commit.protections)
    said = f"; {', '.join(f'{name} {number}' for name, number in sorted(acted.items()))}" if acted else ""
    return f"{', '.join(parts)}{said}; {record.status.lower()} by {record.rung} in {took_us / 1000:.0f} ms"


def _as_work(tick: Tick) -> str:
    """Say how much of capacity it is, where that is not so many requests."""
    if tick.decision is None or bool((tick.decision.layout.row_work == 1.0).all()):
        return ""
    return f", as much work as {float(tick.decision.plan.load.sum()):.0f}"


def _whose(tick: Tick) -> str:
    """Name the classes that are shed, where it is not all of them."""
    shed = Counter[str]()
    for route, rps in shed_of(tick):
        shed[route.request_class] += round(1000 * rps)
    named = [f"{name} {mrps / 1000:.1f}" for name, mrps in shed.most_common(3) if mrps]
    return f" ({', '.join(named)})" if len(shed) > 1 and named else ""


def _greatest(tick: Tick, previous: Snapshot | None) -> str:
    """Name the greatest move of a route that was there before, and the reason that stands beside it."""
    if previous is None or moved_little(tick.record):
        return ""
    new = {tuple(route.route): route for route in tick.snapshot.routes if route.version == tick.record.version}
    moves = [
        (_distance(old, route) * route.demand_rps, tuple(route.route), old, route)
        for old in previous.routes
        if (route := new.get((old.cluster, old.model, old.request_class))) is not None
    ]
    if not moves:
        return ""
    rps, _, old, route = max(moves, key=lambda move: move[:2])
    if rps <= 0.0:
        return ""
    change = _change(old, route)
    lost, gained = min(change, key=lambda n: (change[n], n)), max(change, key=lambda n: (change[n], n))
    share = 100 * _distance(old, route)
    why = _why(route, lost, gained)
    return f", most of {route.route}: {share:.0f} % from {lost} to {gained}{why}"


def _why(route: RouteWeights, lost: str, gained: str) -> str:
    out = next((each.sentence for each in route.excluded if each.engine_id == lost), None)
    if out is not None:
        return f" ({lost}: {out})"
    found = next((target.sentence for target in route.targets if target.engine_id == gained), None)
    return f" ({gained}: {found})" if found else ""


def _change(before: RouteWeights, after: RouteWeights) -> dict[str, float]:
    """Give by how much each engine's share of a route grew; what is shed is an engine here."""
    change = {name: -share for name, share in _shares(before).items()}
    for name, share in _shares(after).items():
        change[name] = change.get(name, 0.0) + share
    return change


def _distance(before: RouteWeights, after: RouteWeights) -> float:
    return sum(abs(by) for by in _change(before, after).values()) / 2


def _shares(route: RouteWeights) -> dict[str, float]:
    kept = 1.0 - route.shed_ratio
    return {t.engine_id: kept * t.weight_ppm / PPM for t in route.targets if t.weight_ppm} | {SHED: route.shed_ratio}
