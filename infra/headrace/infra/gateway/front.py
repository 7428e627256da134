"""The listening side: TLS, and bounds on connections that have not asked anything yet.

    open ── head_s ──► first request ── in progress: bounded by its own deadline ── keepalive_s ──► next request, or end

aiohttp waits for ever for a head that never comes whole (a client that sends a byte a minute); here each connection
has a timer that runs whenever no request is in progress. Above `max_connections` a connection is told so and closed.
"""

import asyncio
import ssl
from collections.abc import Callable

from aiohttp import web

from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.settings import GatewaySettings
from headrace.schemas.errors import InvalidInputError

LINGERING_S = 2.0
"""That the rest of a refused body is read, so that its client reads the refusal instead of a reset, and that a client
may take to read what was sent before its connection ends."""


def close_soon(transport: asyncio.Transport) -> None:
    """Close a connection after what is on its way; within LINGERING_S whether or not the client takes it."""
    transport.close()
    asyncio.get_running_loop().call_later(LINGERING_S, transport.abort)


class Connection(web.RequestHandler):
    """A client's connection, with a timer for the time in which no request is in progress."""

    __slots__ = ("_head_s", "_idle", "_keepalive_s", "_on_end")

    def __init__(self, server: web.Server, settings: GatewaySettings, on_end: Callable[[], None]) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=settings.keepalive_s,
            access_log=None,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - None is aiohttp's own way to switch it off
            max_line_size=settings.max_header_bytes,
            max_field_size=settings.max_header_bytes,
            max_headers=settings.max_headers,
            lingering_time=LINGERING_S,
        )
        self._head_s = settings.head_s
        self._keepalive_s = settings.keepalive_s
        self._on_end = on_end
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait(self._head_s)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End; cancels a request in progress."""
        self.request_began()
        self._on_end()
        super().connection_lost(exc)

    def request_began(self) -> None:
        """Stop waiting."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def request_ended(self) -> None:
        """Wait for the next request."""
        if self.transport is not None:
            self._wait(self._keepalive_s)

    def _wait(self, seconds: float) -> None:
        self.request_began()
        self._idle = asyncio.get_running_loop().call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if self.transport is not None:
            close_soon(self.transport)


class _Full(asyncio.Protocol):
    """A connection beyond the bound: told so, and closed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            refusal = Refusal.overloaded("The gateway has no room for more connections.")
            body = refusal.body()
            head = ["HTTP/1.1 503 Service Unavailable", "Content-Type: application/json", "Connection: close"]
            head += [f"{name}: {value}" for name, value in refusal.headers().items()]
            head.append(f"Content-Length: {len(body)}")
            transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        transport.close()  # what was written fits every socket buffer, so this does not linger


class Front:
    """Listens, and hands each request to the application."""

    def __init__(self, app: web.Application, settings: GatewaySettings, on_full: Callable[[], None]) -> None:
        self._settings = settings
        self._on_full = on_full
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=settings.drain_s)
        self._listening: asyncio.Server | None = None
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

    def _accept(self) -> asyncio.Protocol:
        server = self._runner.server
        if server is None or self.connections >= self._settings.max_connections:
            self._on_full()
            return _Full()
        self.connections += 1
        return Connection(server, self._settings, self._ended)

    def _ended(self) -> None:
        self.connections -= 1


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
