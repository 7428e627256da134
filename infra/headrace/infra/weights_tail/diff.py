"""What `headrace tail --diff` tells of each snapshot: how much of whose traffic went where, and the likeliest cause.

Held against what was last told of each route, as the table is (`moves`): many small steps are told once they add up. A
move's cause is what else differs between the two snapshots (`causes`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.infra.weights_tail.causes import cause_of
from headrace.infra.weights_tail.fold import Shown
from headrace.infra.weights_tail.moves import MOVED_FROM_PPM
from headrace.infra.weights_tail.route_move import RouteMove, route_move
from headrace.schemas.ids import RouteKey, parse_route_key
from headrace.schemas.weights import PPM, RouteWeights, Snapshot


@dataclass(frozen=True, slots=True)
class Part:
    """One side of a move: an engine, or `!shed`, and the share of the route that it lost or gained, 0..1."""

    engine_id: str
    share: float


@dataclass(frozen=True, slots=True)
class Moved:
    """What one route's traffic did since it was last told: `share` of it, `rps` now, from whom to whom, and why."""

    route: str
    share: float
    rps: float
    lost: tuple[Part, ...]
    gained: tuple[Part, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A snapshot by what moved up to it; the line of `headrace tail --diff --json`."""

    version: int
    epoch: int
    tick_ms: int
    status: str
    sentence: str
    moves: tuple[Moved, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]


class Diff:
    """Folds snapshots, in their order.

    Args:
        wanted: which routes are looked at.
        every: tell every snapshot, and every move however small.
        causes: of how many moves of a snapshot, the largest, the cause is told; None for all. Each costs a comparison
            of two snapshots; the others' causes are empty.
    """

    def __init__(self, wanted: Callable[[RouteKey], bool], *, every: bool = False, causes: int | None = None) -> None:
        self._wanted = wanted
        self._every = every
        self._causes = causes
        self._told: dict[RouteKey, tuple[Snapshot, RouteWeights]] | None = None

    def offer(self, shown: Shown) -> DiffLine | None:
        """Take the next snapshot; gives what there is to tell of it. Of the first one, only that it is there."""
        snapshot, first = shown.snapshot, self._told is None
        told = self._told = {} if self._told is None else self._told
        moves: list[tuple[RouteMove, Snapshot]] = []
        added: list[str] = []
        for route in snapshot.routes:
            if not self._wanted(route.route):
                continue
            last = told.get(route.route)
            if last is None:
                added += [] if first else [str(route.route)]
                told[route.route] = snapshot, route
                continue
            move = route_move(last[1], route)
            if round(PPM * move.share) >= (1 if self._every else MOVED_FROM_PPM):
                moves.append((move, last[0]))
                told[route.route] = snapshot, route
        removed = [key for key in shown.removed() if told.pop(parse_route_key(key.encode()), None) is not None]
        if not (first or moves or added or removed or self._every):
            return None
        commit = snapshot.commit
        moves.sort(key=lambda found: (-found[0].rps, str(found[0].route)))
        return DiffLine(
            version=commit.version,
            epoch=commit.epoch,
            tick_ms=commit.tick_ms,
            status=commit.status.value,
            sentence=commit.sentence,
            moves=tuple(
                _moved(move, cause_of(move, before, snapshot) if self._causes is None or i < self._causes else "")
                for i, (move, before) in enumerate(moves)
            ),
            added=tuple(added),
            removed=tuple(removed),
        )


def _moved(move: RouteMove, cause: str) -> Moved:
    lost, gained = (tuple(Part(*part) for part in side) for side in (move.lost, move.gained))
    return Moved(str(move.route), move.share, move.rps, lost, gained, cause)
