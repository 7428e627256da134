"""What stood in the input topics when a tick was made: the newest sound record of each key below the tick's offsets.

    at(offsets)   ──forward──►  records are folded as the live solver folded them
                  ◄──back─────  a new writer may have read a little less than the one before: the last few are undone

Each partition is proved as it goes: the digest of what was folded against the one that the tick's record holds.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from headrace.replay.core.history import Finding, Found, HistoryError, Place
from headrace.schemas.codec import SchemaSource
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import Topic
from headrace.schemas.weights import InputOffsets
from headrace.solver.core.inputs.digests import LogDigests
from headrace.solver.core.inputs.state_view import INPUT_ROLES, StateFold, StateView

MAX_UNDONE = 4_096
"""Records of a partition that can be undone: what one writer may have read more than the next."""
MAX_KEYS_TOLD = 5

_Undo = tuple[RawRecord, RawRecord | None, RawRecord | None]
"""A record that was folded, the newest one of its key before, and the newest sound one."""


class Partition:
    """One input partition, read up to some offset."""

    def __init__(self, records: Iterator[RawRecord]) -> None:
        self._records = records
        self._waiting: deque[RawRecord] = deque()
        self.undo: deque[_Undo] = deque(maxlen=MAX_UNDONE)
        self.next = 0

    def below(self, offset: int) -> Iterator[RawRecord]:
        """Take the records up to an offset."""
        while True:
            if not self._waiting:
                record = next(self._records, None)
                if record is None:
                    break
                self._waiting.append(record)
            if self._waiting[0].offset >= offset:
                break
            yield self._waiting.popleft()
        self.next = offset

    def undone(self, offset: int) -> Iterator[_Undo]:
        """Give back the records from an offset on, newest first.

        Raises:
            HistoryError: more are to be undone than are remembered.
        """
        while self.undo and self.undo[-1][0].offset >= offset:
            undo = self.undo.pop()
            self._waiting.appendleft(undo[0])
            yield undo
        if not self.undo and self._waiting and offset < self.next - MAX_UNDONE:
            raise HistoryError(f"a tick had read {self.next - offset} records less than the one before; cannot go back")
        self.next = offset


class Standing:
    """The input topics as a tick saw them. Ticks are asked for in the order of their versions."""

    def __init__(
        self,
        topics: Mapping[str, Topic],
        partitions: Mapping[Place, Iterator[RawRecord]],
        registry: SchemaSource | None = None,
    ) -> None:
        self._names = tuple(topics[role].name for role in INPUT_ROLES)
        self._fold = StateFold(topics, registry)
        self._digests = LogDigests()
        self._partitions = {place: Partition(records) for place, records in partitions.items()}
        self._newest: dict[Place, dict[bytes, RawRecord]] = {}
        self._sound: dict[Place, dict[bytes, RawRecord]] = {}
        self._rejected: dict[Place, tuple[int, str]] = {}

    def at(self, inputs: Sequence[InputOffsets]) -> StateView:
        """Give what stood at these offsets; topics are those of INPUT_ROLES, in that order, under whatever name.

        Raises:
            HistoryError: the offsets are not of the solver's inputs.
        """
        if len(inputs) != len(self._names):
            raise HistoryError(f"a tick names {len(inputs)} input topics; a solver has {len(self._names)}")
        for name, each in zip(self._names, inputs, strict=True):
            for number, offset in enumerate(each.offsets):
                self._move((name, number), offset)
        return self._fold.view(tuple(inputs))

    def digests(self, inputs: Sequence[InputOffsets]) -> Mapping[Place, int]:
        """Give the digest of each partition as it stands."""
        ours = [InputOffsets(name, each.offsets) for name, each in zip(self._names, inputs, strict=True)]
        found = self._digests.digests(ours)
        return {(each.topic, number): value for each in found for number, value in enumerate(each.digests)}

    def read_since(self, place: Place, offset: int, to: int) -> str:
        """Name the newest records of a partition from an offset on: those that a proof has found to be others."""
        recent = [undo[0] for undo in self._partitions[place].undo] if place in self._partitions else []
        found = [record for record in recent if record.offset >= offset]
        keys = sorted({(record.key or b"").decode("utf-8", "replace") for record in found})
        where = f"{place[0]}[{place[1]}]"
        if not found:
            return f"{where}: records up to offset {to} are missing or not those that the solver read"
        more = f" and {len(keys) - MAX_KEYS_TOLD} more" if len(keys) > MAX_KEYS_TOLD else ""
        span = f"{found[0].offset}" if len(found) == 1 else f"{found[0].offset} to {found[-1].offset}"
        return f"{where}: offsets {span} ({', '.join(keys[:MAX_KEYS_TOLD])}{more}) are not what the solver read"

    def findings(self) -> tuple[Finding, ...]:
        """Give what could not be read. The live solver, of the same build, could not use these records either."""
        return tuple(
            Finding(Found.UNREADABLE, *place, count, sentence)
            for place, (count, sentence) in sorted(self._rejected.items())
        )

    def _move(self, place: Place, offset: int) -> None:
        partition = self._partitions.get(place)
        if partition is None:
            return
        if offset < partition.next:
            for undo in partition.undone(offset):
                self._undo(place, *undo)
        for record in partition.below(offset):
            partition.undo.append(self._do(place, record))

    def _do(self, place: Place, record: RawRecord) -> _Undo:
        newest, sound = self._newest.setdefault(place, {}), self._sound.setdefault(place, {})
        key = record.key or b""
        before = record, newest.get(key), sound.get(key)
        reject = self._fold.offer(record)
        self._digests.offer(record)
        _put(newest, key, record)
        if reject is None:
            _put(sound, key, record)
        else:
            self._note(place, record, reject)
        return before

    def _undo(self, place: Place, record: RawRecord, newest: RawRecord | None, sound: RawRecord | None) -> None:
        if record.key is None:
            return
        gone = RawRecord(record.topic, record.partition, record.offset, record.timestamp_ms, record.key, None)
        self._digests.offer(newest or gone)
        _put(self._newest[place], record.key, newest or gone)
        if self._sound[place].get(record.key) is not sound:
            self._fold.offer(sound or gone)
            _put(self._sound[place], record.key, sound or gone)

    def _note(self, place: Place, record: RawRecord, reject: Rejected) -> None:
        count, sentence = self._rejected.get(place, (0, ""))
        said = sentence or f"from offset {record.offset}: {reject.reason}: {reject.detail}"
        self._rejected[place] = count + 1, said


def _put(table: dict[bytes, RawRecord], key: bytes, record: RawRecord) -> None:
    if record.value is None:
        table.pop(key, None)
    else:
        table[key] = record
