"""The live fold of one topic, with a table, a consumer and a producer of the test's own."""

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.schemas.codec import decode, encode, must
from headrace.schemas.dead_letters import DeadLetter
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand
from headrace.schemas.state import DemandState
from headrace.schemas.topics import SIGNALS_DEMAND
from headrace.streams.batches import Batches
from headrace.streams.continuity import Continuity
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.partitioner import partition_of
from headrace.streams.fold_task import FoldTask
from headrace.streams.lease import Lease
from headrace.streams.ports import NoCounts
from headrace.streams.progress import Progress
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings()
ROUTES = [name for name in "abcdefgh" if partition_of(f"{name}|m|default".encode(), 2) == 0][:3]


class Said:
    def __init__(self) -> None:
        self.events: list[str] = []

    def debug(self, event: str, **_: object) -> None:
        self.events.append(event)

    info = warning = error = debug


class Kafka:
    """Takes everything at once, and remembers it."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, bytes | None]] = []
        self.letters: list[list[int]] = []
        self.committable: dict[int, int] = {}

    async def send(self, topic: str, key: bytes, value: bytes | None, *_: object) -> "asyncio.Future[None]":
        self.sent.append((topic, key, value))
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer.set_result(None)
        return answer

    async def deliver(self, letters: Sequence[DeadLetter]) -> None:
        self.letters.append([letter.offset for letter in letters])

    def done(self, _: str, next_offsets: Mapping[int, int]) -> None:
        self.committable.update(next_offsets)


class Table:
    def __init__(self, states: Mapping[bytes, bytes], order: list[bytes]) -> None:
        self.data = dict(states)
        self.places = {key: place for place, key in enumerate(order)}


def key(route: str) -> bytes:
    return f"{route}|m|default".encode()


def record(route: str, offset: int, offered: int = 3) -> SimpleNamespace:
    end = 1_000 * (offset + 1)
    value = encode(Demand(route, "m", "default", "gw", end - 1_000, end, offered, 0, 0))
    return SimpleNamespace(
        topic="signals", partition=0, offset=offset, timestamp=end, key=key(route), value=value, headers=()
    )


def states(*folded: tuple[str, int]) -> dict[bytes, bytes]:
    fold = KeyedFold(KINDS[SIGNALS_DEMAND], SETTINGS, 2)
    found: dict[bytes, bytes] = {}
    for route, offset in folded:
        one = record(route, offset)
        raw = RawRecord(one.topic, one.partition, one.offset, one.timestamp, one.key, one.value)
        found |= fold.fold([raw], found.get, None).states
    return found


def task_of(kafka: Kafka, table: Table, said: Said) -> FoldTask:
    def first_from(_: object, offset: int) -> int:
        return offset

    log_offsets: Any = SimpleNamespace(first_from=first_from)
    continuity = Continuity(log_offsets)
    continuity.begin({("signals", 0): 0})
    app: Any = SimpleNamespace(consumer=kafka, producer=kafka, consumer_generation_id=1)
    return FoldTask(
        app,
        KeyedFold(KINDS[SIGNALS_DEMAND], SETTINGS, 2),
        table,
        role=SIGNALS_DEMAND,
        topics=("signals", "state"),
        letters=kafka,
        batches=Batches(100),
        wait_s=0.0,
        fleet=None,
        continuity=continuity,
        lease=Lease(60.0),
        progress=Progress(),
        counts=NoCounts(),
        log=said,
    )


async def folded(task: FoldTask, records: list[Any], generation: int = 1) -> None:
    running = asyncio.create_task(task.run())
    await task.receive(records, generation)
    await asyncio.sleep(0.1)
    task.finish()
    await asyncio.wait_for(running, 60)


def test_states_go_out_in_the_order_of_their_applied_offsets_and_the_batch_is_done_behind_its_last() -> None:
    kafka, said = Kafka(), Said()
    first, second, third = ROUTES

    async def run() -> None:
        task = task_of(kafka, Table({}, []), said)
        task.recovered({0: 0}, {})
        await folded(task, [record(first, 0), record(second, 1), record(third, 2), record(first, 3)])

    asyncio.run(run())
    assert [sent for _, sent, _ in kafka.sent] == [key(second), key(third), key(first)]
    applied = [must(decode(DemandState, value)).applied_offset for _, _, value in kafka.sent]
    assert applied == [1, 2, 3]
    assert kafka.committable == {0: 4}


def test_nothing_is_folded_before_the_recovery_nor_of_an_earlier_generation() -> None:
    kafka, said = Kafka(), Said()

    async def run() -> None:
        await folded(task_of(kafka, Table({}, []), said), [record(ROUTES[0], 0)])
        task = task_of(kafka, Table({}, []), said)
        task.recovered({0: 0}, {})
        await folded(task, [record(ROUTES[0], 0)], generation=0)

    asyncio.run(run())
    assert (kafka.sent, kafka.committable) == ([], {})


def test_what_waits_is_left_when_partitions_are_revoked_until_they_are_recovered_again() -> None:
    kafka, said = Kafka(), Said()

    async def run() -> None:
        task = task_of(kafka, Table({}, []), said)
        task.recovered({0: 0}, {})
        await task.receive([record(ROUTES[0], 0)], 1)
        await task.revoked({0})
        await folded(task, [record(ROUTES[0], 0)])

    asyncio.run(run())
    assert kafka.sent == []


def test_a_partition_is_read_from_behind_a_state_that_is_older_than_one_written_before_it() -> None:
    first, second, third = ROUTES
    table = Table(states((first, 3), (second, 9), (third, 7)), [key(first), key(second), key(third)])
    task = task_of(Kafka(), table, Said())
    assert task.recovered({0: 10, 1: 5}, {}) == {0: 8, 1: 5}


def test_refused_signals_that_are_read_again_are_not_written_to_the_dead_letters_again() -> None:
    kafka, said = Kafka(), Said()

    async def run() -> None:
        task = task_of(kafka, Table({}, []), said)
        task.recovered({0: 1}, {})
        await folded(task, [record(ROUTES[0], 0, offered=-1), record(ROUTES[0], 1, offered=-2)])

    asyncio.run(run())
    assert (kafka.sent, kafka.letters) == ([], [[1]])


def test_all_that_a_batch_refuses_is_handed_over_at_once_and_its_offsets_are_done_behind_it() -> None:
    kafka, said = Kafka(), Said()

    async def run() -> None:
        task = task_of(kafka, Table({}, []), said)
        task.recovered({0: 0}, {})
        await folded(task, [record(ROUTES[0], offset, offered=-1) for offset in range(80)])

    asyncio.run(run())
    assert [len(letters) for letters in kafka.letters] == [80]
    assert kafka.committable == {0: 80}


@pytest.mark.parametrize(("end", "left"), [(4, 0), (9, 0), (10, 2)])
def test_states_ahead_of_their_log_are_deleted_with_all_of_their_partition(end: int, left: int) -> None:
    kafka, said = Kafka(), Said()
    table = Table(states((ROUTES[0], 3), (ROUTES[1], 9)), [key(ROUTES[0]), key(ROUTES[1])])

    async def run() -> None:
        task = task_of(kafka, table, said)
        task.recovered({0: 0}, {0: end})
        await folded(task, [])

    asyncio.run(run())
    assert len(table.data) == left
    assert [value for _, _, value in kafka.sent] == [None] * (2 - left)
