"""One signals topic: records to batches, batches through the fold, states and dead letters to Kafka, then the offsets.

    consumer -> Batches -> KeyedFold -> table and state topic, dead letters -> delivered -> acknowledged

The last two in this order: a crash between them delivers the batch again, and the offset inside each state drops it.
States are sent in the order of their applied offsets, by which a recovery knows one that is out of date (`seek_back`).
A record of an earlier generation of the group is dropped and not acknowledged: it comes again, to whoever owns its
partition now, and folding it out of order would make the guard drop those before it. While partitions change hands
nothing is folded: the batch in hand is finished, and what waits is left.
"""

import asyncio
import math
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from faust.types import AppT

from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import DeadLetter, Rejected
from headrace.schemas.log import Log
from headrace.schemas.metric_table import Counts
from headrace.schemas.raw import RawRecord
from headrace.streams.batches import Batches
from headrace.streams.continuity import Continuity
from headrace.streams.core.keyed import Folded, KeyedFold
from headrace.streams.core.partitioner import partition_of
from headrace.streams.delivery import Outgoing, deliver
from headrace.streams.fleet_watch import FleetWatch
from headrace.streams.lease import Lease
from headrace.streams.metrics import count_batch
from headrace.streams.ports import Letters, RecoveredTable
from headrace.streams.progress import Progress
from headrace.streams.seek_back import of_another_log, start_offset

IDLE_S = 0.25
SHOW_SERIES_S = 5.0
"""How often the series held are counted anew: it goes through every key."""
MAX_WAITS = 10
"""Under load a batch is collected for at most this many times the configured wait."""


