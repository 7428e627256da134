"""Recomputes a recorded snapshot from the recorded inputs at the recorded offsets and time: the same bytes, or why.

    problem = assemble(what stood at the tick's offsets, recorded settings, tick time)
    again   = decide(problem, the recorded snapshot before, recorded settings, recorded epoch and version)
    same    = bytes of the commit, of every route it wrote, and of the decision record but for its timings

Each tick is held against the *recorded* snapshot before it, so one difference does not spread over all that follow, and
ticks can be verified in any number of processes.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.replay.core.difference import Difference, difference
from headrace.replay.core.history import DamagedError, HistoryError
from headrace.replay.core.recorded import RecordedTick
from headrace.replay.core.standing import Standing
from headrace.schemas.codec import encode_body
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import Snapshot
from headrace.solver.core.decide import Waiting, decide
from headrace.solver.core.effective import settings_of
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.policies import policy_named
from headrace.solver.core.tick import Tick, TickStamp
from headrace.solver.settings import SolverSettings

if TYPE_CHECKING:
    from headrace.replay.core.history import Place


@dataclass(frozen=True, slots=True)
class Identical:
    """The same bytes. `proved` says whether the inputs were proved by digest, too."""

    version: int
    tick_ms: int
    proved: bool


@dataclass(frozen=True, slots=True)
class Unverifiable:
    """The tick cannot be recomputed from this history, and why."""

    version: int
    tick_ms: int
    reason: str


Verdict = Identical | Difference | Unverifiable


class Verifier:
    """Verifies ticks in the order of their log."""

    def __init__(self, standing: Standing, lp: LinearSolver) -> None:
        self._standing = standing
        self._lp = lp
        self._proved: dict[Place, int] = {}
        self._broken: set[Place] = set()
        self._settings: tuple[str, SolverSettings] | None = None

    def verify(self, tick: RecordedTick) -> Verdict:
        """Recompute one tick."""
        commit = tick.snapshot.commit
        if tick.settings_text is None:
            reason = "the settings of its epoch are not in the history: begin the range earlier, at a keyframe"
            return Unverifiable(commit.version, commit.tick_ms, reason)
        try:
            settings = self._parsed(tick.settings_text)
        except InvalidInputError as error:
            # A setting that has gone: the recording is of a build with other rules.
            reason = f"{error}; recorded under policy_hash {commit.policy_hash}: verify it with the build that did"
            return Unverifiable(commit.version, commit.tick_ms, reason)
        try:
            view = self._standing.at(commit.inputs)
        except DamagedError:
            raise
        except HistoryError as error:
            return Unverifiable(commit.version, commit.tick_ms, str(error))
        unproved = self._unproved(tick)
        problem = assemble(view, settings, commit.tick_ms)
        stamp = TickStamp(commit.epoch, commit.version, commit.tick_ms, mode=commit.mode)
        # A tick that was published had waited long enough.
        patient_ms = commit.tick_ms - settings.first_wait_ms
        decision = decide(problem, tick.previous, settings, self._lp, stamp, patient_ms)
        if isinstance(decision, Waiting):
            return Unverifiable(commit.version, commit.tick_ms, f"no snapshot comes of it: {decision.sentence}")
        if _same(tick, decision.tick):
            proved = tick.record is not None and tick.record.input_digests is not None and not self._broken
            if not unproved:
                return Identical(commit.version, commit.tick_ms, proved)
        # The bytes may be the same all the same: what was changed did not matter to this tick.
        return difference(tick, decision.tick, unproved)

    def prove(self, tick: RecordedTick) -> None:
        """Go to a tick and take note of which partitions are what the solver read, without recomputing it."""
        try:
            self._standing.at(tick.snapshot.commit.inputs)
        except DamagedError:
            raise
        except HistoryError:
            return
        self._unproved(tick)

    def _parsed(self, text: str) -> SolverSettings:
        if self._settings is None or self._settings[0] != text:
            settings = settings_of(text)
            policy_named(settings.policy)
            self._settings = text, settings
        return self._settings[1]

    def _unproved(self, tick: RecordedTick) -> tuple[str, ...]:
        """Name the partitions that are not what the solver read, each once, by the records since its last proof."""
        commit, record = tick.snapshot.commit, tick.record
        if record is None or record.input_digests is None:
            return ()
        ours = self._standing.digests(commit.inputs)
        names = list(dict.fromkeys(topic for topic, _ in ours))
        told: list[str] = []
        for name, each, read in zip(names, record.input_digests, commit.inputs, strict=True):
            for number, recorded in enumerate(each.digests):
                place, offset = (name, number), read.offsets[number]
                if ours[place] == recorded:
                    self._proved[place] = offset
                    self._broken.discard(place)
                elif place not in self._broken:
                    told.append(self._standing.read_since(place, self._proved.get(place, 0), offset))
                    self._broken.add(place)
        return tuple(told)


def _same(tick: RecordedTick, again: Tick) -> bool:
    recorded, ours = tick.snapshot, again.snapshot
    if encode_body(recorded.commit) != encode_body(ours.commit):
        return False
    if not _same_routes(recorded, ours):
        return False
    return tick.record is None or encode_body(without_timings(tick.record)) == encode_body(
        without_timings(again.record)
    )


def _same_routes(recorded: Snapshot, ours: Snapshot) -> bool:
    pairs = zip(recorded.routes, ours.routes, strict=True)
    return all(one is other or encode_body(one) == encode_body(other) for one, other in pairs)


def without_timings(record: SolveRecord) -> SolveRecord:
    """Leave out what no replay can know: how long things took, and what the worker adds of its own."""
    return replace(record, build_us=0, solve_us=0, check_us=0, publish_us=0, settings=None, input_digests=None)
