"""`headrace streams`: one process that folds signals into state, until it is stopped.

    topics there, partitions match  ->  fleet read to its end  ->  Faust joins the group, recovers its tables  ->  ready

It ends in good order when asked (status 0; 3 where a part of that did not end in its time), and at once (status 1) when
something breaks that must not: nothing is acknowledged that was not written, so ending at once is always safe, and
whatever supervises the process starts it again.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import uvloop

from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import SchemaSource
from headrace.schemas.errors import HeadraceError
from headrace.schemas.topics import DEAD_LETTERS, FLEET, SIGNALS_ENGINE, STATE_OF, Topic, TopicSettings, topic_table
from headrace.streams.batches import Batches
from headrace.streams.continuity import Continuity
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.departure import COMMITTING_S, LEAVING_S, STOP_S, WRITING_S, Part, depart
from headrace.streams.fleet_watch import FleetWatch
from headrace.streams.heap import settle_memory
from headrace.streams.lag import follow_lag
from headrace.streams.lease import Lease, LeaseLostError
from headrace.streams.log_offsets import LogOffsets, Place
from headrace.streams.ports import Voice
from headrace.streams.progress import Progress
from headrace.streams.settings import StreamsSettings
from headrace.streams.stop_guard import STOPPED_SHORT, StopGuard
from headrace.streams.topic_check import wait_for_topics
from headrace.streams.watchdog import Watchdog

if TYPE_CHECKING:
    from faust.types import AppT

    from headrace.streams.fold_task import FoldTask

TICK_S = 0.1
FAILED = 1


class StreamsError(HeadraceError):
    """The worker could not start."""


def run_streams(
    kafka: KafkaSettings,
    topics: TopicSettings,
    settings: StreamsSettings,
    voice: Voice,
    stopped: Callable[[], bool],
    registry: SchemaSource | None = None,
) -> None:
    """Run until `stopped` says so. To be called in the main thread of a process of its own, which it ends.

    It returns only where it was stopped before it had joined the group.

    Raises:
        TopicsError: topics are missing, or partitions differ.
        StreamsError: the fleet topic could not be read in time.
        InvalidInputError: the security options cannot be used with Faust.
    """
    guard = StopGuard(stopped, STOP_S, voice.log)
    guard.start()
    partitions = wait_for_topics(kafka, topics, settings.start_wait_ms / 1000, voice.log, stopped)
    if partitions is None:
        return
    # Before Faust is imported: it binds to the policy.
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # pyright: ignore[reportDeprecated] - Faust's threads make their loops by it
    worker = _Worker(kafka, topics, settings, voice, dict(partitions), guard)
    asyncio.run(worker.run(stopped, registry))


class _Worker:
    """The parts of one process, and the order in which they start and stop."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicSettings,
        settings: StreamsSettings,
        voice: Voice,
        partitions: dict[str, int],
        guard: StopGuard,
    ) -> None:
        self._kafka = kafka
        self._table = topic_table(topics)
        self._settings = settings
        self._log = voice.log
        self._partitions = partitions
        self._guard = guard
        self._progress = Progress()
        self._log_offsets = LogOffsets(kafka, settings.group_id)
        self._continuity = Continuity(self._log_offsets)
        self._counts = voice.counts
        self._assigned_at_s = 0.0

    async def run(self, stopped: Callable[[], bool], registry: SchemaSource | None) -> None:
        reader = CompactedReader(self._kafka, (self._table[FLEET].name,), on_error=self._client_error)
        fleet = FleetWatch(reader, self._log, registry)
        following = asyncio.create_task(fleet.run())
        try:
            if not await self._fleet_is_read(fleet, following, stopped):
                return
            app, folds = self._compose(fleet, registry)
            await self._serve(app, folds, following, stopped)
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            reader.close()
            self._log_offsets.close()

    async def _fleet_is_read(
        self, fleet: FleetWatch, following: "asyncio.Task[None]", stopped: Callable[[], bool]
    ) -> bool:
        waited_s = 0.0
        while not fleet.caught_up.is_set():
            if following.done():
                following.result()
            if stopped():
                return False
            if waited_s > self._settings.start_wait_ms / 1000:
                raise StreamsError(f"{self._table[FLEET].name} was not read to its end in {waited_s:.0f} s")
            await asyncio.sleep(TICK_S)
            waited_s += TICK_S
        return True

    def _compose(self, fleet: FleetWatch, registry: SchemaSource | None) -> "tuple[AppT, list[FoldTask]]":
        from headrace.streams.app import make_app, session_timeout_s, shorten_fetches  # noqa: PLC0415 - Faust is imported after the loop's policy is set
        from headrace.streams.unreadable_headers import forgive_headers  # noqa: PLC0415 - as above

        forgive_headers()
        app = make_app(self._kafka, self._settings)
        self._lease = Lease(session_timeout_s(self._kafka, self._settings))
        folds = [self._fold(app, role, fleet if role == SIGNALS_ENGINE else None, registry) for role in STATE_OF]

        async def revoked(_: object, revoked: Collection[Any], **__: object) -> None:
            names = {self._table[role].name: fold for role, fold in zip(STATE_OF, folds, strict=True)}
            for name, fold in names.items():
                await fold.revoked({tp.partition for tp in revoked if tp.topic == name})
            # Faust committed before it said so: what was in hand then is done now.
            await app.consumer.commit()
            self._progress.forget((tp.topic, tp.partition) for tp in revoked)
            self._continuity.interrupt()

        async def assigned(_: object, assigned: Collection[Any], **__: object) -> None:
            self._progress.moved()
            self._assigned_at_s = time.monotonic()
            self._counts.add("assignments_total", 1)
            if self._kafka.broker == "embedded":
                shorten_fetches(app)
            self._log.info("partitions assigned", partitions=len(self._signals_of(assigned)))

        async def recovered(_: object, **__: object) -> None:
            # Until Faust has sought the committed offsets and resumes: what it fetches before that it would skip, take
            # for read, or even commit as a gap.
            app.consumer.stop_flow()
            starts = await self._starts(self._signals_of(app.consumer.assignment()), folds)
            cast("Any", app.consumer).start_from(starts)
            self._continuity.begin(starts)
            self._progress.begin(starts)
            self._counts.show("recovery_seconds", time.monotonic() - self._assigned_at_s)

        app.on_rebalance_complete.connect(cast("Any", recovered), weak=False)
        app.on_partitions_revoked.connect(cast("Any", revoked), weak=False)
        app.on_partitions_assigned.connect(cast("Any", assigned), weak=False)
        return app, folds

    async def _starts(self, places: list[Place], folds: "list[FoldTask]") -> dict[Place, int]:
        """Give from where each partition is read, by what is committed and what the recovered states hold."""
        committed = await asyncio.to_thread(self._log_offsets.committed, places)
        ends: Mapping[Place, int] = {}
        if self._kafka.broker == "kafka":  # the embedded broker's ends are too low
            ends = await asyncio.to_thread(self._log_offsets.ends, places)
        starts: dict[Place, int] = {}
        for role, fold in zip(STATE_OF, folds, strict=True):
            name = self._table[role].name
            found = fold.recovered(_of_topic(name, committed), _of_topic(name, ends))
            starts |= {(name, place): offset for place, offset in found.items()}
        back = {place: committed[place] - start for place, start in starts.items() if start < committed[place]}
        if back:
            self._log.info("reading again behind what is committed", partitions=len(back), signals=sum(back.values()))
        for role in STATE_OF:
            again = sum(count for (topic, _), count in back.items() if topic == self._table[role].name)
            self._counts.add("read_again_total", again, role)
        return starts

    def _fold(self, app: "AppT", role: str, fleet: FleetWatch | None, registry: SchemaSource | None) -> "FoldTask":
        from headrace.streams.app import state_table, subscribe  # noqa: PLC0415 - as above
        from headrace.streams.fold_task import FoldTask  # noqa: PLC0415 - as above
        from headrace.streams.letters import KafkaLetters  # noqa: PLC0415 - as above

        signals: Topic = self._table[role]
        state: Topic = self._table[STATE_OF[role]]
        fold = FoldTask(
            app,
            KeyedFold(KINDS[role], self._settings, self._partitions[role], registry),
            state_table(app, state, self._partitions[role]),
            role=role,
            topics=(signals.name, state.name),
            letters=KafkaLetters(app, self._table[DEAD_LETTERS].name, self._log),
            batches=Batches(self._settings.batch_max),
            wait_s=self._settings.batch_wait_ms / 1000,
            fleet=fleet,
            continuity=self._continuity,
            lease=self._lease,
            progress=self._progress,
            counts=self._counts,
            log=self._log,
        )
        subscribe(app, signals, fold.receive)
        return fold

    async def _serve(
        self,
        app: "AppT",
        folds: "list[FoldTask]",
        following: "asyncio.Task[None]",
        stopped: Callable[[], bool],
    ) -> None:
        parts = {"fleet": following}
        parts |= {f"fold of {role}": asyncio.create_task(f.run()) for role, f in zip(STATE_OF, folds, strict=True)}
        # Faust stops the flow when partitions are revoked, not before the first are assigned.
        app.consumer.stop_flow()
        starting = asyncio.create_task(app.start())
        watchdog = Watchdog(self._log_offsets, self._settings.stall_ms, self._progress)
        watching: asyncio.Task[bool] | None = None
        ready = False
        self._guard.part = "the event loop"
        while not stopped():
            try:
                self._lease.look()
            except LeaseLostError as error:
                self._die("the partitions may be another's", error)
            for name, task in {**parts, "start of Faust": starting}.items():
                if task.done() and task.exception() is not None:
                    self._die(f"{name} broke", task.exception())
            if app.crashed:
                self._die("Faust crashed", app.crash_reason)
            if not ready and starting.done():
                ready = True
                owned = self._signals_of(app.consumer.assignment())
                settle_memory()
                self._log.info("streams ready", partitions=len(owned), pid=os.getpid())
                parts["lag"] = asyncio.create_task(self._follow_lag(app))
            if watching is not None and watching.done():
                if watching.result():
                    self._die(f"signals wait and nothing moved for {self._settings.stall_ms} ms", None)
                watching = None
            if ready and watching is None:
                # Beside the loop: a broker that is away keeps it waiting for seconds.
                watching = asyncio.create_task(watchdog.is_stalled(self._signals_of(app.consumer.assignment())))
            await asyncio.sleep(TICK_S)
        folding = [parts[f"fold of {role}"] for role in STATE_OF]
        await self._stop(app, folds, folding)

    async def _follow_lag(self, app: "AppT") -> None:
        if not self._settings.metrics_port:
            return
        roles = {self._table[role].name: role for role in STATE_OF}
        await follow_lag(
            self._counts,
            self._log_offsets,
            lambda: self._signals_of(app.consumer.assignment()),
            self._progress.next_offsets,
            roles,
        )

    async def _stop(self, app: "AppT", folds: "list[FoldTask]", folding: "list[asyncio.Task[None]]") -> None:
        consumer: Any = app.consumer

        async def finish_folds() -> None:
            consumer.stop_flow()
            for fold in folds:
                fold.finish()
            await asyncio.gather(*folding)

        async def commit() -> None:
            # The first may only have waited for one that began before the last batch was acknowledged.
            await consumer.commit()
            await consumer.commit()

        unfinished = await depart(
            (
                Part("the batch in hand", WRITING_S, finish_folds),
                Part("the commit of its offsets", COMMITTING_S, commit),
                Part("leaving the group", LEAVING_S, consumer.leave_group),
            ),
            self._guard,
            self._log,
        )
        self._log.info("streams stopped", unfinished=unfinished, **self._progress.counts())
        _end(STOPPED_SHORT if unfinished else 0)

    def _signals_of(self, assigned: Collection[Any]) -> list[Place]:
        names = {self._table[role].name for role in STATE_OF}
        return sorted((tp.topic, tp.partition) for tp in assigned if tp.topic in names)

    def _client_error(self, sentence: str) -> None:
        self._log.debug("kafka client", error=sentence)

    def _die(self, why: str, error: BaseException | None) -> None:
        """End at once. Faust's own way out would acknowledge what it holds."""
        self._log.error(why, error=repr(error), exc_info=error, **self._progress.counts())
        _end(FAILED)


def _of_topic(name: str, offsets: Mapping[Place, int]) -> dict[int, int]:
    return {partition: offset for (topic, partition), offset in offsets.items() if topic == name}


def _end(status: int) -> None:
    """End the process without waiting for the threads and tasks of Faust and its client, which may never end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)
