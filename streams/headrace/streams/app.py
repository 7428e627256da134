"""The Faust application: what is switched off, what is translated, and a table over each of our state topics.

Import only after the event loop's policy is set: Faust binds to it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import faust
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from faust.types import TP, AppT
from yarl import URL

from headrace.schemas.bus.security import read_security
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.topics import MAX_MESSAGE_BYTES, Topic
from headrace.streams.credentials import faust_credentials
from headrace.streams.log_offsets import Place
from headrace.streams.ports import RecoveredTable
from headrace.streams.settings import StreamsSettings

EMBEDDED_SESSION_TIMEOUT_MS = 6_000
"""The embedded broker's first join takes half of the session timeout."""
EMBEDDED_FETCH_WAIT_MS = 50
MAX_BYTES = MAX_MESSAGE_BYTES
REQUEST_TIMEOUT_S = 30.0
COMMIT_EVERY_S = 1.0


Taker = Callable[[Sequence[Any], int], Awaitable[None]]
"""Takes records of one partition, as aiokafka gives them, fetched in a generation of the group."""


class CommittedThread(AIOKafkaConsumerThread):
    """Reads what is committed alone: Faust would fold the records of aborted transactions, too, and has no setting."""

    def _create_worker_consumer(self, transport: Any) -> Any:  # noqa: ANN401 - aiokafka's client, untyped
        client: Any = super()._create_worker_consumer(transport)
        client._isolation_level = "read_committed"  # noqa: SLF001 - read when the client starts
        return client

    async def leave_group(self) -> None:
        """Tell the broker that this member is gone, so that its partitions need not wait for its session to end."""
        if self._consumer is not None:
            await self.call_thread(self._leave_group)

    async def _leave_group(self) -> None:
        coordinator = cast("Any", self._consumer)._coordinator  # noqa: SLF001 - aiokafka leaves only in its own stop
        if coordinator is None:
            return  # made, and not started: it has joined no group
        # Closing waits for the coordination to end, and that for a rebalance, and that for the fold.
        coordination = coordinator._coordination_task  # noqa: SLF001 - as above
        coordination.cancel()
        await asyncio.wait({coordination})
        await coordinator.close()


class StateTable(faust.Table):  # type: ignore[type-arg]  # Faust is typed in part
    """Faust's table that remembers where in the changelog each key's state lay when it was recovered."""

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        """Take in what recovery read."""
        events = list(batch)
        super().apply_changelog_batch(events)
        self.places.update({event.message.key: event.message.offset for event in events})

    @cached_property
    def places(self) -> dict[bytes, int]:
        """By key, the offset in the changelog of its state as recovered; tombstones too."""
        return {}


class CommittedConsumer(Consumer):
    """Faust's consumer, reading what is committed, from where it is told, and with a way out of the group.

    Records of the topics that have a taker go to it, a partition's many at once; those of changelogs go Faust's way. A
    message through Faust's streams costs twice what its fold does, and its book of acknowledged offsets a lookup each;
    here the taker says up to where a partition is done.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Faust's own
        super().__init__(*args, **options)
        self._starts: dict[Place, int] = {}
        self._takers: dict[str, Taker] = {}
        self._done: dict[TP, int] = {}
        self._left: dict[TP, int] = {}

    def give(self, topic: str, taker: Taker) -> None:
        """Have a topic's records taken by `taker`, which may wait until it has room."""
        self._takers[topic] = taker

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 - Faust's signature
        """Fetch; hand the records of taken topics on, and give the others."""
        records, _ = await self._wait_next_records(timeout)
        generation = self.app.consumer_generation_id
        taken = {tp: batch for tp, batch in (records or {}).items() if tp.topic in self._takers}
        if self._left and self._flows(generation):
            self._leave(taken)  # it lies behind what was left
            taken = {}
            await self._go_back()
        for tp, batch in taken.items():
            if self._flows(generation):
                await self._takers[tp.topic](batch, generation)
            else:
                self._leave({tp: batch})
        for tp, batch in (records or {}).items():
            if tp.topic in self._takers:
                continue
            for record in batch:
                # What is left here is dropped: Faust reads a changelog anew in each recovery.
                if not self._flows(generation):
                    return
                yield tp, self._to_message(tp, record)

    def _leave(self, taken: Mapping[TP, Sequence[Any]]) -> None:
        """Note records that came while nothing flows: a fetch under way when Faust sought is answered from there."""
        for tp, batch in taken.items():
            self._left[tp] = min(batch[0].offset, self._left.get(tp, batch[0].offset))

    async def _go_back(self) -> None:
        """Seek to what was left, and never forwards; what is read again is dropped by the guard in each state."""
        owned = self.assignment()
        left, self._left = self._left, {}
        places: dict[TP, int] = {}
        for tp in left.keys() & owned:
            position = await self.position(tp)
            places[tp] = left[tp] if position is None else min(left[tp], position)
        await self.seek_wait(places)

    def _flows(self, generation: int) -> bool:
        return self.flow_active and not self.should_stop and self.app.consumer_generation_id == generation

    def done(self, topic: str, next_offsets: Mapping[int, int]) -> None:
        """Take note that a topic's partitions are done up to these offsets: they may be committed."""
        self._done.update({TP(topic, partition): offset for partition, offset in next_offsets.items()})

    async def force_commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:  # noqa: ARG002, FBT001, FBT002 - Faust's signature
        """Commit up to where the owned partitions are done; Faust never asks for some topics alone."""
        if not self._done:
            return False  # nor may there be a client to ask for its assignment yet
        owned = self.assignment()
        self._done = {tp: offset for tp, offset in self._done.items() if tp in owned}
        waiting = {tp: offset for tp, offset in self._done.items() if offset > (self._committed_offset[tp] or 0)}
        if not waiting:
            return False
        return bool(await self._commit_offsets(waiting, start_new_transaction=start_new_transaction))

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Look at nothing: Faust looks for hanging streams, and there are none; `Watchdog` looks at all of it."""

    def _new_consumer_thread(self) -> CommittedThread:
        return CommittedThread(self, loop=self.loop, beacon=self.beacon)

    def start_from(self, starts: Mapping[Place, int]) -> None:
        """Say where each partition is taken up once Faust seeks, which it does before it lets signals flow."""
        self._starts = dict(starts)

    async def perform_seek(self) -> None:
        """Seek what is committed, and then what was asked for. Faust leaves a partition without a commit as it is."""
        self._left = {}
        await super().perform_seek()
        owned = self.assignment()
        await self.seek_wait({tp: offset for place, offset in self._starts.items() if (tp := TP(*place)) in owned})

    def resume_flow(self) -> None:
        """Let signals flow. Whenever they do not, Faust seeks again: not back to here, then."""
        self._starts = {}
        super().resume_flow()

    async def leave_group(self) -> None:
        """Leave the consumer group; nothing is consumed after that."""
        await cast("CommittedThread", self._thread).leave_group()


def session_timeout_s(kafka: KafkaSettings, settings: StreamsSettings) -> float:
    """Give the silence after which the broker takes a worker's partitions away."""
    return (EMBEDDED_SESSION_TIMEOUT_MS if kafka.broker == "embedded" else settings.session_timeout_ms) / 1000


