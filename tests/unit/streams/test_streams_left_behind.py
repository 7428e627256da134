"""What is fetched while nothing flows is fetched again: a fetch under way when Faust seeks is answered from there."""

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from faust.types import TP

from headrace.streams.app import CommittedConsumer

HERE, THERE = TP("signals", 0), TP("signals", 1)


class Fetching(CommittedConsumer):
    """The consumer over two logs of ten records that lie in memory."""

    should_stop = False  # type: ignore[assignment]  # Faust's property asks a running service

    def __init__(self, flows: Sequence[bool]) -> None:
        self.app: Any = SimpleNamespace(consumer_generation_id=1)
        self.flow_active = False
        self.flows = list(flows)
        self.places = {HERE: 0, THERE: 0}
        self.given: dict[TP, list[int]] = {HERE: [], THERE: []}
        self._takers = {"signals": self.take}
        self._left = {}

    async def take(self, records: Sequence[Any], generation: int) -> None:
        assert generation == 1
        self.given[records[0].tp] += [record.offset for record in records]

    async def _wait_next_records(self, timeout: float) -> Any:  # noqa: ANN401, ARG002, ASYNC109 - Faust's signature
        records = {
            tp: [SimpleNamespace(tp=tp, offset=offset) for offset in range(place, 10)]
            for tp, place in self.places.items()
            if place < 10
        }
        self.places = dict.fromkeys(self.places, 10)
        self.flow_active = self.flows.pop(0)
        return records, None

    def assignment(self) -> set[TP]:
        return set(self.places)

    async def position(self, tp: TP) -> int | None:
        return self.places[tp]

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self.places |= dict(partitions)

    async def fetch(self) -> None:
        async for _ in self.getmany(1.0):
            raise AssertionError("nothing goes Faust's way")


def test_records_that_came_while_nothing_flowed_come_again_whole() -> None:
    consumer = Fetching(flows=[False, True, True])
    for _ in range(3):
        asyncio.run(consumer.fetch())
    assert consumer.given == {HERE: list(range(10)), THERE: list(range(10))}


def test_what_came_in_between_lies_behind_what_was_left_and_is_not_taken_first() -> None:
    consumer = Fetching(flows=[False, True, True])
    asyncio.run(consumer.fetch())
    consumer.places[HERE] = 4  # Faust sought meanwhile
    asyncio.run(consumer.fetch())
    assert consumer.given == {HERE: [], THERE: []}
    asyncio.run(consumer.fetch())
    assert consumer.given == {HERE: list(range(10)), THERE: list(range(10))}


def test_it_never_goes_forwards_to_what_was_left() -> None:
    consumer = Fetching(flows=[False, True, True])
    consumer.places = {HERE: 7, THERE: 0}
    asyncio.run(consumer.fetch())
    consumer.places[HERE] = 2  # sought to before what was left
    asyncio.run(consumer.fetch())
    asyncio.run(consumer.fetch())
    assert consumer.given[HERE] == list(range(2, 10))
    assert consumer.given[THERE] == list(range(10))


def test_partitions_that_another_owns_by_now_are_left_to_it() -> None:
    consumer = Fetching(flows=[False, True, True])
    asyncio.run(consumer.fetch())
    del consumer.places[THERE]
    for _ in range(2):
        asyncio.run(consumer.fetch())
    assert consumer.given == {HERE: list(range(10)), THERE: []}
