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
from multidict import CIMultiDict

from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.infra.gateway.core.decision_header import NAME
from headrace.infra.gateway.core.experience import outcome_of_stream
from headrace.infra.gateway.core.header_rules import is_event_stream, to_client
from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.core.stream_timing import Ending, StreamTiming
from headrace.infra.gateway.deadline import Deadline
from headrace.infra.gateway.dispatch import Dispatched, Try
from headrace.infra.gateway.front import close_soon
from headrace.infra.gateway.replies import SERVER

LAST_WORD_S: Final = 0.5
"""That a client may take to read why its stream ends early."""
NEXT_CHUNK: Final = "the next chunk"


class _Answer(web.StreamResponse):
    """An answer whose head goes out in one write with its first bytes, which are there already."""

    _send_headers_immediately = False  # aiohttp's own switch, though not a documented one; without it: one write more


class Relay:
    """One answer on its way.

    Attributes:
        client: what the client gets; not prepared yet.
        timing: what is measured; None where the answer is no stream of events.
        whole: the engine's answer came to its own end.
    """

    __slots__ = ("_dispatched", "_outcome", "_request", "client", "timing", "whole")

    def __init__(self, request: web.Request, dispatched: Dispatched, max_event_bytes: int) -> None:
        response = dispatched.answered.response
        self._request = request
        self._dispatched = dispatched
        headers = to_client(response.headers.items())
        headers += [*SERVER.items(), (NAME, dispatched.chosen.header)]
        self.client = _Answer(status=response.status, reason=response.reason, headers=CIMultiDict(headers))
        events = is_event_stream(response.headers) and response.status == 200
        self.timing = StreamTiming(dispatched.chosen.sent_s, max_event_bytes) if events else None
        self.whole = False
        self._outcome = AttemptOutcome.CANCELLED

    @property
    def chosen(self) -> Try:
        """The attempt whose answer this is."""
        return self._dispatched.chosen

    @property
    def ending(self) -> Ending | None:
        """How the stream ended: by its own word only where it was whole. None where it is no stream."""
        if self.timing is None:
            return None
        return self.timing.ending if self.whole else Ending.CUT

    @property
    def outcome(self) -> AttemptOutcome:
        """What the attempt says of its engine, once it is over."""
        status = self._dispatched.answered.response.status
        return outcome_of_stream(status, self.ending) if self.whole else self._outcome

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
                deadline.extend(NEXT_CHUNK, idle_s)
                await self._pass_on(chunk)
                try:
                    chunk = await upstream.content.readany()
                except aiohttp.ClientError:
                    self._outcome = AttemptOutcome.ERROR
                    await self.break_off(Refusal.broken())
                    return
                except asyncio.CancelledError:
                    self._outcome = AttemptOutcome.TIMEOUT if deadline.passed else AttemptOutcome.CANCELLED
                    raise
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
        await self.client.write(chunk)  # first: the client does not wait for what is only measured
        self.timing.feed(chunk, arrived_s)
        self.timing.waited(time.monotonic() - arrived_s)