def make_app(kafka: KafkaSettings, settings: StreamsSettings) -> AppT:
    """Give the application, not started. Its data folder is made, since Faust makes only the last part of it."""
    folder = Path(settings.data_dir)
    folder.mkdir(parents=True, exist_ok=True)
    embedded = kafka.broker == "embedded"
    session_s = session_timeout_s(kafka, settings)
    app = faust.App(
        settings.group_id,
        broker=[URL(f"aiokafka://{address.strip()}") for address in kafka.bootstrap_servers.split(",")],
        broker_client_id=kafka.client_id,
        broker_credentials=faust_credentials(read_security(kafka.options)),
        broker_session_timeout=session_s,
        broker_heartbeat_interval=session_s / 4,
        broker_commit_interval=COMMIT_EVERY_S,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=MAX_BYTES,
        datadir=folder,
        store="memory://",
        # Faust's web server binds every interface; its leader topic and topic creation are not ours to have.
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        table_standby_replicas=0,
        producer_acks=-1,
        producer_linger=0.0,
        producer_request_timeout=REQUEST_TIMEOUT_S,
        producer_max_request_size=MAX_BYTES,
        # Recovery asks the embedded broker for the last offset, and gets the base of its last batch.
        producer_max_batch_size=1 if embedded else MAX_BYTES // 8,
        stream_recovery_delay=0.0,
        stream_wait_empty=True,
        cython_optimizations=True,
        worker_redirect_stdouts=False,
        Table=StateTable,
    )
    cast("Any", app.transport).Consumer = CommittedConsumer
    return app


def shorten_fetches(app: AppT) -> None:
    """Let fetches wait 50 ms at most: the embedded broker answers one when its wait is over, not when records came.

    Faust asks for 1.5 s and has no setting for it: half a second of delay on that broker, none on Kafka. To be called
    once partitions are assigned; it holds from the next fetch on.
    """
    client: Any = app.consumer
    client._thread._ensure_consumer()._fetcher._fetch_max_wait_ms = EMBEDDED_FETCH_WAIT_MS  # noqa: SLF001 - no setting


def subscribe(app: AppT, topic: Topic, taker: Taker) -> None:
    """Have a topic's records taken as raw bytes: what is malformed is our own to refuse, Faust would skip it."""
    signals = app.topic(
        topic.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw", allow_empty=True
    )
    app.topics.add(signals)
    cast("Any", app.consumer).give(topic.name, taker)


def state_table(app: AppT, topic: Topic, partitions: int) -> RecoveredTable:
    """Give the table whose changelog is our own compacted topic, under our name."""
    changelog = app.topic(
        topic.name,
        partitions=partitions,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        compacting=True,
        acks=False,
        internal=True,
        allow_empty=True,
    )
    untyped = cast("Any", app)
    made = untyped.Table(
        topic.role,
        key_type=bytes,
        value_type=bytes,
        changelog_topic=changelog,
        partitions=partitions,
        use_partitioner=True,
    )
    return cast("RecoveredTable", made)
