"""Topics -> desk, on a thread of its own, and how the broker stands.

    snapshots, decisions   from `history_ms` (and a keyframe more) ago    fleet, profiles   from their beginning
    state.engine           from `recent_ms` ago                           then whatever comes

Failure mode: a broker that is away costs nothing but time. The client says when; that it is back is seen by records, or
by asking it every PROBE_S, since a quiet broker sends none.
"""

import threading
import time
from collections.abc import Callable

from headrace.infra.console.core.status import Link
from headrace.infra.console.desk import Desk
from headrace.infra.console.settings import ConsoleSettings
from headrace.infra.kafka_edge import MissingTopicError, UnreachableError, require_topics
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.topics import DECISIONS, FLEET, PROFILES, SNAPSHOTS, STATE_ENGINE, TopicSettings, topic_table

ROLES = (SNAPSHOTS, DECISIONS, FLEET, PROFILES, STATE_ENGINE)
POLL_S = 0.1
PROBE_S = 2.0
ANSWER_S = 1.5
MARGIN_MS = 30_000
JOIN_S = 10.0


class Follower:
    """Follows the topics from `start()` to `stop()`.

    Args:
        kafka: how to reach them.
        topics: their names.
        settings: how far back to begin.
        keyframe_ms: how often the snapshots topic has every route again: so much more is read.
        desk: takes the records.
        changed: is told, on the follower's thread, that there is something new to show.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicSettings,
        settings: ConsoleSettings,
        keyframe_ms: int,
        desk: Desk,
        changed: Callable[[], None],
    ) -> None:
        table = topic_table(topics)
        self._kafka = kafka
        self._names = [table[role].name for role in ROLES]
        self._back_ms = {
            table[SNAPSHOTS].name: max(settings.history_ms, keyframe_ms) + MARGIN_MS,
            table[DECISIONS].name: settings.history_ms + MARGIN_MS,
            table[STATE_ENGINE].name: settings.recent_ms,
        }
        self._desk = desk
        self._changed = changed
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="console follower", daemon=True)
        self._link = Link()
        self._said = ""
        self._probe_s = 0.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what the desk holds stays."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def _run(self) -> None:
        now_ms = _now_ms()
        reader = CompactedReader(
            self._kafka,
            self._names,
            on_error=self._complain,
            on_missing=self._missing,
            from_ms={name: now_ms - back_ms for name, back_ms in self._back_ms.items()},
        )
        try:
            while not self._stopping.is_set():
                records = reader.poll(POLL_S)
                told = [self._desk.offer(record) for record in records]
                if records:
                    self._said = ""
                    self._now(Link(None, "", reader.caught_up))
                elif reader.caught_up != self._link.caught_up and self._link.lost_since_ms is None:
                    self._now(Link(None, "", reader.caught_up))
                if any(told) and reader.caught_up:
                    self._changed()
                self._probe()
        finally:
            reader.close()

    def _complain(self, sentence: str) -> None:
        """Take what the client says: a reason to ask, no proof that the broker is away."""
        self._said = sentence

    def _missing(self, sentence: str) -> None:
        """Take note that a topic is not there; where it was before, its records will begin anew."""
        if self._link.caught_up:
            self._desk.begin_anew()
        self._said = sentence
        self._now(Link(None, sentence, caught_up=False))

    def _probe(self) -> None:
        """Ask the broker where there is reason to, from time to time."""
        now_s = time.monotonic()
        if not self._said or now_s < self._probe_s:
            return
        self._probe_s = now_s + PROBE_S
        try:
            require_topics(self._kafka, (), ANSWER_S)
        except UnreachableError as error:
            since = self._link.lost_since_ms or _now_ms()
            self._now(Link(since, str(error), self._link.caught_up))
        except MissingTopicError:  # it answers
            return
        else:
            said, self._said = self._said, ""
            if self._link.lost_since_ms is not None:
                self._now(Link(None, said, self._link.caught_up))

    def _now(self, link: Link) -> None:
        if link != self._link:
            self._link = link
            self._desk.link(link)
            self._changed()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
