"""Kafka to router: a thread follows the weights topic and installs every whole snapshot.

    start ──► read to the end (nothing is installed half-way) ──► install the newest ──► install each that follows

Failure mode: whatever goes wrong, the router keeps its last good snapshot and this thread goes on. A broker that is
away is waited for without limit; a snapshot that is refused is counted and said to `on_problem`; an exception is
counted, said, and followed by a new reader from the topic's beginning.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.dataplane.installation import Installation, NotInstalled
from headrace.dataplane.router import Router
from headrace.schemas.assembly import Assembled, Ignored, Refused, SnapshotAssembler
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import Snapshot

POLL_S = 0.5
PAUSE_AFTER_FAILURE_S = 1.0


@dataclass(frozen=True, slots=True)
class FeedCounts:
    """What became of the snapshots so far, and how often the thread had to begin again."""

    installed: int = 0
    refused: int = 0
    not_installed: int = 0
    failures: int = 0


class SnapshotFeed:
    """Feeds one router. `start()` begins, `stop()` ends; both may be called once.

    Args:
        kafka: where.
        topic: the weights topic's full name.
        router: what to install into; nobody else may call its `apply`.
        on_install: called in the feed's thread after each installation, with the wall clock at that moment in ms.
        on_problem: called in the feed's thread with a sentence for each refusal or failure.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        router: Router,
        on_install: Callable[[Snapshot, int], None] | None = None,
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        self._kafka = kafka
        self._topic = topic
        self._router = router
        self._on_install = on_install
        self._on_problem = on_problem
        self._counts = FeedCounts()
        self._stopping = threading.Event()
        self._caught_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"weights-{router.cluster}", daemon=True)

    @property
    def counts(self) -> FeedCounts:
        """What happened so far."""
        return self._counts

    def start(self) -> None:
        """Begin to follow the topic."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread; the router keeps what it has."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def wait_caught_up(self, timeout_s: float) -> bool:
        """Wait until the topic was read to its end once; False where it was not by then."""
        return self._caught_up.wait(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            reader = CompactedReader(self._kafka, (self._topic,), on_error=self._say, on_missing=self._say)
            try:
                self._follow(reader)
            except Exception as error:  # noqa: BLE001 - a gateway routes by its last snapshot; this thread must go on
                self._counts = replace(self._counts, failures=self._counts.failures + 1)
                self._say(f"{self._topic}: {type(error).__name__}: {error}")
                self._stopping.wait(PAUSE_AFTER_FAILURE_S)
            finally:
                reader.close()

    def _follow(self, reader: CompactedReader) -> None:
        assembler = SnapshotAssembler()
        waiting: Snapshot | None = None
        while not self._stopping.is_set():
            waiting = self._newest(assembler, reader.poll(POLL_S)) or waiting
            if not reader.caught_up:
                continue
            if waiting is not None:
                self._install(waiting)
                waiting = None
            self._caught_up.set()

    def _newest(self, assembler: SnapshotAssembler, records: list[RawRecord]) -> Snapshot | None:
        """Fold a batch and give the last whole snapshot in it: those before it are out of date already."""
        newest: Snapshot | None = None
        for record in records:
            match assembler.offer(record):
                case Assembled(snapshot=snapshot):
                    newest = snapshot
                case Refused(problems=problems):
                    self._counts = replace(self._counts, refused=self._counts.refused + 1)
                    self._say(f"{self._topic}: refused: {'; '.join(problems)}")
                case Ignored() | None:
                    pass
        return newest

    def _install(self, snapshot: Snapshot) -> None:
        match self._router.apply(snapshot):
            case Installation():
                self._counts = replace(self._counts, installed=self._counts.installed + 1)
                if self._on_install is not None:
                    self._on_install(snapshot, time.time_ns() // 1_000_000)
            case NotInstalled(reason=reason, sentence=sentence):
                self._counts = replace(self._counts, not_installed=self._counts.not_installed + 1)
                self._say(f"{self._topic}: {reason}: {sentence}")

    def _say(self, sentence: str) -> None:
        if self._on_problem is not None:
            self._on_problem(sentence)
