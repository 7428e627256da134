"""The paths, and what every request passes: its connection's timer, its caller, its place, and the count of its end."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from headrace.infra.gateway.admission import Admission
from headrace.infra.gateway.core.generation import Endpoint
from headrace.infra.gateway.core.model_list import model_document, model_list
from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.front import Connection
from headrace.infra.gateway.metrics import GatewayMetrics
from headrace.infra.gateway.proxy import MODEL, Proxy
from headrace.infra.gateway.readiness import Readiness
from headrace.infra.gateway.replies import SERVER, refuse, say
from headrace.infra.gateway.settings import GatewaySettings

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
CLIENT_GONE = 499
"""Counted as the status of an answer that nobody waited for; nginx's convention."""


class Gateway:
    """The application's answers, path by path."""

    def __init__(
        self,
        settings: GatewaySettings,
        admission: Admission,
        proxy: Proxy,
        readiness: Readiness,
        metrics: GatewayMetrics,
    ) -> None:
        self._settings = settings
        self._admission = admission
        self._proxy = proxy
        self._readiness = readiness
        self._metrics = metrics

    def application(self) -> web.Application:
        """Give the application. Each path is answered by one function; any other by an error of the same shape."""
        app = web.Application(middlewares=[self._every], client_max_size=self._settings.max_body_bytes)
        app.on_response_prepare.append(self._last_of_its_connection)
        for endpoint in Endpoint:
            app.router.add_post(endpoint.value, self._generation(endpoint))
        app.router.add_get("/v1/models", self._models, allow_head=False)
        app.router.add_get("/v1/models/{model:.+}", self._model, allow_head=False)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show_metrics)
        return app

    @web.middleware
    async def _every(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        """Run one request: no timer of its connection meanwhile, errors in one shape, counted at its end."""
        connection, began_s, status = request.protocol, time.monotonic(), CLIENT_GONE
        if isinstance(connection, Connection):
            connection.request_began()
        try:
            response = await handler(request)
            status = response.status
        except web.HTTPException as error:
            status = error.status
            code = error.reason.lower().replace(" ", "_")
            response = refuse(Refusal(status, "invalid_request_error", code, f"{error.reason}."))
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
        except asyncio.CancelledError:
            self._metrics.client_gone()
            raise
        except ConnectionError:  # found while writing, before the connection's end was told
            self._metrics.client_gone()
            response = web.Response(status=CLIENT_GONE)
        finally:
            resource = request.match_info.route.resource
            endpoint = "other" if resource is None else resource.canonical
            self._metrics.answered(endpoint, request.get(MODEL), status, time.monotonic() - began_s)
            if isinstance(connection, Connection):
                connection.request_ended()
        return response

    async def _last_of_its_connection(self, _: web.Request, response: web.StreamResponse) -> None:
        """Tell a client of a gateway that stops to send its next request elsewhere (RFC 9112, section 9.6)."""
        if self._readiness.stopping:
            response.force_close()
            response.headers["Connection"] = "close"

    def _generation(self, endpoint: Endpoint) -> Answer:
        async def answer(request: web.Request) -> web.StreamResponse:
            caller = self._admission.caller(request)
            if isinstance(caller, Refusal):
                return self._turn_away(caller)
            full = self._admission.enter()
            if full is not None:
                return self._turn_away(full)
            try:
                return await self._with_body(request, endpoint, caller)
            finally:
                self._admission.leave()

        return answer

    async def _with_body(self, request: web.Request, endpoint: Endpoint, caller: str) -> web.StreamResponse:
        size = self._admission.size_of(request)
        if isinstance(size, Refusal):
            return self._turn_away(size)
        if not self._admission.bodies.reserve(size):
            return self._turn_away(Refusal.overloaded("The gateway holds as many bodies as it may."))
        try:
            body = await self._admission.read(request)
            if isinstance(body, Refusal):
                return self._turn_away(body)
            return await self._proxy.answer(request, endpoint, body, caller)
        finally:
            self._admission.bodies.release(size)

    def _turn_away(self, refusal: Refusal) -> web.Response:
        self._metrics.turned_away(refusal.code)
        return refuse(refusal)

    async def _models(self, request: web.Request) -> web.Response:
        caller = self._admission.caller(request)
        if isinstance(caller, Refusal):
            return self._turn_away(caller)
        return say(model_list(self._readiness.models(), self._readiness.since_s()))

    async def _model(self, request: web.Request) -> web.Response:
        caller = self._admission.caller(request)
        if isinstance(caller, Refusal):
            return self._turn_away(caller)
        model = request.match_info["model"]
        if model not in self._readiness.models():
            return refuse(Refusal.unknown_model(model[:80]))
        return say(model_document(model, self._readiness.since_s()))

    async def _healthz(self, _: web.Request) -> web.Response:
        """Say that the loop turns; nothing else is judged."""
        return say({"status": "ok"})

    async def _readyz(self, _: web.Request) -> web.Response:
        ready, document = self._readiness.report()
        return say(document, 200 if ready else 503)

    async def _show_metrics(self, request: web.Request) -> web.Response:
        caller = "" if self._settings.open_metrics else self._admission.caller(request)
        if isinstance(caller, Refusal):
            return self._turn_away(caller)
        # Off the loop: a thousand engines' histograms take longer to write than a token takes to come.
        text = await asyncio.get_running_loop().run_in_executor(None, generate_latest, self._metrics.registry)
        return web.Response(body=text, headers={**SERVER, "Content-Type": CONTENT_TYPE_LATEST})
