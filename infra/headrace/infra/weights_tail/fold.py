"""Records of the weights topic -> what a tail shows: snapshots from where it should begin, each against the one before.

    no --since   history is read in silence; at its end the newest snapshot is shown, then every new one
    --since      every snapshot that the topic still holds from there on; compaction has merged older ones

Only what a data plane would install is shown: a set that cannot be proved is a notice, and those that compaction tore
apart at the topic's beginning are not even that.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.infra.weights_tail.since import Since
from headrace.schemas.assembly import Assembled, Refused, SnapshotAssembler
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import RouteWeights, Snapshot


@dataclass(frozen=True, slots=True)
class Shown:
    """A snapshot, and the one shown before it; None where it is the first, so that all of it is new."""

    snapshot: Snapshot
    before: Snapshot | None

    def written(self) -> tuple[RouteWeights, ...]:
        """Give the routes that were written since the snapshot before, in key order."""
        old = {route.route: route for route in self.before.routes} if self.before else {}
        return tuple(route for route in self.snapshot.routes if old.get(route.route) != route)

    def removed(self) -> tuple[str, ...]:
        """Give the routes that are gone since, sorted."""
        if self.before is None:
            return ()
        left = {route.route for route in self.snapshot.routes}
        return tuple(sorted(str(route.route) for route in self.before.routes if route.route not in left))


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell that is no snapshot."""

    sentence: str


class TailFold:
    """Folds the topic's records, in their order.

    Args:
        since: where to begin; None is at the newest.
        passed: takes the snapshots that come before that.
    """

    def __init__(self, since: Since | None, passed: Callable[[Snapshot], None] = lambda _: None) -> None:
        self._since = since
        self._passed = passed
        self._assembler = SnapshotAssembler()
        self._shown: Snapshot | None = None
        self._at_end = False

    def offer(self, record: RawRecord) -> Shown | Notice | None:
        """Take the next record."""
        outcome = self._assembler.offer(record)
        if isinstance(outcome, Assembled):
            if self._is_wanted(outcome.snapshot):
                return self._show(outcome.snapshot)
            self._passed(outcome.snapshot)
            return None
        if isinstance(outcome, Refused) and self._at_end:
            return Notice(f"a snapshot was refused, as every reader would: {'; '.join(outcome.problems[:3])}")
        return None

    def reach_end(self) -> Shown | Notice | None:
        """Take note that the topic has been read to its end; gives what there is to show for it, the first time."""
        if self._at_end:
            return None
        self._at_end = True
        newest = self._assembler.snapshot
        if newest is None:
            return Notice("there is no snapshot yet")
        if self._shown is not None:
            return None
        if self._since is not None:
            return Notice(f"no snapshot since {self._since.text} yet; the newest is version {newest.commit.version}")
        return self._show(newest)

    def _is_wanted(self, snapshot: Snapshot) -> bool:
        return self._at_end if self._since is None else self._since.takes(snapshot.commit)

    def _show(self, snapshot: Snapshot) -> Shown:
        shown = Shown(snapshot, self._shown)
        self._shown = snapshot
        return shown
