"""The listening side: TLS, and bounds on connections that have not asked anything yet.

    open ── head_s ──► first request ── in progress: bounded by its own deadline ── keepalive_s ──► next request, or end

aiohttp waits for ever for a head that never comes whole (a client that sends a byte a minute); here each connection
has a timer that runs whenever no request is in progress. Above `max_connections` a connection is told so and closed.
"""

import asyncio
import logging
import math
import ssl
from collections.abc import Callable
from typing import Final, Protocol, cast

from aiohttp import web

from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.replies import refuse
from headrace.infra.gateway.settings import GatewaySettings
from headrace.schemas.errors import InvalidInputError

LINGERING_S: Final = 2.0
"""That the rest of a refused body is read, so that its client reads the refusal instead of a reset, and that a client
may take to read what was sent before its connection ends."""


MAX_REFUSED: Final = 256
"""Connections beyond the bound that are being told so at once; further ones are closed without a word."""


def close_soon(transport: asyncio.Transport) -> None:
    """Close a connection after what is on its way; within LINGERING_S whether or not the client takes it."""
    transport.close()
    asyncio.get_running_loop().call_later(LINGERING_S, transport.abort)


class Watcher(Protocol):
    """What is told of connections."""

    def ended(self) -> None:
        """Take note that one ended."""
        ...

    def turned_away(self, cause: str, /) -> None:
        """Take note that one, or what came on it, was refused: `connections`, `malformed`."""
        ...

    def failed(self, error: BaseException, /) -> None:
        """Take note of an exception that nobody foresaw; its client gets status 500."""
        ...


_SILENT: Final = logging.Logger("headrace.gateway.http", logging.CRITICAL + 1)  # noqa: LOG001 - for nobody to hear
"""What aiohttp would log is a client's doing (a body that is no gzip), with its bytes; exceptions go to `failed`."""


