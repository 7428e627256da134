"""Time bounds of one request, phase by phase, by one timer that is set anew.

async with Deadline(total_s) as deadline:
    deadline.phase("first byte", 120.0)     TimeoutError after 120 s, or at the total, whichever comes first
"""

import asyncio
from types import TracebackType


class Deadline:
    """A running bound. `expired` says which phase was too long, after a TimeoutError."""

    __slots__ = ("_ends", "_loop", "_timer", "name", "seconds")

    def __init__(self, total_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._ends = self._loop.time() + total_s
        self._timer = asyncio.timeout_at(self._ends)
        self.name = "the request"
        self.seconds = total_s

    async def __aenter__(self) -> "Deadline":
        await self._timer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._timer.__aexit__(kind, error, trace)

    def phase(self, name: str, seconds: float) -> None:
        """Begin a phase: from now it may take so long, and never longer than the total allows."""
        self.name, self.seconds = name, seconds
        self._timer.reschedule(min(self._ends, self._loop.time() + seconds))