class FoldTask:
    """The live fold of one signals topic."""

    def __init__(  # noqa: PLR0913 - composed by its constructor, each part once
        self,
        app: AppT,
        fold: KeyedFold,
        table: RecoveredTable,
        *,
        role: str,
        topics: tuple[str, str],
        letters: Letters,
        batches: Batches[tuple[int, RawRecord]],
        wait_s: float,
        fleet: FleetWatch | None,
        continuity: Continuity,
        lease: Lease,
        progress: Progress,
        counts: Counts,
        log: Log,
    ) -> None:
        self._app = app
        self._fold = fold
        self._table = table
        self._role = role
        self._signals, self._state = topics
        self._letters = letters
        self._batches = batches
        self._wait_s = wait_s
        self._fleet = fleet
        self._continuity = continuity
        self._lease = lease
        self._progress = progress
        self._counts = counts
        self._log = log
        self._swept: tuple[int, int] | None = None
        self._another_log: set[int] = set()
        self._series_shown_s = -math.inf
        self._committed: Mapping[int, int] = {}
        self._owning = False
        self._hand = asyncio.Lock()

    async def receive(self, records: Sequence[Any], generation: int) -> None:
        """Take records of one partition as aiokafka gives them; waits while the buffer is full."""
        await self._batches.add([(generation, raw_record(record)) for record in records])

    async def run(self) -> None:
        """Fold until asked to finish; the batch in hand is written and acknowledged before it returns.

        A batch is collected for at least as long as the last one took: behind a backlog batches grow, until each
        touched key's state is written once for several of its signals.
        """
        took_s = 0.0
        while not self._batches.closed:
            wait_s = max(self._wait_s, min(took_s, MAX_WAITS * self._wait_s))
            taken = await self._batches.take(wait_s, IDLE_S)
            began_s = time.monotonic()
            async with self._hand:
                await self._fold_taken(taken)
            took_s = time.monotonic() - began_s

    async def _fold_taken(self, taken: Sequence[tuple[int, RawRecord]]) -> None:
        if not self._owning:
            return
        await self._begin_anew()
        await self._sweep()
        current = [record for generation, record in taken if generation == self._app.consumer_generation_id]
        if current:
            await self._continuity.check(((self._signals, record.partition), record.offset) for record in current)
            await self._process(current)

    def finish(self) -> None:
        """Take no further batch."""
        self._batches.close()

    def recovered(self, committed: Mapping[int, int], ends: Mapping[int, int]) -> Mapping[int, int]:
        """Give where each partition is read from, once the states are there and before their signals come.

        Args:
            committed: the group's offset, by owned partition.
            ends: the offset after the last of each partition's log, where the broker says it rightly.
        """
        applied: dict[int, list[int]] = {}
        places, read = self._table.places, self._table.data.get
        for key in sorted(places, key=places.__getitem__):
            value = read(key)
            state = None if value is None else decode(self._fold.kind.state, value)
            if state is not None and not isinstance(state, Rejected):
                applied.setdefault(partition_of(key, self._fold.partitions), []).append(state.applied_offset)
        self._committed = committed
        self._owning = True
        self._another_log = {place for place, end in ends.items() if of_another_log(applied.get(place, ()), end)}
        return {place: start_offset(offset, applied.get(place, ())) for place, offset in committed.items()}

    async def revoked(self, partitions: Container[int]) -> None:
        """Finish the batch in hand, and drop what is kept of partitions that other workers own from now on."""
        self._owning = False
        self._batches.clear()
        async with self._hand:
            kept = [partition for partition in range(self._fold.partitions) if partition not in partitions]
            self._fold.keep_partitions(kept)

    async def _process(self, records: Sequence[RawRecord]) -> None:
        began_s = time.monotonic()
        folded = self._fold.fold(records, self._stored, self._fleet)
        folded_s = time.monotonic()
        partitions = self._fold.partitions
        # By the last signal of each key: the order of the applied offsets.
        last = {record.key: place for place, record in enumerate(records)}
        written = sorted(folded.states.items(), key=lambda state: last.get(state[0], 0))
        outgoing = [Outgoing(self._state, partition_of(key, partitions), key, value) for key, value in written]
        self._table.data.update(folded.states)
        rejected = [letter for letter in folded.rejected if not self._is_said(letter)]
        self._lease.look()
        await deliver(self._app.producer, outgoing, self._log)
        await self._letters.deliver(rejected)
        next_offsets = {record.partition: record.offset + 1 for record in records}
        cast("Any", self._app.consumer).done(self._signals, next_offsets)
        self._progress.processed(self._signals, next_offsets, folded)
        said = replace(folded, rejected=tuple(rejected))
        self._count(len(records), said, {"fold": folded_s - began_s, "deliver": time.monotonic() - folded_s})
        for letter in rejected[:1]:
            self._log.warning(
                "signals refused",
                topic=self._signals,
                refused=len(rejected),
                first=letter.reason,
                detail=letter.detail,
            )

    def _count(self, signals: int, folded: Folded, took_s: Mapping[str, float]) -> None:
        count_batch(self._counts, self._role, signals, folded, took_s)
        if folded.newest_ms is not None:
            if time.monotonic() - self._series_shown_s >= SHOW_SERIES_S:
                self._counts.show("series_held", self._fold.series, self._role)
                self._series_shown_s = time.monotonic()
            self._counts.show("watermark_timestamp_seconds", folded.newest_ms / 1000, self._role)
            self._counts.show("watermark_delay_seconds", time.time() - folded.newest_ms / 1000, self._role)
        took_ms = {f"{step}_ms": round(1000 * seconds) for step, seconds in took_s.items()}
        self._log.debug("batch", topic=self._signals, signals=signals, states=len(folded.states), **took_ms)

    def _is_said(self, letter: DeadLetter) -> bool:
        """Say whether a refused signal is one that was committed before this worker took it up again."""
        return letter.offset < self._committed.get(letter.partition, 0)

    async def _begin_anew(self) -> None:
        """Delete the states of a partition that hold offsets which its log does not have: the topic was made anew.

        Their guard by offset would drop every signal up to there.
        """
        places, self._another_log = self._another_log, set()
        gone = [key for key in self._table.data if self._owns(places, key)] if places else []
        if gone:
            why = "states are ahead of their signals topic, which was deleted or cut: they begin anew"
            self._log.warning(why, topic=self._signals, states_deleted=len(gone))
            await self._delete(gone)

    async def _delete(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._fold.forget(key)
            del self._table.data[key]
        partitions = self._fold.partitions
        tombstones = [Outgoing(self._state, partition_of(key, partitions), key, None) for key in keys]
        self._lease.look()
        await deliver(self._app.producer, tombstones, self._log)

    async def _sweep(self) -> None:
        """Delete the state of every engine that left the fleet; looked for when the fleet or the assignment changed."""
        if self._fleet is None or not self._app.tables.actives_ready:
            return
        version = self._fleet.version, self._app.consumer_generation_id
        if version == self._swept:
            return
        self._counts.show("engines_known", len(self._fleet))
        owned = {tp.partition for tp in self._app.consumer.assignment() if tp.topic == self._signals}
        gone = [key for key in self._table.data if key not in self._fleet and self._owns(owned, key)]
        await self._delete(gone)
        if gone:
            self._log.info("engines left the fleet", states_deleted=len(gone))
        self._swept = version

    def _owns(self, owned: Container[int], key: bytes) -> bool:
        return partition_of(key, self._fold.partitions) in owned

    def _stored(self, key: bytes) -> bytes | None:
        return self._table.data.get(key)


def raw_record(record: Any) -> RawRecord:  # noqa: ANN401 - aiokafka ships no types
    """Give a record of aiokafka's as it lay in the log. A header without a value becomes one with no bytes."""
    return RawRecord(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple((name, value or b"") for name, value in record.headers),
    )
