"""The writer of a policy that only looks on: its snapshots go to `shadow`, mode SHADOW, and nobody routes by them.

    take_pen():  fence an older shadow  ─►  read `weights` to its end  ─►  begin from the live snapshot

Every start is from what stood live, so that a shadow differs by its policy and by nothing that it inherited. One shadow
a topic: whoever starts another on the same one ends this one. Where it lost the pen by a failure it looks first for the
other's snapshots (`pen`), from when it took the pen itself on, since this topic is long. Each tick's decision record
goes with it, as `!decision`.
"""

from collections.abc import Callable, Mapping

from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.bus.transactions import Committed, Failed, Fenced, TransactionalPublisher
from headrace.schemas.codec import encode
from headrace.schemas.topics import SHADOW, WEIGHTS, Topic
from headrace.solver.core.answer.last_commit import Sent
from headrace.solver.core.tick import Tick
from headrace.solver.pen import NoPen, Pen, look_for_younger, read_history
from headrace.solver.publish import INIT_TIMEOUT_S
from headrace.solver.snapshot_log import logged

DECISION_KEY = b"!decision"
CLOCK_MARGIN_MS = 60_000
"""By how much the clock may have been set back since the pen was taken."""


class ShadowWriter:
    """Writes a shadow's snapshots. One thread at a time; nothing is started before take_pen()."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Mapping[str, Topic],
        now_ms: Callable[[], int],
        *,
        on_error: Callable[[str], None] | None = None,
    ) -> None:
        self._kafka = kafka
        self._now_ms = now_ms
        self._weights, self._shadow = topics[WEIGHTS].name, topics[SHADOW].name
        self._on_error = on_error
        self._taken_ms = 0
        self._publisher = TransactionalPublisher(kafka, f"{self._shadow}.writer", on_error=on_error)

    def take_pen(self, stopped: Callable[[], bool], sent: Sent | None = None) -> Pen | NoPen | Fenced:
        """Fence an older shadow, then read the live weights to their end; `sent` as of `SnapshotWriter`."""
        if sent is not None:
            begin = {self._shadow: self._taken_ms - CLOCK_MARGIN_MS}
            reader = CompactedReader(self._kafka, [self._shadow], on_error=self._on_error, from_ms=begin)
            found = look_for_younger(reader, sent, stopped)
            if found is not None:
                return found
        taken_ms = self._now_ms()
        ready = self._publisher.init(INIT_TIMEOUT_S)
        if isinstance(ready, Failed):
            return NoPen(ready.reason)
        reader = CompactedReader(self._kafka, [self._weights], on_error=self._on_error)
        try:
            history = read_history(reader, stopped)
        finally:
            reader.close()
        if isinstance(history, NoPen):
            return history
        self._taken_ms = taken_ms
        return Pen(history.next_epoch(self._now_ms()), history.version, history.assembler.snapshot)

    def stray(self) -> None:
        """Give None: nobody's requests hang on this topic, so nobody watches it."""

    def write(self, tick: Tick) -> Committed | Fenced | Failed:
        """Publish a tick's snapshot and its decision record as one; anything but Committed costs the pen."""
        decision = self._shadow, DECISION_KEY, encode(tick.record)
        return self._publisher.publish_all([decision, *logged(self._shadow, tick, tick.removed)])

    def close(self) -> None:
        """Let the pen go; an open transaction is aborted."""
        self._publisher.close()
