"""A bounded buffer between a consumer that gives what it fetched and a fold that takes batches of its own size.

    add() waits while `limit` items are held          take(wait_s) gives what came within it of the first, or `limit`
    clear(): what is held is left                     close(): and nothing more is taken in

Faust's own `take_events` acknowledges a batch when its body is left, by an exception or a cancellation too: a batch
that was not written would be lost. Here taking acknowledges nothing; that is the fold's own last step.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Batches(Generic[T]):
    """Items between one producer task and one consumer task of the same event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: list[T] = []
        self.closed = False
        self._some = asyncio.Event()
        self._full = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def add(self, items: Sequence[T]) -> None:
        """Hold items in their order, waiting while the buffer is full."""
        begin = 0
        while begin < len(items):
            await self._room.wait()
            if self.closed:
                return
            end = begin + self._limit - len(self._items)
            self._items += items[begin:end]
            begin = end
            self._some.set()
            if len(self._items) >= self._limit:
                self._room.clear()
                self._full.set()

    async def take(self, wait_s: float, idle_s: float) -> list[T]:
        """Give the held items in order; an empty list when none came within `idle_s`, and at once when closed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._some.wait(), idle_s)
            await asyncio.wait_for(self._full.wait(), wait_s)
        if self.closed:
            return []
        taken, self._items = self._items, []
        self._some.clear()
        self._full.clear()
        self._room.set()
        return taken

    def clear(self) -> None:
        """Leave what is held: it comes again to whoever goes on."""
        self._items.clear()
        self._some.clear()
        self._full.clear()
        self._room.set()

    def close(self) -> None:
        """Leave what is held, for ever. Whoever waits is let go."""
        self.closed = True
        self._items.clear()
        for event in (self._some, self._full, self._room):
            event.set()
