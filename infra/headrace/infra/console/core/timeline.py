"""The versions held: each route's records by version, so that a version costs only what it changed. Bounded.

    route A   v1 ───────── v4 ──────────────── v9
    route B   v1 ── v2 ─────────── v6
    at(5)     A of v4, B of v2, and the commit of v5

Memory is bounded twice, by versions and by parts (targets, exclusions and protections); what is over goes oldest first.
The fold is mutable inside for speed; what it hands out is immutable.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import RouteWeights, Snapshot, SnapshotCommit


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is held: versions, and parts of routes and commits (some 600 bytes each)."""

    versions: int
    parts: int


class Timeline:
    """Folds snapshots, in their order."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._commits: deque[SnapshotCommit] = deque()
        self._routes: dict[bytes, list[tuple[int, RouteWeights | None]]] = {}
        self._superseded: deque[tuple[int, bytes]] = deque()
        self._parts = 0

    @property
    def newest(self) -> SnapshotCommit | None:
        """The commit of the newest version; None before the first."""
        return self._commits[-1] if self._commits else None

    @property
    def oldest(self) -> SnapshotCommit | None:
        """The commit of the oldest version held; None before the first."""
        return self._commits[0] if self._commits else None

    @property
    def parts(self) -> int:
        """How many parts are held."""
        return self._parts

    def commits(self) -> Sequence[SnapshotCommit]:
        """Give the commits held, oldest first."""
        return tuple(self._commits)

    def take(self, snapshot: Snapshot, changed: Iterable[bytes]) -> bool:
        """Take the next snapshot; `changed` are the keys of the routes that differ from the one before.

        Gives whether it was taken: a version that is not newer than the newest held is not.
        """
        commit, last = snapshot.commit, self.newest
        if last is not None and commit.version <= last.version:
            return False
        protections = commit.protections
        if last is not None and last.protections == protections:
            protections = last.protections  # one tuple for as long as it stands
        else:
            self._parts += len(protections)
        self._commits.append(replace(commit, protections=protections, remembered=(), inputs=(), changed=()))
        now = {route.key: route for route in snapshot.routes}
        for key in now.keys() if last is None else changed:
            self._put(key, commit.version, now.get(key))
        self._forget()
        return True

    def at(self, version: int | None = None) -> Snapshot | None:
        """Give the snapshot that stood at a version, the newest for None; None where that is not held."""
        commit = self.commit_at(version)
        if commit is None:
            return None
        found = (self._route_at(records, commit.version) for _, records in sorted(self._routes.items()))
        return Snapshot(commit, tuple(route for route in found if route is not None))

    def commit_at(self, version: int | None = None) -> SnapshotCommit | None:
        """Give the commit that stood at a version: its own, or the last one before where versions are missing."""
        if not self._commits or version is None:
            return self.newest
        place = bisect_right(self._commits, version, key=lambda commit: commit.version)
        return self._commits[place - 1] if place else None

    def history(self, route: RouteKey) -> Sequence[tuple[int, RouteWeights | None]]:
        """Give a route's records by the version that they came with, oldest first; None is where it went."""
        return tuple(self._routes.get(route.encode(), ()))

    def _put(self, key: bytes, version: int, route: RouteWeights | None) -> None:
        records = self._routes.setdefault(key, [])
        if records or route is None:
            self._superseded.append((version, key))
        records.append((version, route))
        self._parts += _parts(route)

    def _forget(self) -> None:
        bounds = self._bounds
        while len(self._commits) > 1 and (len(self._commits) > bounds.versions or self._parts > bounds.parts):
            gone = self._commits.popleft()
            if gone.protections is not self._commits[0].protections:
                self._parts -= len(gone.protections)
            oldest = self._commits[0].version
            while self._superseded and self._superseded[0][0] <= oldest:
                self._drop_before(self._superseded.popleft()[1], oldest)

    def _drop_before(self, key: bytes, oldest: int) -> None:
        records = self._routes.get(key)
        if records is None:
            return
        while len(records) > 1 and records[1][0] <= oldest:
            self._parts -= _parts(records.pop(0)[1])
        if len(records) == 1 and records[0][1] is None and records[0][0] <= oldest:
            del self._routes[key]

    @staticmethod
    def _route_at(records: Sequence[tuple[int, RouteWeights | None]], version: int) -> RouteWeights | None:
        place = bisect_right(records, version, key=lambda record: record[0])
        return records[place - 1][1] if place else None


def _parts(route: RouteWeights | None) -> int:
    return 0 if route is None else 1 + len(route.targets) + len(route.excluded) + len(route.fallback)
