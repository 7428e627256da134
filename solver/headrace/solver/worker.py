"""The loop: read the input topics, and at each whole period of the wall clock decide and publish, while leading.

    standing by ──leads──► taking the pen ──read to the end──► leading: one tick a period
         ▲                                                        │
         └──────────────── fenced, or no longer leader ◄──────────┘        a failed write, or a record by another
                                                                           hand: the pen is taken anew, unless a
                                                                           younger worker has written meanwhile

No tick before every input topic has been read to its end. A period that was missed is skipped, not caught up on: the
newest state is all that counts. Every tick commits, changed or not, since the commit is what extends the validity.

What a tick depends on is written down with it, so that a replay comes to the same bytes: how far each topic was read
and a digest of what was read, the tick's time, and at each keyframe the settings and every route (ADR 0020).

Failure mode: the broker away, nothing is decided and nothing is lost; data planes route on by the last weights, and
the loop goes on where it stood when the broker answers. Where the pen was lost, the next epoch begins.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.schemas.bus.transactions import Committed, Failed, Fenced
from headrace.schemas.errors import HeadraceError
from headrace.schemas.weights import InputOffsets, Snapshot, SnapshotMode, SnapshotStatus
from headrace.solver.core.answer.last_commit import Sent
from headrace.solver.core.answer.refused import REFUSED
from headrace.solver.core.decide import Decided, Waiting, decide
from headrace.solver.core.effective import settings_text
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.digests import LogDigests
from headrace.solver.core.inputs.state_view import StateFold
from headrace.solver.core.tick import Tick, TickStamp
from headrace.solver.core.tick_line import everything_is_refused, tick_line
from headrace.solver.metrics import count_inputs, count_standing_by, count_start, count_tick
from headrace.solver.pen import NoPen, Pen
from headrace.solver.ports import Ports
from headrace.solver.publish import Unsound
from headrace.solver.settings import SolverSettings

if TYPE_CHECKING:
    from headrace.schemas.dead_letters import Rejected
    from headrace.schemas.raw import RawRecord

SAY_AGAIN_MS = 10_000
"""How often it is said again why nothing happens."""
NEXT_EPOCH_MS = 5_000
"""An epoch that records by another hand cut short lasts at least this long: each one writes every route."""
IDLE_S = 0.2
"""Longest wait of one step: how soon a stop or a change of leadership is seen."""


class FencedError(HeadraceError):
    """Another worker took the pen, and leader election is off, so that this one cannot know when to come back."""


class SolverWorker:
    """One worker. One thread; `run` returns when it is told to stop, and leaves the group so another leads at once."""

    def __init__(
        self, ports: Ports, fold: StateFold, settings: SolverSettings, mode: SnapshotMode = SnapshotMode.LIVE
    ) -> None:
        self._ports = ports
        self._fold = fold
        self._digests = LogDigests()
        self._settings = settings
        self._mode = mode
        self._keyframe: int | None = None
        self._pen: Pen | None = None
        self._sent: Sent | None = None  # since this worker was made leader: who leads anew may fence anybody
        self._previous: Snapshot | None = None
        self._version = 0
        self._next_tick_ms = 0
        self._empty_ms = 0
        self._publish_us = 0
        self._said, self._said_ms = "", 0
        self._asked, self._asked_ms = "", 0
        self._missing: str | None = None
        self._pen_ms = 0
        self._unread: list[RawRecord] = []

    def run(self, stopped: Callable[[], bool]) -> None:
        """Work until told to stop.

        Raises:
            FencedError: another worker took the pen and leader election is off.
            HeadraceError: the weights topic cannot hold snapshots.
        """
        count_start(self._ports.counts)
        try:
            while not stopped():
                self.step(stopped)
        finally:
            self._ports.writer.close()
            self._ports.leadership.close()
            self._ports.inputs.close()
        self._ports.log.info("solver stopped")

    def step(self, stopped: Callable[[], bool]) -> None:
        """Read for at most IDLE_S, then do what is due."""
        self._read()
        if not self._ports.leadership.leads():
            self._stand_by()
        elif self._pen is None and (self._unread or not self._ports.inputs.caught_up):
            self._say_why("reading the input topics to their end")
        elif self._pen is not None and self._is_written_over():
            self._lose_pen()
        elif self._pen is not None or self._take_pen(stopped):
            self._tick_if_due()

    def _read(self) -> None:
        wait_ms = self._next_tick_ms - self._ports.now_ms()
        if not self._unread:
            self._unread = self._ports.inputs.poll(min(IDLE_S, max(0.0, wait_ms / 1000)) if self._pen else IDLE_S)
        rejected: list[tuple[RawRecord, Rejected]] = []
        try:
            while self._unread:
                reject = self._fold.offer(self._unread[0])
                record = self._unread.pop(0)
                self._digests.offer(record)
                if reject is not None:
                    rejected.append((record, reject))
        except HeadraceError as error:
            # The schema registry is away: this record is neither good nor bad yet, and those behind it must wait.
            # Ticks go on over what is known, which ages, so that the weights are held in the end.
            self._say_once("an input record cannot be judged yet", reason=str(error))
            time.sleep(IDLE_S)
        if rejected:
            record, reject = rejected[0]
            self._ports.counts.add("unusable_records_total", len(rejected))
            self._ports.log.warning(
                "records of the input topics cannot be used; the ones before them stand",
                count=len(rejected),
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                reason=reject.reason.value,
                detail=reject.detail,
            )

    def _take_pen(self, stopped: Callable[[], bool]) -> bool:
        pen = self._ports.writer.take_pen(stopped, self._sent)
        if isinstance(pen, NoPen):
            self._say_once("the pen cannot be taken yet", reason=pen.reason)
            return False
        if isinstance(pen, Fenced):
            self._fenced(pen.reason)
            return False
        self._pen, self._previous, self._version = pen, pen.previous, pen.version
        self._sent = Sent(pen.epoch, pen.version)
        self._keyframe = None
        self._next_tick_ms, self._empty_ms = 0, self._ports.now_ms()
        self._pen_ms = self._empty_ms
        self._said = ""
        self._ports.counts.show("leads", 1)
        self._ports.log.info("solver ready", epoch=pen.epoch, after_version=pen.version)
        return True

    def _tick_if_due(self) -> None:
        now_ms = self._ports.now_ms()
        if self._pen is None or now_ms < self._next_tick_ms:
            return
        tick_ms = now_ms - now_ms % self._settings.period_ms
        self._next_tick_ms = tick_ms + self._settings.period_ms
        start_us = self._ports.elapsed_us()
        view = self._fold.view(self._folded())
        problem = assemble(view, self._settings, tick_ms)
        stamp = TickStamp(self._pen.epoch, self._version + 1, tick_ms, self._ports.elapsed_us, self._mode)
        decision = decide(problem, self._previous, self._settings, self._ports.lp, stamp, self._empty_ms)
        decided_us = self._ports.elapsed_us()
        count_inputs(self._ports.counts, view, problem, self._settings, tick_ms)
        if decision.fault is not None:
            self._ports.counts.add("solve_faults_total", 1)
            self._ports.log.error("the solve raised", exc_info=decision.fault)
        if isinstance(decision, Waiting):
            self._ports.counts.add("ticks_total", 1, "WAITING", "NONE")
            self._empty_ms = tick_ms if decision.nothing_to_solve else self._empty_ms
            self._say_once(f"waiting: {decision.sentence}", loud=decision.overdue)
            return
        if decision.without:
            self._ports.log.warning(
                "the first snapshot is made without what has not come yet", missing=decision.without
            )
        self._publish(decision, decided_us - start_us)

    def _folded(self) -> tuple[InputOffsets, ...]:
        """Give how far the view goes: what was polled, but for the records that cannot be judged yet."""
        positions, waiting = self._ports.inputs.positions(), dict[tuple[str, int], int]()
        for record in reversed(self._unread):
            waiting[record.topic, record.partition] = record.offset
        if not waiting:
            return positions
        return tuple(
            replace(each, offsets=tuple(waiting.get((each.topic, n), o) for n, o in enumerate(each.offsets)))
            for each in positions
        )

    def _written_down(self, tick: Tick) -> Tick:
        """Add to a tick's record what the tick depended on; settings only where a keyframe begins."""
        keyframe = tick.snapshot.commit.tick_ms // self._settings.keyframe_ms
        settings = None if keyframe == self._keyframe else settings_text(self._settings)
        self._keyframe = keyframe
        digests = self._digests.digests(tick.snapshot.commit.inputs)
        record = replace(tick.record, publish_us=self._publish_us, settings=settings, input_digests=digests)
        return replace(tick, record=record)

    def _publish(self, decision: Decided, took_us: int) -> None:
        tick = self._written_down(decision.tick)
        start_us = self._ports.elapsed_us()
        self._sent = Sent(tick.snapshot.commit.epoch, tick.snapshot.commit.version)
        outcome = self._ports.writer.write(tick)
        self._publish_us = self._ports.elapsed_us() - start_us
        self._ports.counts.add("publishes_total", 1, type(outcome).__name__.upper())
        match outcome:
            case Committed():
                count_tick(self._ports.counts, tick, took_us, self._publish_us)
                self._say_what_happened(tick, took_us)
                self._previous, self._version = tick.snapshot, tick.snapshot.commit.version
            case Fenced(reason=reason):
                self._fenced(reason)
            case Failed(reason=reason):
                self._lose_pen()
                self._say_once("the snapshot was not published; the pen is taken anew", reason=reason)
            case Unsound(problems=problems):
                self._lose_pen()
                self._ports.log.error("readers would refuse the snapshot; it was not sent", problems=problems)

    def _say_what_happened(self, tick: Tick, took_us: int) -> None:
        commit = tick.snapshot.commit
        turned = self._previous is None or self._previous.commit.status != commit.status
        fields = {"version": commit.version, "epoch": commit.epoch, "took_us": took_us, "publish_us": self._publish_us}
        line = tick_line(tick, self._previous, took_us)
        if everything_is_refused(tick.record):
            why = tick.record.sentence
            told = why.partition(";")[0] if why.startswith(REFUSED) else REFUSED
            if not self._say_once(told, loud=True, why=why, **fields):
                self._ports.log.info(line, **fields)
            return
        self._said = ""
        if tick.removed:
            fields["routes_removed"] = len(tick.removed)
        if commit.status is SnapshotStatus.HELD and turned:
            self._ports.log.warning(line, **fields)
        else:
            self._ports.log.info(line, **fields)

    def _fenced(self, reason: str) -> None:
        self._lose_pen()
        self._ports.log.warning("fenced: another solver took the pen", reason=reason)
        if not self._ports.leadership.resign():
            raise FencedError("fenced: another solver took the pen, and solver.leader_election is off")

    def _is_written_over(self) -> bool:
        stray = self._ports.writer.stray()
        if stray is None or self._ports.now_ms() - self._pen_ms < NEXT_EPOCH_MS:
            return False
        self._ports.log.warning(
            "the weights topic holds a record that no solver wrote; readers need all routes anew, so an epoch begins",
            record=stray,
        )
        return True

    def _stand_by(self) -> None:
        self._sent = None
        if self._pen is not None:
            self._lose_pen()
            count_standing_by(self._ports.counts)
        self._say_why("standing by: another solver leads, or the group is still forming")

    def _lose_pen(self) -> None:
        self._ports.counts.show("leads", 0)
        self._ports.writer.close()
        self._pen = None

    def _say_why(self, sentence: str) -> None:
        """Say why nothing happens; the broker is looked for where that may be it."""
        now_ms = self._ports.now_ms()
        if sentence != self._asked or now_ms - self._asked_ms >= SAY_AGAIN_MS:
            self._missing = self._ports.missing()
            self._asked, self._asked_ms = sentence, now_ms
        self._say_once(self._missing or sentence, loud=self._missing is not None)

    def _say_once(self, sentence: str, *, loud: bool = False, **fields: object) -> bool:
        """Say it at once, and again while it lasts; gives whether it was said now."""
        now_ms = self._ports.now_ms()
        due = sentence != self._said or now_ms - self._said_ms >= SAY_AGAIN_MS
        if due:
            say = self._ports.log.warning if loud else self._ports.log.info
            say(sentence, **fields)
            self._said_ms = now_ms
        self._said = sentence
        return due
