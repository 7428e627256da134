"""The JSON API: a path, its parameters, one question to the desk. All of it is reading.

    /api/status                                          /api/overview    version
    /api/engines    version                              /api/engine      version, engine
    /api/flows      version, group, top, cluster         /api/weights     version, cluster, engine, limit
    /api/history    cluster, model, class                /api/totals
    /api/decisions  version, limit, all                  /api/explain     version, cluster, engine, model, class
Without `version` the newest. What is wrong with a request is {"error": "..."} with status 400, 404 or 503.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import orjson
from aiohttp import web

from headrace.infra.console.core.flows import GROUPS
from headrace.infra.console.desk import Desk
from headrace.infra.console.past import NotHeldError
from headrace.infra.console.query import Query
from headrace.infra.console.why import Explainer
from headrace.infra.kafka_edge import MissingTopicError, UnreachableError
from headrace.infra.past_tick.find import NoTickError
from headrace.infra.weight_why.report import AskedWeight
from headrace.schemas.errors import HeadraceError, InvalidInputError
from headrace.schemas.ids import RouteKey
from headrace.schemas.plain import to_plain

MAX_TOP = 200
MAX_ROWS = 2_000
MAX_LINES = 500
COMPRESS_FROM = 2_048

Question = Callable[[], object]
Ask = Callable[[Mapping[str, str]], Question]


class Api:
    """Answers the API's paths; each question runs off the loop, so that a large fleet's picture holds nobody up."""

    def __init__(self, desk: Desk, explainer: Explainer, pool: ThreadPoolExecutor) -> None:
        self._desk = desk
        self._explainer = explainer
        self._pool = pool
        self._asks: Mapping[str, Ask] = {
            "status": self._status,
            "overview": self._overview,
            "engines": self._engines,
            "engine": self._engine,
            "flows": self._flows,
            "weights": self._weights,
            "history": self._history,
            "totals": self._totals,
            "decisions": self._decisions,
            "explain": self._explain,
        }

    def add_to(self, app: web.Application) -> None:
        """Add the paths to an application."""
        for name, ask in self._asks.items():
            app.router.add_get(f"/api/{name}", self._handler(ask))

    def _handler(self, ask: Ask) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                question = ask(request.query)
                loop = asyncio.get_running_loop()
                body = await loop.run_in_executor(self._pool, lambda: orjson.dumps(to_plain(question())))
            except HeadraceError as error:
                return refusal(error)
            response = web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})
            if len(body) >= COMPRESS_FROM:
                response.enable_compression()
            return response

        return handle

    def _status(self, given: Mapping[str, str]) -> Question:
        Query(given, ()).check()
        return lambda: self._desk.status(now_ms())

    def _overview(self, given: Mapping[str, str]) -> Question:
        query = Query(given, ("version",))
        version = query.version()
        query.check()
        return lambda: self._desk.overview(version)

    def _engines(self, given: Mapping[str, str]) -> Question:
        query = Query(given, ("version",))
        version = query.version()
        query.check()
        return lambda: self._desk.engine_table(version)

    def _engine(self, given: Mapping[str, str]) -> Question:
        query = Query(given, ("version", "engine"))
        engine, version = query.needed("engine"), query.version()
        query.check()
        return lambda: self._desk.engine_card(engine, version)

    def _flows(self, given: Mapping[str, str]) -> Question:
        query = Query(given, ("version", "group", "top", "cluster"))
        version, group, cluster = query.version(), query.choice("group", GROUPS), query.text("cluster")
        top = query.count("top", 12, MAX_TOP)
        query.check()
        return lambda: self._desk.flow_map(version, group, top, cluster)

    def _weights(self, given: Mapping[str, str]) -> Question:
        query = Query(given, ("version", "cluster", "engine", "limit"))
        version, cluster, engine = query.version(), query.text("cluster"), query.text("engine")
        limit = query.count("limit", 200, MAX_ROWS)
        query.check()
        return lambda: self._desk.weight_rows(version, cluster, engine, limit)

    def _history(self, given: Mapping[str, str]) -> Question:
        query = Query(given, ("cluster", "model", "class"))
        route = RouteKey(query.needed("cluster"), query.needed("model"), query.needed("class"))
        query.check()
        return lambda: self._desk.weight_history(route)

    def _totals(self, given: Mapping[str, str]) -> Question:
        Query(given, ()).check()
        return self._desk.totals_series

    def _decisions(self, given: Mapping[str, str]) -> Question:
        query = Query(given, ("version", "limit", "all"))
        version, limit = query.version(), query.count("limit", 100, MAX_LINES)
        every = query.choice("all", ("no", "yes")) == "yes"
        query.check()
        return lambda: self._desk.decision_log(version, limit, quiet=every)

    def _explain(self, given: Mapping[str, str]) -> Question:
        query = Query(given, ("version", "cluster", "engine", "model", "class"))
        asked = AskedWeight(query.needed("cluster"), query.needed("engine"), query.text("model"), query.text("class"))
        version = query.version()
        query.check()
        return lambda: self._explainer(asked, self._desk.overview(version).version)


def refusal(error: HeadraceError) -> web.Response:
    """Say what is wrong, with the status that fits."""
    match error:
        case NotHeldError() | NoTickError():
            status = 404
        case UnreachableError() | MissingTopicError():
            status = 503
        case InvalidInputError():
            status = 400
        case _:
            status = 409
    body = orjson.dumps({"error": str(error)})
    headers = {"Cache-Control": "no-store"}
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def now_ms() -> int:
    """Give the time."""
    return time.time_ns() // 1_000_000
