"""The one writer of `weights` and `decisions`: takes the pen, begins where the topic ends, writes snapshots whole.

    take_pen():  init() fences every older writer  ─then─►  read `weights` to its end  ─►  epoch above all seen

Reading after fencing is what makes the epoch new: nobody can write behind it any more. A writer that lost the pen by a
failure reads before it as well: it may be an older one by now (`pen`). A snapshot is one transaction: changed routes,
tombstones, the decision record, and `!commit` last, which is what makes the rest visible to a reader.
The same goes to `snapshots`, which forgets nothing for as long as history is kept; at a keyframe, with every route.
Before it is sent, it is rehearsed: the writer folds it as a reader would, and what a reader would refuse stays here.

The writer follows its topic. A record in it that is not its own makes readers refuse every later commit: the pen is
then to be taken anew, since an epoch begins with every route. It is told of only once a write has succeeded after it: a
younger writer's records are no strays, and the next write is fenced.

Failure mode: whatever goes wrong with a write costs the pen. The next one reads the topic anew, so it does not matter
whether the broker had committed, and it writes every route, so that readers are whole whatever they hold.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.schemas.assembly import Assembled, SnapshotAssembler
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.bus.transactions import Committed, Failed, Fenced, Outgoing, TransactionalPublisher
from headrace.schemas.codec import encode
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import DECISIONS, SNAPSHOTS, WEIGHTS, Topic
from headrace.solver.core.answer.last_commit import Sent
from headrace.solver.core.answer.own_records import OwnRecords
from headrace.solver.core.tick import Tick
from headrace.solver.pen import NoPen, Pen, look_for_younger, read_history
from headrace.solver.reach import cleanup_policy
from headrace.solver.snapshot_log import logged

INIT_TIMEOUT_S = 5.0
MAX_TAIL_POLLS = 20
"""Bound on the polls of one look at the topic."""


@dataclass(frozen=True, slots=True)
class Unsound:
    """Readers would refuse this; nothing of it was sent."""

    problems: tuple[str, ...]


class SnapshotWriter:
    """Writes snapshots. One thread at a time; nothing is started before take_pen()."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Mapping[str, Topic],
        now_ms: Callable[[], int],
        *,
        on_error: Callable[[str], None] | None = None,
    ) -> None:
        self._now_ms = now_ms
        self._kafka = kafka
        self._weights = topics[WEIGHTS].name
        self._decisions = topics[DECISIONS].name
        self._snapshots = topics[SNAPSHOTS].name
        self._on_error = on_error
        # One pen per weights topic: whoever writes it uses this id, whatever else is configured.
        self._publisher = TransactionalPublisher(kafka, f"{self._weights}.writer", on_error=on_error)
        self._readers_view = SnapshotAssembler()
        self._leftovers: frozenset[bytes] | None = None
        self._tail: CompactedReader | None = None
        self._own = OwnRecords()
        self._stray: str | None = None

    def take_pen(self, stopped: Callable[[], bool], sent: Sent | None = None) -> Pen | NoPen | Fenced:
        """Fence older writers, then read the topic to its end.

        Args:
            stopped: whether to give up.
            sent: how far this worker had come when it lost the pen by a failure. Where the topic has gone on beyond
                that, a younger writer has the pen and keeps it. None where this worker has just been made leader.

        Raises:
            HeadraceError: the weights topic has more than one partition, so that a snapshot would have no order; or it
                is not compacted, so that it would forget the routes that stay as they are.
        """
        self._stop_tail()
        if sent is not None:
            reader = CompactedReader(self._kafka, [self._weights], on_error=self._on_error)
            found = look_for_younger(reader, sent, stopped)
            if found is not None:
                return found
        ready = self._publisher.init(INIT_TIMEOUT_S)
        if isinstance(ready, Failed):
            return NoPen(ready.reason)
        reader = self._tail = CompactedReader(self._kafka, [self._weights], on_error=self._on_error)
        history = read_history(reader, stopped)
        if isinstance(history, NoPen):
            return history
        self._check_topic(len(reader.positions()[0].offsets))
        self._own, self._stray = OwnRecords(), None
        self._readers_view = history.assembler
        self._leftovers = history.live
        return Pen(history.next_epoch(self._now_ms()), history.version, history.assembler.snapshot)

    def stray(self) -> str | None:
        """Name a record of the topic that nobody with the pen has written, and that readers stumble over; or None."""
        for _ in range(MAX_TAIL_POLLS):
            records = [] if self._tail is None else self._tail.poll(0.0)
            for record in records:
                self._own.offer(record)
            if not records:
                break
        return self._stray

    def write(self, tick: Tick) -> Committed | Fenced | Failed | Unsound:
        """Publish a tick's snapshot and its decision record as one; anything but Committed costs the pen."""
        routes = {route.key: route for route in tick.snapshot.routes}
        removed = tick.removed if self._leftovers is None else tick.removed | (self._leftovers - routes.keys())
        body: list[Outgoing] = [(self._weights, key, encode(routes[key])) for key in sorted(tick.changed)]
        body += [(self._weights, key, None) for key in sorted(removed)]
        commit = (self._weights, tick.snapshot.commit.key, encode(tick.snapshot.commit))
        problems = self._rehearse([*body, commit])
        if problems:
            return Unsound(problems)
        for _, key, value in (*body, commit):
            self._own.wrote(key, value)
        seen = self._own.stray
        beside = [*logged(self._snapshots, tick, removed), (self._decisions, tick.record.key, encode(tick.record))]
        outcome = self._publisher.publish_all([*body, *beside, commit])
        if isinstance(outcome, Committed):
            self._stray = seen
        self._leftovers = None
        return outcome

    def close(self) -> None:
        """Let the pen go; an open transaction is aborted."""
        self._publisher.close()
        self._stop_tail()

    def _check_topic(self, partitions: int) -> None:
        if partitions != 1:
            raise HeadraceError(
                f"{self._weights} has {partitions} partitions; it must have 1: see `headrace topics diff`"
            )
        policy = cleanup_policy(self._kafka, self._weights)
        if policy not in (None, "compact"):
            raise HeadraceError(
                f"{self._weights} has cleanup.policy {policy}; it must be compact, or routes are forgotten: "
                "run `headrace topics apply`"
            )

    def _stop_tail(self) -> None:
        if self._tail is not None:
            self._tail.close()
        self._tail = None

    def _rehearse(self, records: list[Outgoing]) -> tuple[str, ...]:
        outcome = None
        for topic, key, value in records:
            outcome = self._readers_view.offer(RawRecord(topic, 0, 0, 0, key, value))
            if outcome is not None and not isinstance(outcome, Assembled):
                break
        if isinstance(outcome, Assembled):
            return ()
        return getattr(outcome, "problems", (f"readers would not install it: {outcome}",))
