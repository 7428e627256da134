"""Records of the weights topic -> snapshots: routes are staged, a commit installs them, a digest proves the set.

    route v7 ─┐
    route v7 ─┼─ staged ──► !commit v7 ──► digest equal? ── yes ──► Assembled
    (absent)  ┘                                          └─ no ───► Refused, the last good one stays

Nothing is visible before its commit, so no reader sees half a snapshot. A record or commit of an older epoch than the
newest seen is ignored: a fenced writer's leftovers change nothing. The first snapshot of an epoch writes every route,
so a reader that refused one is whole again with the next epoch at the latest.

The fold is mutable inside for speed; what it hands out is immutable.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.schemas.check_snapshot import check_numbers, check_route
from headrace.schemas.codec import body_of, decode, encode_body
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.digest import add, remove, summand, to_text
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import RouteWeights, Snapshot, SnapshotCommit


@dataclass(frozen=True, slots=True)
class Assembled:
    """A whole, checked snapshot, and the keys of the routes that differ from the one before."""

    snapshot: Snapshot
    changed: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Refused:
    """A commit whose set could not be proved, or a record that cannot be read; the last good snapshot stays."""

    problems: tuple[str, ...]
    epoch: int | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Ignored:
    """A record of an older epoch or version than the newest commit."""

    sentence: str


@dataclass(frozen=True, slots=True)
class _Staged:
    """A route that waits for its commit, and its part of the digest: of its bytes as its writer wrote them.

    The writer may be of another version, whose schema has a field less; written again, it would have other bytes.
    """

    route: RouteWeights
    summand: int


class SnapshotAssembler:
    """Folds weights records, in their order, into snapshots."""

    def __init__(self) -> None:
        self._routes: dict[bytes, RouteWeights] = {}
        self._digests: dict[bytes, int] = {}
        self._total = 0
        self._staged: dict[bytes, _Staged | None] = {}
        self._changed: set[bytes] = set()
        self._commit: SnapshotCommit | None = None
        self._good: Snapshot | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The last good snapshot; None before the first."""
        return self._good

    def offer(self, record: RawRecord) -> Assembled | Refused | Ignored | None:
        """Take the next record of the topic; None where it only waits for its commit."""
        if record.key is None:
            return Refused((f"offset {record.offset} has no key",))
        if record.key == COMMIT_KEY:
            return self._offer_commit(record)
        if record.value is None:
            self._staged[record.key] = None
            return None
        route = decode(RouteWeights, record.value, record.headers)
        if isinstance(route, Rejected):
            return Refused((f"offset {record.offset}: {route.reason}: {route.detail}",))
        if route.key != record.key:
            return Refused((f"offset {record.offset}: key is {record.key!r}; the record is for {route.key!r}",))
        problems = check_route(route)
        if problems:
            return Refused(tuple(f"{route.route}: {problem}" for problem in problems), route.epoch, route.version)
        if self._commit is not None and route.epoch < self._commit.epoch:
            return Ignored(f"{route.route}: epoch {route.epoch} is older than {self._commit.epoch}")
        body = body_of(record.value or b"", record.headers)
        self._staged[record.key] = _Staged(route, summand(record.key, body))
        return None

    def _offer_commit(self, record: RawRecord) -> Assembled | Refused | Ignored:
        commit = decode(SnapshotCommit, record.value, record.headers)
        if isinstance(commit, Rejected):
            return Refused((f"offset {record.offset}: {commit.reason}: {commit.detail}",))
        problems = check_numbers(commit)
        if problems:  # before it counts as the newest: no sound commit could follow it
            return Refused(problems, commit.epoch, commit.version)
        if self._commit is not None and (commit.epoch, commit.version) <= (self._commit.epoch, self._commit.version):
            return Ignored(f"commit {commit.epoch}/{commit.version} is not newer than the last one")
        self._commit = commit
        self._apply_staged(commit)
        problems = self._problems(commit)
        if problems:
            return Refused(problems, commit.epoch, commit.version)
        self._good = Snapshot(commit, tuple(self._routes[key] for key in sorted(self._routes)))
        changed, self._changed = frozenset(self._changed), set()
        return Assembled(self._good, changed)

    def _apply_staged(self, commit: SnapshotCommit) -> None:
        waiting: dict[bytes, _Staged | None] = {}
        for key, staged in self._staged.items():
            if staged is not None and (staged.route.epoch > commit.epoch or staged.route.version > commit.version):
                waiting[key] = staged
            else:
                self._put(key, staged)
        self._staged = waiting

    def _put(self, key: bytes, staged: "_Staged | None") -> None:
        if key in self._digests:
            self._total = remove(self._total, self._digests.pop(key))
            del self._routes[key]
        if staged is not None:
            self._digests[key] = staged.summand
            self._total = add(self._total, staged.summand)
            self._routes[key] = staged.route
        self._changed.add(key)

    def _problems(self, commit: SnapshotCommit) -> tuple[str, ...]:
        problems: list[str] = []
        if commit.route_count != len(self._routes):
            problems.append(f"commit.route_count is {commit.route_count}; {len(self._routes)} routes are here")
        if commit.digest != to_text(self._total):
            problems.append(f"commit.digest is {commit.digest}; the routes give {to_text(self._total)}")
        if commit.valid_until_ms <= commit.tick_ms:
            problems.append(f"commit.valid_until_ms is {commit.valid_until_ms}, not after tick_ms {commit.tick_ms}")
        return tuple(problems)


def digest_of(routes: Mapping[bytes, RouteWeights]) -> str:
    """Give the digest that a commit over exactly these routes carries."""
    total = 0
    for part in summands_of(routes).values():
        total = add(total, part)
    return to_text(total)


def summands_of(routes: Mapping[bytes, RouteWeights]) -> dict[bytes, int]:
    """Give each route's part of a digest."""
    return {key: summand(key, encode_body(route)) for key, route in routes.items()}
