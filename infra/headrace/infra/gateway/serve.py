"""The gateway put together and run until it is stopped."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import aiohttp

from headrace.dataplane.router import Router
from headrace.infra.configuration.expected import why_unreadable
from headrace.infra.gateway.admission import Admission
from headrace.infra.gateway.app import Gateway
from headrace.infra.gateway.attempt import open_session
from headrace.infra.gateway.core.bearer import Credentials, parse_credentials
from headrace.infra.gateway.core.judgement import Rules, secrets_of
from headrace.infra.gateway.dispatch import Dispatcher, Reach
from headrace.infra.gateway.engines import Engine, Engines
from headrace.infra.gateway.front import Front, engine_tls_context
from headrace.infra.gateway.metrics import GatewayMetrics
from headrace.infra.gateway.proxy import Proxy
from headrace.infra.gateway.readiness import Readiness
from headrace.infra.gateway.router_metrics import RouterMetrics
from headrace.infra.gateway.settings import GatewaySettings
from headrace.infra.gateway.watch import EngineWatch
from headrace.infra.gateway.weights_source import WeightsSource
from headrace.schemas.errors import InvalidInputError

SAID_EVERY_S: Final = 10.0
"""How often one kind of problem is logged at most: a broker that is away says so many times a second."""
MakeSource = Callable[[Router, Callable[[str], None], Callable[[str], None]], WeightsSource]


class Running:
    """One gateway. `async with Running(...) as gateway:` listens inside, on `gateway.port`.

    Args:
        settings: checked by type; what they name (files, variables) is read here.
        router: of the gateway's cluster.
        source: makes what feeds the router, given where to tell problems and installed versions.
        log: a structlog logger.

    Raises:
        InvalidInputError: a file or a variable cannot be used.
    """

    def __init__(self, settings: GatewaySettings, router: Router, source: MakeSource, log: Any) -> None:  # noqa: ANN401 - structlog's logger is typed by its configuration
        self.settings = settings
        self.router = router
        self.metrics = GatewayMetrics()
        self.readiness = Readiness(router, _now_ms)
        self.admission = Admission(settings, _credentials(settings))
        self.engines = Engines(settings.engines)
        self.port = 0
        self._rules = Rules.of(settings, secrets_of(_text("gateway.trust.secret_file", settings.trust.secret_file)))
        self._engine_tls = engine_tls_context(settings)
        self._log = log
        self._said: dict[str, float] = {}
        self._source = source(router, self._problem, lambda version: log.debug("weights installed", version=version))
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Running":
        async with contextlib.AsyncExitStack() as stack:
            connector = aiohttp.TCPConnector(
                limit=0, ssl=self._engine_tls, keepalive_timeout=self.settings.engine_keepalive_s, ttl_dns_cache=30
            )
            session = await stack.enter_async_context(open_session(self.settings, connector))
            watch = EngineWatch(
                self.router,
                session,
                self.settings.probe_path,
                self.settings.probe_period_s,
                self.readiness.engines,
                self._engine_changed,
            )
            reach = Reach(self.engines, session, watch)
            dispatcher = Dispatcher(self.settings, self.router, reach, self.metrics, _now_ms)
            proxy = Proxy(self.settings, self._rules, dispatcher, self.metrics)
            app = Gateway(self.settings, self.admission, proxy, self.readiness, self.metrics).application()
            front = Front(app, self.settings, self.metrics.turned_away, self._failed)
            self.show_gauges(front, watch)
            await self._source.start()
            stack.push_async_callback(self._source.stop)
            watching = asyncio.create_task(watch.run(), name="engine watch")
            stack.push_async_callback(_cancelled, watching)
            self.port = await front.start()
            stack.push_async_callback(front.stop)
            self._stack = stack.pop_all()
        self._log.info("gateway ready", host=self.settings.host, port=self.port, cluster=self.router.cluster)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.readiness.stopping = True
        await self._stack.aclose()
        self._log.info("gateway stopped", port=self.port)

    def show_gauges(self, front: Front, watch: EngineWatch) -> None:
        """Add to the metrics what is read at each scrape."""
        gauge, ready = self.metrics.gauge, self.readiness
        gauge("in_flight", "Requests in flight", lambda: self.admission.in_flight)
        gauge("connections", "Clients' connections", lambda: front.connections)
        gauge("buffered_bytes", "Bytes reserved for request bodies", lambda: self.admission.bodies.reserved)
        gauge("engines_down", "Engines found down", lambda: watch.down)
        gauge("ready", "1 where requests can be routed", lambda: float(ready.ready()))
        gauge("snapshot_epoch", "Epoch of the weights", lambda: ready.version()[0])
        gauge("snapshot_version", "Version of the weights", lambda: ready.version()[1])
        gauge("snapshot_age_seconds", "Age of the weights; -1 where there are none", ready.age_s)
        self.metrics.registry.register(RouterMetrics(self.router, self._source, self.engines.alias, _now_ms))

    def _engine_changed(self, engine: Engine, up: bool) -> None:  # noqa: FBT001 - the watch's signature
        (self._log.info if up else self._log.warning)("engine up" if up else "engine down", engine=engine.alias)

    def _failed(self, error: BaseException) -> None:
        if self._may_say(type(error).__name__):
            self._log.error("request failed", exc_info=error)

    def _problem(self, sentence: str) -> None:
        """Count and log a problem of the source; its kind is its beginning."""
        self.metrics.source_problem()
        if self._may_say(sentence[:40]):
            self._log.warning("weights source", problem=sentence)

    def _may_say(self, kind: str) -> bool:
        """Say whether a kind of problem was not logged within the last SAID_EVERY_S."""
        now_s = time.monotonic()
        self._said = {k: at for k, at in self._said.items() if now_s - at < SAID_EVERY_S}
        return self._said.setdefault(kind, now_s) == now_s


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _credentials(settings: GatewaySettings) -> Credentials | None:
    if settings.bearer_file is None:
        return None
    return parse_credentials(_text("gateway.bearer_file", settings.bearer_file), settings.bearer_file)


def _text(name: str, path: str | None) -> str:
    if path is None:
        return ""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError("gateway", (f"{name} is {path!r}; it {why_unreadable(error)}",)) from error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
