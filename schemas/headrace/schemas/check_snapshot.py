"""What a snapshot must be: run by the writer before it publishes, and again by every reader before it installs.

A reader that refuses a snapshot keeps the last good one; so a fault of the writer never becomes a fault of routing.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter, lt
from typing import Final

from headrace.schemas.codec import encode_body
from headrace.schemas.digest import Summands, add, remove, summand, to_text
from headrace.schemas.ids import identifier_problem
from headrace.schemas.weights import (
    PPM,
    FallbackTarget,
    RouteWeights,
    Snapshot,
    SnapshotCommit,
    SnapshotStatus,
    Target,
)

_INT_MAX: Final = (1 << 31) - 1
_LONG_MAX: Final = (1 << 63) - 1
"""What Avro's int and long hold."""
MAX_NUMBER: Final = 1 << 62
"""The newest epoch or version: the next one still fits a long, so that no record of the topic can stop its writer."""
_NUMBERS: Final = {"epoch": MAX_NUMBER, "version": MAX_NUMBER}
_COMMIT_BOUNDS: Final = {**_NUMBERS, "tick_ms": _LONG_MAX, "period_ms": _LONG_MAX}
_ID, _PPM = attrgetter("engine_id"), attrgetter("weight_ppm")
_ROUTE_BOUNDS: Final = {"tier": _INT_MAX, **_NUMBERS, "shed_ratio": 1, "retry_ratio": 1}


def check_snapshot(
    snapshot: Snapshot, proven: Snapshot | None = None, known: Summands | None = None
) -> tuple[str, ...]:
    """Give every problem of a snapshot as a sentence with value, bound and name; () where it is sound.

    Args:
        snapshot: the one to check.
        proven: a snapshot that has passed. Routes that are the very same objects are not checked again, and the digest
            is brought forward from its own: of 5,000 routes, the few that changed cost anything.
        known: parts of the digest that whoever made the snapshot has reckoned, from these very routes: they are added
            up, and not reckoned again. The bytes themselves are proved where they are sent and read (`assembly`).
    """
    return tuple(_snapshot_problems(snapshot, proven, known or Summands()))


def check_route(route: RouteWeights) -> tuple[str, ...]:
    """Give every problem of one route by itself."""
    return tuple(_route_problems(route))


def check_numbers(record: RouteWeights | SnapshotCommit) -> tuple[str, ...]:
    """Give every problem of a record's epoch and version: one that has any counts for nothing, whatever it says."""
    return tuple(_outside(record, _NUMBERS, "commit." if isinstance(record, SnapshotCommit) else ""))


def _snapshot_problems(snapshot: Snapshot, proven: Snapshot | None, known: Summands) -> Iterator[str]:
    commit = snapshot.commit
    keyed = [(route.key, route) for route in snapshot.routes]
    yield from _commit_problems(commit, [key for key, _ in keyed])
    if proven is not None and proven.commit.epoch != commit.epoch:
        # Another writer's, of another version perhaps: its digest is over bytes that this one would not write.
        proven = None
    fresh, gone = _differences(keyed, () if proven is None else proven.routes)
    # Where more has changed than not, it is less to add all up than to bring the old sum forward.
    anew = proven is None or 2 * len(fresh) > len(keyed)
    total, gone = (0, {}) if proven is None or anew else (int(proven.commit.digest, 16), gone)
    for key, route in keyed if anew else fresh:
        part = known.came.get(key)
        total = add(total, summand(key, encode_body(route)) if part is None else part)
    for _, route in fresh:
        if route.epoch > commit.epoch or route.version > commit.version:
            yield (
                f"{route.route}: epoch {route.epoch} version {route.version} is newer than the commit's "
                f"{commit.epoch}/{commit.version}"
            )
        for problem in _route_problems(route):
            yield f"{route.route}: {problem}"
    for key, route in gone.items():
        part = known.went.get(key)
        total = remove(total, summand(key, encode_body(route)) if part is None else part)
    if to_text(total) != commit.digest:
        yield f"commit.digest is {commit.digest}; the routes give {to_text(total)}"


