"""The console put together, from the settings to a listening port."""

import asyncio
import contextlib
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aiohttp import web

from headrace.infra.configuration.config import Config
from headrace.infra.configuration.expected import why_unreadable
from headrace.infra.console.api import Api, now_ms
from headrace.infra.console.app import Console
from headrace.infra.console.core.timeline import Bounds
from headrace.infra.console.desk import Desk
from headrace.infra.console.events import Events
from headrace.infra.console.follower import Follower
from headrace.infra.console.gate import Gate, is_loopback, token_problem
from headrace.infra.console.page_files import page_files
from headrace.infra.console.settings import ConsoleSettings
from headrace.infra.console.why import Explainer
from headrace.infra.past_tick.wanted import Wanted
from headrace.infra.weight_why.ask import ask_why
from headrace.infra.weight_why.report import AskedWeight, WeightReport
from headrace.schemas.codec import SchemaSource
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.topics import topic_table

THREADS = 4
WEIGHT_HISTORY_MS = 600_000
"""How far back an explained weight is told: what `headrace explain` tells."""
SHUTDOWN_S = 2.0


class Running:
    """One console. `async with Running(...) as console:` listens inside, on `console.port`.

    Raises:
        InvalidInputError: the settings cannot be used together, or a file that they name cannot.
    """

    def __init__(self, config: Config, log: Any, registry: SchemaSource | None = None) -> None:  # noqa: ANN401 - structlog's logger is typed by its configuration
        self._settings = settings = config.console
        self._log = log
        token, self._tls = _token(settings), _tls_context(settings)
        self.gate = Gate(token, (settings.host, *settings.hosts), settings.session_ms / 1000)
        bounds = Bounds(settings.max_versions, settings.max_parts)
        self.desk = Desk(topic_table(config.topics), bounds, registry)
        self.events = Events(self.desk, settings.max_clients)
        self._pool = ThreadPoolExecutor(THREADS, "console answer")
        self._explainer = Explainer(_explain(config, registry))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._follower = Follower(
            config.kafka, config.topics, settings, config.solver.keyframe_ms, self.desk, self._changed
        )
        self.port = 0
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Running":
        self._loop = asyncio.get_running_loop()
        files = await asyncio.to_thread(page_files)
        api = Api(self.desk, self._explainer, self._pool)
        app = Console(self.gate, files, api, self.events, secure=self._tls is not None).application()
        async with contextlib.AsyncExitStack() as stack:
            # Without an access log: addresses hold names of clusters and engines, headers hold the token.
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, self._settings.host, self._settings.port, ssl_context=self._tls)
            try:
                await site.start()
            except OSError as error:
                where = f"{self._settings.host}:{self._settings.port}"
                raise InvalidInputError("console", (f"console.host and port are {where}: {error.strerror}",)) from error
            self.port = int(runner.addresses[0][1])
            self._follower.start()
            stack.push_async_callback(asyncio.to_thread, self._follower.stop)
            stack.callback(self.events.stop)
            self._stack = stack.pop_all()
        self._log.info("console ready", url=self.url, token_needed=self.gate.asks)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._log.info("console stopped", port=self.port)

    @property
    def url(self) -> str:
        """Where to open it."""
        host = self._settings.host
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if self._tls is None else 'https'}://{shown}:{self.port}/"

    def _changed(self) -> None:
        """Wake the pages; on the follower's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.events.changed)


def _explain(config: Config, registry: SchemaSource | None) -> Any:  # noqa: ANN401 - a function of two arguments
    def explain(asked: AskedWeight, wanted: Wanted) -> WeightReport:
        return ask_why(config, asked, wanted, now_ms(), WEIGHT_HISTORY_MS, registry)

    return explain


def _token(settings: ConsoleSettings) -> str | None:
    if settings.token_file is None:
        if not is_loopback(settings.host):
            problem = f"console.host is {settings.host!r}, which others reach: console.token_file is needed"
            raise InvalidInputError("console", (problem,))
        return None
    try:
        lines = Path(settings.token_file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        told = f"console.token_file is {settings.token_file!r}; it {why_unreadable(error)}"
        raise InvalidInputError("console", (told,)) from error
    token = lines[0].strip() if lines else ""
    wrong = token_problem(token)
    if wrong is not None:
        raise InvalidInputError("console", (f"console.token_file is {settings.token_file!r}; {wrong}",))
    return token


def _tls_context(settings: ConsoleSettings) -> ssl.SSLContext | None:
    certificate, key = settings.tls_certificate_file, settings.tls_key_file
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InvalidInputError("console", ("console.tls_certificate_file and tls_key_file go together",))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        told = f"console.tls_certificate_file is {certificate!r}, tls_key_file {key!r}; {error}"
        raise InvalidInputError("console", (told,)) from error
    return context
