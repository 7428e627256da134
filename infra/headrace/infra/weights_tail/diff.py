"""What `headrace tail --diff` tells of each snapshot: how much of whose traffic went where, and the likeliest cause.

Held against what was last told of each route, as the table is (`moves`): many small steps are told once they add up. A
move's cause is what else differs between the two snapshots (`causes`), or came while the route began to move.

Snapshots from before the first one to tell are folded too (`skip`), so that a version moves the same, for the same
cause, wherever a tail begins. A change of status is told with its reason, though nothing moves.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.infra.weights_tail.causes import cause_of
from headrace.infra.weights_tail.fold import Shown
from headrace.infra.weights_tail.moves import MOVED_FROM_PPM
from headrace.infra.weights_tail.route_move import RouteMove, route_move
from headrace.infra.weights_tail.told import Told
from headrace.schemas.ids import RouteKey, parse_route_key
from headrace.schemas.weights import PPM, Snapshot, SnapshotCommit, SnapshotStatus


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
class StatusChange:
    """The status before and now, and why: what made it hold, fall back, or, once it is over, had made it."""

    before: str
    after: str
    sentence: str


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A snapshot by what moved up to it; the line of `headrace tail --diff --json`. `status_change` may be null."""

    version: int
    epoch: int
    tick_ms: int
    status: str
    sentence: str
    moves: tuple[Moved, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    status_change: StatusChange | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """What differs in a snapshot from what was told. A move comes with what it is held against."""

    moves: tuple[tuple[RouteMove, Told], ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    status_change: StatusChange | None


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
        self._told: dict[RouteKey, Told] | None = None
        self._commit: SnapshotCommit | None = None
        self._offered = False

    def skip(self, snapshot: Snapshot) -> None:
        """Take the next snapshot, of which nothing is to be told."""
        self._fold(snapshot)

    def offer(self, shown: Shown) -> DiffLine | None:
        """Take the next snapshot; gives what there is to tell of it. Of the first one, at least that it is there."""
        snapshot, first = shown.snapshot, not self._offered
        self._offered = True
        found = self._fold(snapshot)
        if not (first or found.moves or found.added or found.removed or found.status_change or self._every):
            return None
        commit = snapshot.commit
        return DiffLine(
            version=commit.version,
            epoch=commit.epoch,
            tick_ms=commit.tick_ms,
            status=commit.status.value,
            sentence=commit.sentence,
            moves=tuple(
                _moved(move, self._cause(move, last, snapshot) if self._causes is None or i < self._causes else "")
                for i, (move, last) in enumerate(found.moves)
            ),
            added=found.added,
            removed=found.removed,
            status_change=found.status_change,
        )

    def _fold(self, snapshot: Snapshot) -> _Found:
        first = self._told is None
        told = self._told = {} if self._told is None else self._told
        moves: list[tuple[RouteMove, Told]] = []
        added: list[str] = []
        for route in snapshot.routes:
            if not self._wanted(route.route):
                continue
            last = told.get(route.route)
            if last is None:
                added += [] if first else [str(route.route)]
                told[route.route] = Told(snapshot, route)
                continue
            move = route_move(last.route, route)
            if round(PPM * move.share) >= (1 if self._every else MOVED_FROM_PPM):
                moves.append((move, last))
                told[route.route] = last.moved(snapshot, route)
        gone = sorted(str(route) for route in told.keys() - {route.route for route in snapshot.routes})
        for key in gone:
            del told[parse_route_key(key.encode())]
        moves.sort(key=lambda found: (-found[0].rps, str(found[0].route)))
        last_commit, self._commit = self._commit, snapshot.commit
        return _Found(tuple(moves), tuple(added), tuple(gone), _status_change(last_commit, snapshot.commit))

    def _cause(self, move: RouteMove, last: Told, snapshot: Snapshot) -> str:
        return cause_of(move, last.snapshot, snapshot, last.earlier(snapshot.commit.tick_ms))


def _status_change(before: SnapshotCommit | None, after: SnapshotCommit) -> StatusChange | None:
    if before is None or before.status is after.status:
        return None
    # Of a status that is over, what it was for; of one that begins, what it is for.
    over = after.status is SnapshotStatus.OPTIMAL
    sentence = f"it is over: {before.sentence}" if over else after.sentence
    return StatusChange(before.status.value, after.status.value, sentence)


def _moved(move: RouteMove, cause: str) -> Moved:
    lost, gained = (tuple(Part(*part) for part in side) for side in (move.lost, move.gained))
    return Moved(str(move.route), move.share, move.rps, lost, gained, cause)
