"""Bytes from an engine to a client, as they come: never held back, never changed, measured in passing.

One chunk is under way at a time: while the client does not take it, nothing is read from the engine, so a slow reader
costs one buffer and slows only its own stream. A client that leaves cancels this, which closes the engine's connection.
"""

import asyncio
import contextlib
import time
from typing import Final

import aiohttp
from aiohttp import web

from headrace.infra.gateway.core.decision_header import NAME
from headrace.infra.gateway.core.header_rules import is_event_stream, to_client
from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.core.stream_timing import Ending, StreamTiming
from headrace.infra.gateway.deadline import Deadline
from headrace.infra.gateway.dispatch import Dispatched
from headrace.infra.gateway.front import close_soon
from headrace.infra.gateway.replies import SERVER

LAST_WORD_S: Final = 0.5
"""That a client may take to read why its stream ends early."""


class Relay:
    """One answer on its way.

    Attributes:
        client: what the client gets; not prepared yet.
        timing: what is measured; None where the answer is no stream of events.
        whole: the engine's answer came to its own end.
    """

    __slots__ = ("_dispatched", "_request", "client", "timing", "whole")

    def __init__(self, request: web.Request, dispatched: Dispatched, max_event_bytes: int) -> None:
        response = dispatched.answered.response
        self._request = request
        self._dispatched = dispatched
        self.client = web.StreamResponse(status=response.status, reason=response.reason)
        for name, value in (*to_client(response.headers.items()), *SERVER.items(), (NAME, dispatched.chosen.header)):
            self.client.headers.add(name, value)
        events = is_event_stream(response.headers) and response.status == 200
        self.timing = StreamTiming(dispatched.chosen.sent_s, max_event_bytes) if events else None
        self.whole = False

    @property
    def alias(self) -> str:
        """The engine's alias."""
        return self._dispatched.chosen.engine.alias

    @property
    def ending(self) -> Ending:
        """How the stream ended: by its own word only where it was whole."""
        return self.timing.ending if self.whole and self.timing is not None else Ending.CUT

    async def run(self, deadline: Deadline, idle_s: float) -> None:
        """Send the answer on, to its end or to where the engine breaks it off.

        Raises:
            ConnectionError: the client has left.
            TimeoutError: the deadline's: no chunk came, or the client took none, for too long.
        """
        upstream = self._dispatched.answered.response
        try:
            await self.client.prepare(self._request)
            chunk = self._dispatched.answered.first
            while chunk:
                deadline.phase("the next chunk", idle_s)
                await self._pass_on(chunk)
                try:
                    chunk = await upstream.content.readany()
                except aiohttp.ClientError:
                    await self.break_off(Refusal.broken())
                    return
            self.whole = True
            await self.client.write_eof()
        finally:
            if self.whole:
                upstream.release()
            else:
                upstream.close()

    async def break_off(self, refusal: Refusal) -> None:
        """End the client's connection without ending its answer: that it is cut short must be seen, not guessed.

        A stream that stands between two events gets the reason as an event of its own.
        """
        if self.timing is not None and self.timing.may_append:
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(LAST_WORD_S):
                    await self.client.write(refusal.event())
        if self._request.transport is not None:
            close_soon(self._request.transport)

    async def _pass_on(self, chunk: bytes) -> None:
        if self.timing is None:
            await self.client.write(chunk)
            return
        arrived_s = time.monotonic()
        self.timing.feed(chunk, arrived_s)
        await self.client.write(chunk)
        self.timing.waited(time.monotonic() - arrived_s)
