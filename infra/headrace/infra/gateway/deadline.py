"""Time bounds of one request, phase by phase, by one timer that is set anew.

    async with Deadline(total_s) as deadline:               no bound before the first phase
        deadline.phase("first byte", 120.0)     TimeoutError after 120 s, or at the total, whichever comes first
        deadline.extend("next chunk", 60.0)     the same, for what comes again and again: up to a quarter later

The TimeoutError comes out of the `async with`; inside it, what waits is cancelled.
"""

import asyncio
from types import TracebackType
from typing import Final

SLACK: Final = 0.25


class Deadline:
    """A running bound. `name` and `seconds` say which phase was too long, after a TimeoutError."""

    __slots__ = ("_ends", "_loop", "_timer", "_until", "name", "seconds")

    def __init__(self, total_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._ends = self._loop.time() + total_s
        self._until = self._ends
        self._timer = asyncio.timeout_at(None)  # set by the first phase: each request has one at once
        self.name = "the request"
        self.seconds = total_s

    async def __aenter__(self) -> "Deadline":
        await self._timer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._timer.__aexit__(kind, error, trace)

    @property
    def passed(self) -> bool:
        """Whether it is this bound that ended what ran under it, not somebody who cancelled that."""
        return self._timer.expired()

    def phase(self, name: str, seconds: float) -> None:
        """Begin a phase: from now it may take so long, and never longer than the total allows."""
        self.name, self.seconds = name, seconds
        self._set(self._loop.time() + seconds)

    def extend(self, name: str, seconds: float) -> None:
        """Begin a phase that is one of many alike: the timer is set anew only where it would end too soon."""
        now_s = self._loop.time()
        if name is not self.name or self._until < now_s + seconds:
            self.name, self.seconds = name, seconds
            self._set(now_s + seconds * (1.0 + SLACK))

    def _set(self, until: float) -> None:
        self._until = min(self._ends, until)
        self._timer.reschedule(self._until)
