"""The versions held with what belongs to each: numbers, decision record, what moved. Bounded by the timeline's bounds.

Mutable, and one thread at a time: the desk has the lock.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from headrace.infra.console.core.decision import MAX_MOVES, Decision, DecisionLog, decision_log, decision_of
from headrace.infra.console.core.timeline import Bounds, Timeline
from headrace.infra.console.core.totals import Totals, TotalsSeries, totals, totals_series, with_decision
from headrace.infra.weights_tail.diff import Diff, DiffLine
from headrace.infra.weights_tail.fold import Shown
from headrace.schemas.assembly import Assembled, SnapshotAssembler
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import Snapshot

if TYPE_CHECKING:
    from headrace.schemas.ids import RouteKey


class NotHeldError(InvalidInputError):
    """A version that is not held, a snapshot that is not there yet, or a name that nothing held knows."""


class Past:
    """Folds the two logs of the solver, snapshots and decisions, each in its order."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._assembler = SnapshotAssembler()
        self.timeline = Timeline(bounds)
        self._totals: OrderedDict[int, Totals] = OrderedDict()
        self._decisions: OrderedDict[int, Decision] = OrderedDict()
        self._changed: frozenset[RouteKey] = frozenset()
        # Only the routes that were written can have moved: the others need not be held against what they were.
        self._diff = Diff(lambda route: route in self._changed, causes=MAX_MOVES)
        self._told: OrderedDict[int, DiffLine] = OrderedDict()
        self._last: Snapshot | None = None

    @property
    def versions(self) -> int:
        """How many versions are held."""
        return len(self._totals)

    def take_snapshot(self, record: RawRecord) -> bool:
        """Take the next record of the snapshots topic; gives whether it made a new version."""
        outcome = self._assembler.offer(record)
        if not isinstance(outcome, Assembled) or not self.timeline.take(outcome.snapshot, outcome.changed):
            return False
        snapshot, commit = outcome.snapshot, outcome.snapshot.commit
        self._totals[commit.version] = totals(snapshot)
        self._changed = frozenset(route.route for route in snapshot.routes if route.key in outcome.changed)
        told = self._diff.offer(Shown(snapshot, self._last))
        self._told[commit.version] = told or DiffLine(
            commit.version, commit.epoch, commit.tick_ms, commit.status.value, commit.sentence, (), (), ()
        )
        self._last = snapshot
        self._forget()
        return True

    def take_decision(self, record: RawRecord) -> bool:
        """Take the next record of the decisions topic; gives whether it is of the newest version."""
        found = decode(SolveRecord, record.value, record.headers)
        if isinstance(found, Rejected):
            return False
        oldest, newest = self.timeline.oldest, self.timeline.newest
        if oldest is None or found.version >= oldest.version:
            self._decisions[found.version] = decision_of(found)
        while len(self._decisions) > self._bounds.versions:
            self._decisions.popitem(last=False)
        return newest is not None and found.version == newest.version

    def snapshot(self, version: int | None) -> Snapshot:
        """Give the snapshot that stood at a version; the newest for None.

        Raises:
            NotHeldError: it is not held.
        """
        newest, oldest = self.timeline.newest, self.timeline.oldest
        if newest is None or oldest is None or self._last is None:
            raise NotHeldError("console", ("there is no snapshot yet",))
        if version is None or version == newest.version:
            return self._last
        found = self.timeline.at(version) if version < newest.version else None
        if found is None:
            raise NotHeldError("console", (f"version is {version}; held are {oldest.version} to {newest.version}",))
        return found

    def is_newest(self, snapshot: Snapshot) -> bool:
        """Say whether a snapshot is of the newest version."""
        newest = self.timeline.newest
        return newest is not None and snapshot.commit.version == newest.version

    def totals(self, version: int) -> Totals:
        """Give the numbers of a version that is held."""
        return with_decision(self._totals[version], self._decisions.get(version))

    def totals_series(self) -> TotalsSeries:
        """Give the numbers of all versions held."""
        return totals_series(tuple(self._totals.values()), self._decisions)

    def decision_log(self, version: int, limit: int, *, quiet: bool) -> DecisionLog:
        """Give the decision log up to a version."""
        return decision_log(tuple(self._told.values()), self._decisions, version, limit, quiet=quiet)

    def _forget(self) -> None:
        """Let go what belongs to versions that are no longer held."""
        oldest = self.timeline.oldest
        if oldest is None:
            return
        for held in (self._totals, self._told, self._decisions):
            while held and next(iter(held)) < oldest.version:
                held.popitem(last=False)