class Connection(web.RequestHandler):
    """A client's connection, with a timer for the time in which no request is in progress."""

    __slots__ = ("_head_s", "_idle", "_idle_until_s", "_keepalive_s", "_watcher")

    def __init__(self, server: web.Server, settings: GatewaySettings, watcher: Watcher) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=settings.keepalive_s,
            logger=_SILENT,
            access_log=None,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - None is aiohttp's own way to switch it off
            max_line_size=settings.max_header_bytes,
            max_field_size=settings.max_header_bytes,
            max_headers=settings.max_headers,
            lingering_time=LINGERING_S,
        )
        self._head_s = settings.head_s
        self._keepalive_s = settings.keepalive_s
        self._watcher = watcher
        self._idle: asyncio.TimerHandle | None = None
        self._idle_until_s = math.inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait(self._head_s)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End; cancels a request in progress."""
        self.request_began()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._watcher.ended()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - repeats the client's bytes, which helps nobody
    ) -> web.StreamResponse:
        """Answer what is no HTTP, or met an exception: in the shape of every other error, without a traceback."""
        if status < 500:
            self._watcher.turned_away("malformed")
        elif exc is not None:
            self._watcher.failed(exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun already")
        response = refuse(Refusal.malformed() if status < 500 else Refusal.unforeseen())
        response.force_close()
        return response

    def request_began(self) -> None:
        """Stop waiting. The timer runs on, finds nothing to end, and is set anew by the next wait."""
        self._idle_until_s = math.inf

    def request_ended(self) -> None:
        """Wait for the next request."""
        if self.transport is not None:
            self._wait(self._keepalive_s)

    def _wait(self, seconds: float) -> None:
        """Wait for a request: by the timer that runs, where that one ends no later than this wait."""
        loop = asyncio.get_running_loop()
        self._idle_until_s = loop.time() + seconds
        if self._idle is not None and self._idle.when() > self._idle_until_s:
            self._idle.cancel()
            self._idle = None
        if self._idle is None:
            self._idle = loop.call_at(self._idle_until_s, self._look)

    def _look(self) -> None:
        """Give up if the wait is over; look again when it will be, if one is under way."""
        self._idle = None
        if self.transport is None or self._idle_until_s == math.inf:
            return
        if asyncio.get_running_loop().time() >= self._idle_until_s:
            close_soon(self.transport)
        else:
            self._idle = asyncio.get_running_loop().call_at(self._idle_until_s, self._look)


class _Full(asyncio.Protocol):
    """A connection beyond the bound: told so, and closed when it has read that, soon at the latest."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's are none by type, only by what they do
        refusal = Refusal.overloaded("The gateway has no room for more connections.")
        body = refusal.body()
        head = ["HTTP/1.1 503 Service Unavailable", "Content-Type: application/json", "Connection: close"]
        head += [f"{name}: {value}" for name, value in refusal.headers().items()]
        head.append(f"Content-Length: {len(body)}")
        transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        if transport.can_write_eof():
            transport.write_eof()  # closing with the request unread would reset the connection and lose the answer
        asyncio.get_running_loop().call_later(LINGERING_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._on_end()


class _Closed(asyncio.Protocol):
    """A connection that is closed without a word."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()  # uvloop's are none by type, only by what they do


class Front:
    """Listens, and hands each request to the application.

    Attributes:
        connections: of clients, now.
    """

    def __init__(
        self,
        app: web.Application,
        settings: GatewaySettings,
        turned_away: Callable[[str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._settings = settings
        self.turned_away = turned_away
        self.failed = failed
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=settings.drain_s)
        self._listening: asyncio.Server | None = None
        self._refused = 0
        self.connections = 0

    async def start(self) -> int:
        """Begin to listen; gives the port.

        Raises:
            InvalidInputError: the TLS files are not usable, or the address is not free.
        """
        context = tls_context(self._settings)
        await self._runner.setup()
        handshake_s = None if context is None else self._settings.head_s
        try:
            self._listening = await asyncio.get_running_loop().create_server(
                self._accept,
                self._settings.host,
                self._settings.port,
                ssl=context,
                backlog=1_024,
                ssl_handshake_timeout=handshake_s,
            )
        except OSError as error:
            await self._runner.cleanup()
            at = f"{self._settings.host}:{self._settings.port}"
            raise InvalidInputError("gateway", (f"cannot listen at {at}: {error}",)) from error
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Take no more connections, let requests in progress end within `drain_s`, close the rest."""
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()

    def ended(self) -> None:
        """Take note that a connection ended."""
        self.connections -= 1

    def _accept(self) -> asyncio.Protocol:
        server = self._runner.server
        if server is None or self.connections >= self._settings.max_connections:
            self.turned_away("connections")
            return self._refuse()
        self.connections += 1
        return Connection(server, self._settings, self)

    def _refuse(self) -> asyncio.Protocol:
        """Tell a connection that there is no room, where it is not one of too many that are being told."""
        if self._refused >= MAX_REFUSED:
            return _Closed()
        self._refused += 1
        return _Full(self._refused_ended)

    def _refused_ended(self) -> None:
        self._refused -= 1


def tls_context(settings: GatewaySettings) -> ssl.SSLContext | None:
    """Give what the front's TLS needs; None where it speaks plain HTTP.

    Raises:
        InvalidInputError: the certificate or its key cannot be used.
    """
    if settings.tls_certificate_file is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_certificate_file, settings.tls_key_file)
    except (OSError, ssl.SSLError) as error:
        files = f"{settings.tls_certificate_file!r}, {settings.tls_key_file!r}"
        raise InvalidInputError("gateway", (f"tls_certificate_file, tls_key_file are {files}: {error}",)) from error
    return context


def engine_tls_context(settings: GatewaySettings) -> ssl.SSLContext:
    """Give what checks the engines' certificates.

    Raises:
        InvalidInputError: `engine_ca_file` cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=settings.engine_ca_file)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInputError("gateway", (f"engine_ca_file is {settings.engine_ca_file!r}: {error}",)) from error
