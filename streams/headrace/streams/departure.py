"""Leaving in good order and in bounded time, part by part.

    flow stopped -> batch in hand written and acknowledged -> offsets committed -> group left -> the process ends

Faust's own stop is passed by. It joins its consumer's thread from within the event loop, swallows the cancellation of
what it waits for, and waits for ever for signals that it holds itself; a rebalance or a broker that was away at that
moment was enough to hang it. What is in the buffers here is left: it was not acknowledged and comes again. Each part
has its own time, and what does not end in it is named and left behind.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from headrace.schemas.log import Log
from headrace.streams.stop_guard import StopGuard

WRITING_S = 5.0
COMMITTING_S = 5.0
LEAVING_S = 1.0
STOP_S = 12.0
"""More than the parts together: from then on the guard ends the process."""


class Part(NamedTuple):
    """One part of leaving: its name, the time that it has, and what it does."""

    name: str
    within_s: float
    run: Callable[[], Awaitable[object]]


async def depart(parts: Sequence[Part], guard: StopGuard, log: Log) -> tuple[str, ...]:
    """Run the parts in order and give the names of those that did not end, or failed; each is said.

    None is waited for beyond its time, not even for it to take note of that.
    """
    unfinished: list[str] = []
    for part in parts:
        guard.part = part.name
        task = asyncio.ensure_future(part.run())
        await asyncio.wait({task}, timeout=part.within_s)
        if not task.done():
            log.warning("part of the stop did not end in time", part=part.name, within_s=part.within_s)
            unfinished.append(part.name)
        elif task.cancelled() or task.exception() is not None:
            log.warning("part of the stop failed", part=part.name, error=_why(task))
            unfinished.append(part.name)
    return tuple(unfinished)


def _why(task: "asyncio.Future[object]") -> str:
    return "cancelled" if task.cancelled() else repr(task.exception())
