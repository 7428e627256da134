"""A diff for people: a line a snapshot, a line a route that moved, and with `explain` the reasons of its engines."""

from collections.abc import Iterator
from datetime import UTC, datetime

from headrace.infra.demo.movement import SHED
from headrace.infra.weights_tail.diff import DiffLine, Moved
from headrace.infra.weights_tail.route_move import RouteMove, move_words
from headrace.schemas.ids import parse_route_key
from headrace.schemas.weights import PPM, Snapshot

MAX_ROUTES = 20
MAX_ENGINES = 8


def diff_lines(told: DiffLine, snapshot: Snapshot | None = None) -> Iterator[str]:
    """Give the lines; where the snapshot is given, with the reasons that stand in it."""
    at = datetime.fromtimestamp(told.tick_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    yield f"{at} version {told.version}, {told.status}: {told.sentence}"
    if told.status_change is not None:
        change = told.status_change
        yield f"  status {change.before} -> {change.after}: {change.sentence}"
    for moved in told.moves[:MAX_ROUTES]:
        yield f"  {moved.route}: {move_words(_move(moved))}; {moved.cause}"
        if snapshot is not None:
            yield from _reasons(moved, snapshot)
    if len(told.moves) > MAX_ROUTES:
        yield f"  and {len(told.moves) - MAX_ROUTES} more routes, {sum(m.rps for m in told.moves[MAX_ROUTES:]):.1f} RPS"
    for word, routes in (("new", told.added), ("gone", told.removed)):
        for route in routes[:MAX_ROUTES]:
            yield f"  {route}: {word}"


def _move(moved: Moved) -> RouteMove:
    lost, gained = (tuple((part.engine_id, part.share) for part in side) for side in (moved.lost, moved.gained))
    return RouteMove(parse_route_key(moved.route.encode()), moved.share, moved.rps, lost, gained)


def _reasons(moved: Moved, snapshot: Snapshot) -> Iterator[str]:
    """Say why each engine of the move has what it has now, what acted on it, and what the route pays."""
    route = next(r for r in snapshot.routes if str(r.route) == moved.route)
    names = [part.engine_id for part in (*moved.lost, *moved.gained) if part.engine_id != SHED][:MAX_ENGINES]
    targets = {target.engine_id: target for target in route.targets}
    out = {excluded.engine_id: excluded for excluded in route.excluded}
    for name in names:
        if name in targets:
            yield f"    {name} {100 * targets[name].weight_ppm / PPM:.2f} %: {targets[name].sentence}"
        elif name in out:
            yield f"    {name} out: {out[name].reason}, {out[name].sentence}"
        for acted in snapshot.commit.protections:
            if acted.engine_id == name:
                yield f"      {acted.protection} x{acted.factor:.2f}: {acted.sentence}"
    yield f"    {route.sentence}"
