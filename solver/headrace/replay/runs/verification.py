"""Verifies a folder of history in any number of processes: each takes a stretch of the ticks.

    ticks 0 ......... n/2 ......... n

Every process folds the inputs up to its first tick, and proves the one before. So what one tick comes to is the same
whichever process it falls to.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headrace.replay.core.difference import Difference
from headrace.replay.core.history import Finding, Span
from headrace.replay.core.recorded import Recorded
from headrace.replay.core.standing import Standing
from headrace.replay.core.verify import Identical, Unverifiable, Verdict, Verifier
from headrace.replay.runs.pool import Desk, Pool
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.codec import SchemaSource
from headrace.schemas.topics import DECISIONS, SNAPSHOTS
from headrace.solver.core.inputs.state_view import INPUT_ROLES
from headrace.solver.glop import Glop

MAX_TOLD = 20
"""Differences, and ticks that cannot be verified, that are told one by one; the rest is counted."""
MINUTE_MS = 60_000
TELL_EVERY = 20


@dataclass(slots=True)
class Verification:
    """What a verification came to. `by_minute` counts (ticks, those that are not identical) by the minute's start."""

    span: Span
    ticks: int = 0
    identical: int = 0
    proved: int = 0
    differing: int = 0
    unverifiable: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])
    reasons: list[Unverifiable] = field(default_factory=list[Unverifiable])
    by_minute: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    findings: tuple[Finding, ...] = ()
    stopped: bool = False

    @property
    def holds(self) -> bool:
        """Whether there was something to verify, and all of it came out the same from proved inputs."""
        return 0 < self.ticks == self.identical and not self.stopped

    def add(self, verdict: Verdict) -> None:
        """Count a tick."""
        self.ticks += 1
        match verdict:
            case Identical(proved=proved):
                self.identical += 1
                self.proved += proved
            case Difference():
                self.differing += 1
                if len(self.differences) < MAX_TOLD:
                    self.differences.append(verdict)
            case Unverifiable():
                self.unverifiable += 1
                if len(self.reasons) < MAX_TOLD:
                    self.reasons.append(verdict)
        minute = verdict.tick_ms // MINUTE_MS * MINUTE_MS
        ticks, bad = self.by_minute.get(minute, (0, 0))
        self.by_minute[minute] = ticks + 1, bad + (not isinstance(verdict, Identical))

    def take(self, later: "Verification") -> None:
        """Take in the stretch that follows."""
        self.ticks += later.ticks
        self.identical += later.identical
        self.proved += later.proved
        self.differing += later.differing
        self.unverifiable += later.unverifiable
        self.differences = (self.differences + later.differences)[:MAX_TOLD]
        self.reasons = (self.reasons + later.reasons)[:MAX_TOLD]
        for minute, (ticks, bad) in later.by_minute.items():
            before = self.by_minute.get(minute, (0, 0))
            self.by_minute[minute] = before[0] + ticks, before[1] + bad
        # The last stretch has folded all that the others have.
        self.findings = later.findings
        self.stopped = self.stopped or later.stopped


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which ticks of a folder one process verifies: first <= number < end."""

    folder: Path
    first: int
    end: int
    registry: SchemaSource | None = None


def verify_folder(
    folder: Path,
    processes: int,
    told: Callable[[int], None],
    asked: Callable[[], bool],
    registry: SchemaSource | None = None,
) -> Verification:
    """Verify every tick of a folder.

    Args:
        folder: as `headrace export` wrote it.
        processes: at most so many beside each other; the result is the same.
        told: hears how many more ticks are done.
        asked: says whether to stop early.
        registry: looks up schemas of Confluent framing; must be picklable where there are several processes.

    Raises:
        HistoryError: the folder holds no history, or files of it are damaged, whether or not they are needed here.
    """
    history = HistoryFolder(folder)
    # Signals are not read here, yet a folder that was copied in part is not to be called good.
    history.see_files()
    shares = max(1, min(processes, history.ticks))
    cuts = [history.ticks * n // shares for n in range(shares)]
    # The last one has no end: a count in a manifest is no proof.
    ends: list[int] = [*cuts[1:], 1 << 62]
    stretches = [Stretch(folder, first, end, registry) for first, end in zip(cuts, ends, strict=True)]
    whole = Verification(history.span)
    for part in Pool(verify_stretch, told, asked).run(stretches, processes):
        whole.take(part)
    whole.stopped = whole.stopped or asked()
    return whole


def verify_stretch(stretch: Stretch, desk: Desk) -> Verification:
    """Verify one stretch."""
    history = HistoryFolder(stretch.folder)
    result = Verification(history.span)
    standing = standing_of(history, stretch.registry)
    verifier, recorded = Verifier(standing, Glop(threads=1)), recorded_of(history)
    untold = 0
    for number, tick in enumerate(recorded.ticks(history.span)):
        if number == stretch.first - 1:
            verifier.prove(tick)
        if number < stretch.first:
            continue
        if number >= stretch.end:
            break
        if desk.asked():
            result.stopped = True
            break
        result.add(verifier.verify(tick))
        untold += 1
        if untold == TELL_EVERY:
            desk.tell(untold)
            untold = 0
    desk.tell(untold)
    result.findings = tuple(dict.fromkeys((*history.findings, *recorded.findings(), *standing.findings())))
    return result


def standing_of(history: HistoryFolder, registry: SchemaSource | None = None) -> Standing:
    """Give the input topics of a folder, at their beginning."""
    places = [place for role in INPUT_ROLES for place in history.places(role)]
    return Standing(history.topics, {place: history.read(place) for place in places}, registry)


def recorded_of(history: HistoryFolder, role: str = SNAPSHOTS) -> Recorded:
    """Give the recorded ticks of a folder; of a shadow where its role is given."""
    topic = history.topics[role].name
    snapshots = (record for place in history.places(role) for record in history.read(place))
    decisions = (record for place in history.places(DECISIONS) for record in history.read(place))
    return Recorded(snapshots, decisions if role == SNAPSHOTS else (), topic)
