"""The paths, and what every request passes: the name it asks for, the gate, and the headers of every answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from headrace.infra.console.api import Api
from headrace.infra.console.csp import policy
from headrace.infra.console.events import Events
from headrace.infra.console.gate import Gate
from headrace.infra.console.page_files import PLOTLY, PageFile

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
COOKIE = "headrace_console"
OPEN_PATHS = frozenset({"/login", "/healthz", "/page/console.css", "/page/login.css", "/page/icon.svg"})
"""What is shown to everyone: the login page and what it is made of."""
WRONG_TOKEN_S = 0.5
"""How long a wrong token waits for its answer."""
MAX_LOGIN_BYTES = 4_096


class Console:
    """The application's answers, path by path."""

    def __init__(self, gate: Gate, files: Mapping[str, PageFile], api: Api, events: Events, *, secure: bool) -> None:
        self._gate = gate
        self._files = files
        self._api = api
        self._events = events
        self._secure = secure
        self._headers = {
            "Content-Security-Policy": policy(files[PLOTLY].content.decode()),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Server": "headrace",
        }

    def application(self) -> web.Application:
        """Give the application."""
        app = web.Application(middlewares=[self._every], client_max_size=MAX_LOGIN_BYTES)
        for path in self._files:
            app.router.add_get(path, self._file)
        app.router.add_post("/login", self._log_in)
        app.router.add_post("/logout", self._log_out)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/api/events", self._events.handle)
        self._api.add_to(app)
        app.on_response_prepare.append(self._with_headers)
        return app

    async def _with_headers(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._headers)

    @web.middleware
    async def _every(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        if not self._gate.knows_host(request.headers.get("Host", "")):
            return web.json_response({"error": "the console is not asked for under this name"}, status=421)
        if request.path not in OPEN_PATHS and not self._lets_in(request):
            if "Authorization" in request.headers:
                await asyncio.sleep(WRONG_TOKEN_S)
            if request.path == "/":
                raise web.HTTPSeeOther("/login")
            headers = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
            return web.json_response({"error": "a token is needed"}, status=401, headers=headers)
        return await handler(request)

    def _lets_in(self, request: web.Request) -> bool:
        session = request.cookies.get(COOKIE)
        return self._gate.lets_in(request.headers.get("Authorization"), session, time.monotonic())

    async def _file(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/login" and not self._gate.asks:
            raise web.HTTPSeeOther("/")
        file = self._files[request.path]
        headers = {"ETag": f'"{file.etag}"', "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=304, headers=headers)
        response = web.Response(body=file.content, content_type=file.kind, charset="utf-8", headers=headers)
        response.enable_compression()
        return response

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        given = (await request.post()).get("token")
        if not isinstance(given, str) or not self._gate.is_token(given.strip()):
            await asyncio.sleep(WRONG_TOKEN_S)
            raise web.HTTPSeeOther("/login#wrong")
        response = web.HTTPSeeOther("/")
        session = self._gate.open_session(time.monotonic())
        response.set_cookie(COOKIE, session, httponly=True, samesite="Strict", secure=self._secure, path="/")
        raise response

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        self._gate.end_session(request.cookies.get(COOKIE))
        response = web.HTTPSeeOther("/login")
        response.del_cookie(COOKIE, path="/")
        raise response

    async def _healthz(self, _: web.Request) -> web.Response:
        """Say that the loop turns; nothing else is judged."""
        return web.json_response({"status": "ok"})
