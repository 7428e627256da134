"""Whose commit stands last in a topic of snapshots: how a writer that lost the pen knows that a younger one has it.

    (epoch, version) of the last commit > (epoch, version) that this writer sent last  ──►  overtaken

The last one counts, not the highest: a record by another hand, whatever its numbers, to which this writer's own commits
were added since, shows only that the pen was still its own. The version tells where two writers that began within one
second have the same epoch. A commit of the writer's own whose answer was lost is no higher than what it sent.
"""

from dataclasses import dataclass

from headrace.schemas.check_snapshot import check_numbers
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import SnapshotCommit


@dataclass(frozen=True, slots=True, order=True)
class Sent:
    """How far a writer has come: the epoch of its pen, and the newest version that it tried to write."""

    epoch: int
    version: int


class LastCommit:
    """Folds the records of a topic of snapshots, in their order."""

    def __init__(self) -> None:
        self._last: Sent | None = None

    def offer(self, record: RawRecord) -> None:
        """Take the next record; one that is no readable commit, or has numbers out of bounds, counts for nothing."""
        if record.key != COMMIT_KEY or record.value is None:
            return
        commit = decode(SnapshotCommit, record.value, record.headers)
        if not isinstance(commit, Rejected) and not check_numbers(commit):
            self._last = Sent(commit.epoch, commit.version)

    def beyond(self, sent: Sent) -> str | None:
        """Say which commit stands beyond what was sent; None where none does."""
        if self._last is None or self._last <= sent:
            return None
        return (
            f"epoch {self._last.epoch}, version {self._last.version} is the last in the topic; "
            f"this solver came to epoch {sent.epoch}, version {sent.version}"
        )
