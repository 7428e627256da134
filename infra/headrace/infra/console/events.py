"""Server-sent events: each page is told how the console stands when something changes, and every BEAT_S in any case.

    event: status
    data: {console-status}

Many changes within GAP_S are one event. A page that does not read is let go by its connection, not by a queue: there is
nothing to queue, since only the newest state is ever sent.
"""

import asyncio
from typing import Final

import orjson
from aiohttp import web

from headrace.infra.console.api import now_ms
from headrace.infra.console.desk import Desk
from headrace.schemas.plain import to_plain

BEAT_S: Final = 2.0
GAP_S: Final = 0.1


class Events:
    """Tells every page that follows."""

    def __init__(self, desk: Desk, max_clients: int) -> None:
        self._desk = desk
        self._max_clients = max_clients
        self._waiting: set[asyncio.Event] = set()
        self._stopping = False

    def changed(self) -> None:
        """Wake every page's connection; to be called on the loop."""
        for event in self._waiting:
            event.set()

    def stop(self) -> None:
        """Let every page go; to be called on the loop."""
        self._stopping = True
        self.changed()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Follow until the page leaves."""
        if len(self._waiting) >= self._max_clients:
            return web.Response(status=503, text="as many pages follow as may", headers={"Retry-After": "10"})
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        wake = asyncio.Event()
        self._waiting.add(wake)
        try:
            await response.prepare(request)
            while not self._stopping:
                wake.clear()
                status = orjson.dumps(to_plain(self._desk.status(now_ms())))
                await response.write(b"event: status\ndata: " + status + b"\n\n")
                await asyncio.sleep(GAP_S)
                try:
                    await asyncio.wait_for(wake.wait(), BEAT_S)
                except TimeoutError:
                    continue
        except ConnectionError:
            return response
        finally:
            self._waiting.discard(wake)
        return response
