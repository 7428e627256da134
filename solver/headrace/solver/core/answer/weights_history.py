"""What the weights topic says so far: the newest epoch and version anybody wrote, the last good snapshot, live keys.

A writer begins where its topic ends: version = newest seen + 1, epoch = the larger of newest seen + 1 and the seconds
of its clock. Both are taken from every record that can be read, committed set or not, so that a number is never used
twice; the clock is for a topic that was lost or made anew, whose readers still remember the epochs it had. A key counts
as live when its last record is no tombstone; one that no snapshot names any more is a leftover, which the new writer
takes away.
"""

from headrace.schemas.assembly import SnapshotAssembler
from headrace.schemas.check_snapshot import check_numbers
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import RouteWeights, SnapshotCommit


class WeightsHistory:
    """Folds the records of the weights topic, in their order."""

    def __init__(self) -> None:
        self.assembler = SnapshotAssembler()
        self.epoch = 0
        self.version = 0
        self._live: set[bytes] = set()

    @property
    def live(self) -> frozenset[bytes]:
        """Keys of routes whose last record is no tombstone."""
        return frozenset(self._live)

    def next_epoch(self, now_ms: int) -> int:
        """Give the epoch of the next writer: above every one seen here, and above those of a topic that was lost."""
        return max(self.epoch + 1, now_ms // 1000)

    def offer(self, record: RawRecord) -> None:
        """Take the next record; one that is unreadable, or has numbers out of bounds, counts only for its key."""
        self.assembler.offer(record)
        if record.key is None:
            return
        if record.value is None:
            self._live.discard(record.key)
            return
        if record.key == COMMIT_KEY:
            decoded: SnapshotCommit | RouteWeights | Rejected = decode(SnapshotCommit, record.value, record.headers)
        else:
            self._live.add(record.key)
            decoded = decode(RouteWeights, record.value, record.headers)
        if not isinstance(decoded, Rejected) and not check_numbers(decoded):
            self.epoch = max(self.epoch, decoded.epoch)
            self.version = max(self.version, decoded.version)
