"""Leaving in bounded time: parts that hang, fail or swallow their cancellation, and the guard over all of them."""

import asyncio
import threading
from contextlib import suppress

from headrace.streams.batches import Batches
from headrace.streams.departure import COMMITTING_S, LEAVING_S, STOP_S, WRITING_S, Part, depart
from headrace.streams.stop_guard import STOPPED_SHORT, StopGuard


class Said:
    """A log that keeps what it was told, with its fields."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, object]]] = []

    def debug(self, event: str, **fields: object) -> None:
        self.said.append((event, fields))

    info = warning = error = debug


def guard(log: Said) -> StopGuard:
    return StopGuard(lambda: False, 60.0, log)


async def fine() -> None: ...


async def broken() -> None:
    raise RuntimeError("no coordinator")


async def deaf(over: asyncio.Event) -> None:
    """Take no cancellation: as a service that shields what it waits for."""
    while not over.is_set():
        with suppress(asyncio.CancelledError):
            await over.wait()


async def cancels_itself() -> None:
    raise asyncio.CancelledError


def test_every_part_has_its_turn_whatever_became_of_the_one_before() -> None:
    log, ran = Said(), []

    async def last() -> None:
        ran.append("last")

    parts = [
        Part("one", 5.0, fine),
        Part("two", 5.0, broken),
        Part("three", 5.0, cancels_itself),
        Part("four", 5.0, last),
    ]
    assert asyncio.run(depart(parts, guard(log), log)) == ("two", "three")
    assert ran == ["last"]
    assert [(event, fields["error"]) for event, fields in log.said] == [
        ("part of the stop failed", "RuntimeError('no coordinator')"),
        ("part of the stop failed", "cancelled"),
    ]


def test_a_part_that_never_ends_is_named_and_left_behind() -> None:
    log = Said()
    watching = guard(log)

    async def run() -> tuple[str, ...]:
        over = asyncio.Event()
        parts = [Part("the batch in hand", 0.02, lambda: deaf(over)), Part("leaving the group", 5.0, fine)]
        unfinished = await depart(parts, watching, log)
        over.set()
        return unfinished

    assert asyncio.run(run()) == ("the batch in hand",)
    assert log.said == [
        ("part of the stop did not end in time", {"part": "the batch in hand", "within_s": 0.02}),
    ]
    assert watching.part == "leaving the group"


def test_the_parts_together_have_less_time_than_the_guard_gives() -> None:
    assert WRITING_S + COMMITTING_S + LEAVING_S < STOP_S < 30


def test_the_guard_ends_a_process_that_blocks_and_says_where_it_is_stuck() -> None:
    log, asked = Said(), threading.Event()
    ends: list[int] = []
    watching = StopGuard(asked.is_set, 0.01, log, ends.append)
    thread = watching.start()
    watching.part = "the commit of its offsets"
    assert not ends
    asked.set()
    thread.join(60)
    assert ends == [STOPPED_SHORT]
    assert log.said == [
        ("stopped short: what was not acknowledged comes again", {"stuck_in": "the commit of its offsets"})
    ]


def test_a_closed_buffer_gives_nothing_takes_nothing_and_lets_go_whoever_waits() -> None:
    async def run() -> tuple[list[int], list[int]]:
        batches: Batches[int] = Batches(limit=1)
        taking = asyncio.create_task(batches.take(60.0, 60.0))
        await asyncio.sleep(0)
        batches.close()
        waited = await taking
        full: Batches[int] = Batches(limit=1)
        await full.add([1])
        adding = asyncio.create_task(full.add([2]))
        await asyncio.sleep(0)
        full.close()
        await adding
        return waited, await full.take(60.0, 60.0)

    assert asyncio.run(asyncio.wait_for(run(), 60)) == ([], [])