def _differences(
    keyed: list[tuple[bytes, RouteWeights]], proven: tuple[RouteWeights, ...]
) -> tuple[list[tuple[bytes, RouteWeights]], dict[bytes, RouteWeights]]:
    """Give the routes that are not the very objects that were proven, and the proven ones that are not here."""
    places = min(len(keyed), len(proven))
    # Nearly all are at the place where they were.
    moved = [i for i in range(places) if keyed[i][1] is not proven[i]]
    gone = {route.key: route for route in (*(proven[i] for i in moved), *proven[places:])}
    fresh: list[tuple[bytes, RouteWeights]] = []
    for key, route in (*(keyed[i] for i in moved), *keyed[places:]):
        if gone.get(key) is route:
            del gone[key]
        else:
            fresh.append((key, route))
    return fresh, gone


def _commit_problems(commit: SnapshotCommit, keys: list[bytes]) -> Iterator[str]:
    if commit.status is SnapshotStatus.UNKNOWN:
        yield "commit.status is UNKNOWN"
    yield from _outside(commit, _COMMIT_BOUNDS, "commit.")
    if commit.demand_until_ms is not None and not 0 <= commit.demand_until_ms <= _LONG_MAX:
        yield f"commit.demand_until_ms is {commit.demand_until_ms}; 0 to {_LONG_MAX}"
    if commit.valid_until_ms <= commit.tick_ms:
        yield f"commit.valid_until_ms is {commit.valid_until_ms}, not after tick_ms {commit.tick_ms}"
    if commit.route_count != len(keys):
        yield f"commit.route_count is {commit.route_count}; {len(keys)} routes are here"
    if not all(map(lt, keys, keys[1:])):
        yield "routes are not sorted by key without repeats"


def _route_problems(route: RouteWeights) -> Iterator[str]:
    for name, value in route.route._asdict().items():
        problem = identifier_problem(name, value)
        if problem is not None:
            yield problem
    yield from _outside(route, _ROUTE_BOUNDS)
    if not (math.isfinite(route.demand_rps) and route.demand_rps >= 0):
        yield f"demand_rps is {route.demand_rps}; a finite number of at least 0"
    yield from _shares("targets", route.targets)
    yield from _shares("fallback", route.fallback)
    yield from _shares("failover", route.failover)
    if route.shed_ratio < 1.0 and not any(t.weight_ppm for t in route.targets):
        yield f"no target has a weight, and shed_ratio is {route.shed_ratio}; it must be 1"
    both = {t.engine_id for t in route.targets} & {e.engine_id for e in route.excluded} if route.excluded else None
    if both:
        yield f"{', '.join(sorted(both))} are targets and excluded at once"
    for target in route.targets:
        if not (math.isfinite(target.network_s) and target.network_s >= 0):
            yield f"targets[{target.engine_id}].network_s is {target.network_s}; a finite number of at least 0"
        if target.failover_kept is not None and not 0 <= target.failover_kept <= 1:
            yield f"targets[{target.engine_id}].failover_kept is {target.failover_kept}; 0 to 1"
        if target.headroom is not None and not (math.isfinite(target.headroom) and target.headroom >= 0):
            yield f"targets[{target.engine_id}].headroom is {target.headroom}; a finite number of at least 0"


def _outside(record: object, bounds: Mapping[str, int], prefix: str = "") -> Iterator[str]:
    """Name each field that is not from 0 to its bound."""
    for name, most in bounds.items():
        value = getattr(record, name)
        if not 0 <= value <= most:
            yield f"{prefix}{name} is {value}; 0 to {most}"


def _shares(name: str, shares: Sequence[Target | FallbackTarget]) -> Iterator[str]:
    # In C and without a new object each: a first snapshot of a large fleet has half a million.
    ids, weights = list(map(_ID, shares)), list(map(_PPM, shares))
    if not all(map(lt, ids, ids[1:])):
        yield f"{name} are not sorted by engine without repeats"
    if weights and not (min(weights) >= 0 and max(weights) <= PPM):
        for engine_id, ppm in zip(ids, weights, strict=True):
            if not 0 <= ppm <= PPM:
                yield f"{name}[{engine_id}].weight_ppm is {ppm}; 0 to {PPM}"
    total = sum(weights)
    if total not in (0, PPM):
        yield f"{name} weights add up to {total} ppm; exactly {PPM}, or 0 where all is refused"
