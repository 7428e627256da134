"""Where the weights come from: Kafka, or a file. Either feeds the router, and takes what it counted as demand.

A file does not age: whoever gives one means it to hold, so its snapshot is dated from when it was read. It is read
again when it changes, and used if it is newer. Demand goes nowhere then, but is still taken, lest it pile up.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from headrace.dataplane.feed import SnapshotFeed
from headrace.dataplane.installation import NotInstalled
from headrace.dataplane.reporter import DemandReporter, LatencyReports, RoutedReports
from headrace.dataplane.router import Router
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.snapshot_file import read_snapshot
from headrace.schemas.topics import ROUTED, SIGNALS_DEMAND, SIGNALS_ENGINE, WEIGHTS, TopicSettings, topic_table
from headrace.schemas.weights import Snapshot

LOOK_AGAIN_S: Final = 1.0
FOR_EVER_MS: Final = 100 * 365 * 86_400_000
Say = Callable[[str], None]


class WeightsSource(Protocol):
    """Feeds a router from `start()` to `stop()`."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End; the router keeps what it has."""
        ...


class FromKafka:
    """Weights from the weights topic; demand and latencies to the signals topics. One thread in, one out."""

    def __init__(self, kafka: KafkaSettings, topics: TopicSettings, router: Router, say: Say, installed: Say) -> None:
        table = topic_table(topics)

        def on_install(snapshot: Snapshot, _: int) -> None:
            installed(f"{snapshot.commit.epoch}.{snapshot.commit.version}")

        self.feed = SnapshotFeed(kafka, table[WEIGHTS].name, router, on_install, say)
        latencies = LatencyReports(table[SIGNALS_ENGINE].name, router.latencies)
        routed = RoutedReports(table[ROUTED].name, router.routed)
        self.reporter = DemandReporter(kafka, table[SIGNALS_DEMAND].name, router.demand, say, latencies, routed)

    async def start(self) -> None:
        """Start both threads. A broker that is away is waited for without limit, here and later."""
        self.feed.start()
        self.reporter.start()

    async def stop(self) -> None:
        """End both threads, off the loop."""
        await asyncio.to_thread(self.feed.stop)
        await asyncio.to_thread(self.reporter.stop)


class FromFile:
    """Weights from a snapshot file."""

    def __init__(self, path: Path, router: Router, say: Say, installed: Say) -> None:
        self._path = path
        self._router = router
        self._say = say
        self._installed = installed
        self._read_at: tuple[int, int] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the file and begin to look whether it changes.

        Raises:
            InvalidInputError: it cannot be used; later, that is said, and what was read before stays.
        """
        self._read()
        self._task = asyncio.create_task(self._follow(), name="snapshot file")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            let_go(self._router)
            try:
                # Off the loop: building a large fleet's tables takes longer than a token takes to come.
                if self._changed():
                    await asyncio.to_thread(self._read)
            except (InvalidInputError, OSError) as error:
                self._say(str(error))

    def _changed(self) -> bool:
        at = self._path.stat()
        return (at.st_mtime_ns, at.st_size) != self._read_at

    def _read(self) -> None:
        if self._path.exists():
            at = self._path.stat()
            self._read_at = (at.st_mtime_ns, at.st_size)
        snapshot = undated(read_snapshot(self._path), _now_ms())
        made = self._router.apply(snapshot)
        if isinstance(made, NotInstalled):
            if self._router.installation is None:
                raise InvalidInputError(str(self._path), (f"{made.reason}: {made.sentence}",))
            self._say(f"{self._path}: {made.reason}: {made.sentence}")
        else:
            self._installed(f"{snapshot.commit.epoch}.{snapshot.commit.version}")


class FromMemory:
    """Weights that somebody else installs (a test, the demo); what is counted is let go."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to take what is counted."""
        self._task = asyncio.create_task(self._take(), name="counts")

    async def stop(self) -> None:
        """Take no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _take(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            let_go(self._router)


def let_go(router: Router) -> None:
    """Take what a router counted, and forget it."""
    router.demand.close(_now_ms())
    router.latencies.close(_now_ms())
    router.routed.close(_now_ms())


def undated(snapshot: Snapshot, now_ms: int) -> Snapshot:
    """Give the snapshot as if it had been made now and held for ever."""
    commit = replace(snapshot.commit, tick_ms=now_ms, period_ms=FOR_EVER_MS, valid_until_ms=now_ms + FOR_EVER_MS)
    return Snapshot(commit, snapshot.routes)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
