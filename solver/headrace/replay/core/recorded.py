"""The snapshot log and the decision log -> the ticks that were recorded, each with the snapshot before it.

    snapshots   keyframe ─ tick ─ tick ─ ...   one reader's fold: each commit proves its set by digest
    decisions   one record a tick, joined by (epoch, version); the settings stand at keyframes

A tick is whole where its own snapshot and the one before are known; before the first keyframe none is. The very first
snapshot of a log has none before it, and that is known too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.replay.core.history import Finding, Found, Span
from headrace.schemas.assembly import Assembled, Refused, SnapshotAssembler
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import Snapshot

DECISION_KEY = b"!decision"
"""Key of a decision record among the snapshots of a shadow."""
MAX_WAITING = 100_000
"""Decision records kept for snapshots that have not come yet."""


@dataclass(frozen=True, slots=True)
class RecordedTick:
    """A tick as it was recorded.

    Attributes:
        snapshot: what it published.
        previous: the snapshot before it; None where it was the very first one.
        record: its decision record; None where history has none.
        settings_text: the settings in force, as JSON; None where no keyframe of its epoch is known.
    """

    snapshot: Snapshot
    previous: Snapshot | None
    record: SolveRecord | None
    settings_text: str | None


class Recorded:
    """Reads ticks out of the two logs, once, in the order of the log."""

    def __init__(self, snapshots: Iterable[RawRecord], decisions: Iterable[RawRecord], topic: str) -> None:
        self._snapshots = snapshots
        self._decisions = iter(decisions)
        self._topic = topic
        self._waiting: dict[tuple[int, int], SolveRecord] = {}
        self._settings: dict[int, str] = {}
        self._refused, self._unreadable = 0, 0
        self._first_refused, self._first_unreadable = "", ""

    def ticks(self, span: Span) -> Iterator[RecordedTick]:
        """Give the ticks of a span that are whole."""
        assembler = SnapshotAssembler()
        previous: Snapshot | None = None
        for record in self._snapshots:
            if record.key == DECISION_KEY:
                self._note(record)
                continue
            outcome = assembler.offer(record)
            if isinstance(outcome, Assembled):
                snapshot, known = outcome.snapshot, previous is not None or self._is_first(outcome.snapshot)
                decision = self._decision(snapshot)
                if known and snapshot.commit.tick_ms in span:
                    settings = self._settings.get(snapshot.commit.epoch)
                    yield RecordedTick(snapshot, previous, decision, settings)
                previous = snapshot
            elif isinstance(outcome, Refused) and outcome.epoch is None:
                self._unreadable += 1
                self._first_unreadable = self._first_unreadable or f"snapshot {outcome.problems[0]}"
            elif isinstance(outcome, Refused):
                self._refused += 1
                self._first_refused = self._first_refused or f"version {outcome.version}: {outcome.problems[0]}"

    def findings(self) -> tuple[Finding, ...]:
        """Give what could not be used."""
        found: list[Finding] = []
        if self._refused:
            sentence = f"{self._refused} snapshots before the first keyframe, or torn: {self._first_refused}"
            found.append(Finding(Found.NO_KEYFRAME, self._topic, 0, self._refused, sentence))
        if self._unreadable:
            found.append(Finding(Found.UNREADABLE, self._topic, 0, self._unreadable, self._first_unreadable))
        return tuple(found)

    def _is_first(self, snapshot: Snapshot) -> bool:
        """Say whether no snapshot was before this one: versions rise by one from the first, whoever writes."""
        return snapshot.commit.version == 1

    def _decision(self, snapshot: Snapshot) -> SolveRecord | None:
        wanted = snapshot.commit.epoch, snapshot.commit.version
        while wanted not in self._waiting and len(self._waiting) < MAX_WAITING:
            record = next(self._decisions, None)
            if record is None:
                break
            decided = self._note(record)
            if decided is not None and decided > wanted:
                break
        found = self._waiting.pop(wanted, None)
        for older in [each for each in self._waiting if each < wanted]:
            del self._waiting[older]
        return found

    def _note(self, record: RawRecord) -> tuple[int, int] | None:
        decoded: SolveRecord | Rejected = decode(SolveRecord, record.value, record.headers)
        if isinstance(decoded, Rejected):
            self._unreadable += 1
            said = f"decision at offset {record.offset}: {decoded.reason}: {decoded.detail}"
            self._first_unreadable = self._first_unreadable or said
            return None
        if decoded.settings is not None:
            self._settings[decoded.epoch] = decoded.settings
        self._waiting[decoded.epoch, decoded.version] = decoded
        return decoded.epoch, decoded.version
