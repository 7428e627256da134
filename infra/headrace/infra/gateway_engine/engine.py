"""The simulated engine's server: `async with SimulatedEngine(...) as engine`, then it listens at `engine.url`."""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final, cast

import orjson
from aiohttp import web

from headrace.infra.gateway_engine import answers
from headrace.infra.gateway_engine.behaviour import Behaviour, Fault

MAX_BODY: Final = 64 << 20
REMEMBERED: Final = 64


class SimulatedEngine:
    """One engine on the loopback address. Set `behaviour` at any time; it holds from the next request on.

    Attributes:
        served, cancelled: answers given in full, and those whose client left.
        in_service: requests being answered now.
        asked: the last requests' headers, newest last.
    """

    def __init__(
        self, model: str, behaviour: Behaviour, *, tls: ssl.SSLContext | None = None, credential: str | None = None
    ) -> None:
        self.model = model
        self.behaviour = behaviour
        self.served = self.cancelled = self.in_service = self.requests = 0
        self.asked: deque[dict[str, str]] = deque(maxlen=REMEMBERED)
        self.url = ""
        self.port = 0
        self._tls = tls
        self._credential = credential
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> "SimulatedEngine":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen: at any free port the first time, at the same one after a stop."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._text)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/health", self._health)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Die: what is being answered is cut."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._generate(request, answers.Chat)

    async def _text(self, request: web.Request) -> web.StreamResponse:
        return await self._generate(request, answers.Text)

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        body = await self._read(request)
        refused = await self._refusal(request, self._fault())
        inputs: Any = body.get("input")
        count = len(cast("list[object]", inputs)) if isinstance(inputs, list) else 1
        return refused or web.json_response(answers.embeddings(self.model, count))

    async def _read(self, request: web.Request) -> dict[str, Any]:
        self.requests += 1
        self.asked.append(dict(request.headers))
        body: dict[str, Any] = orjson.loads(await request.read())
        return body

    def _fault(self) -> Fault:
        return self.behaviour.fault if self.requests % self.behaviour.every == 0 else Fault.NONE

    async def _refusal(self, request: web.Request, fault: Fault) -> web.StreamResponse | None:
        """Give the answer of a fault before the first token; None where there is none."""
        if self._credential is not None and request.headers.get("Authorization") != self._credential:
            return web.json_response(answers.error(401, "no credential"), status=401)
        if fault.status is not None:
            headers = {"Retry-After": "7", "x-engine-said": "so"}
            return web.json_response(answers.error(fault.status, "as told"), status=fault.status, headers=headers)
        if fault is Fault.HANG_BEFORE_HEAD:
            await asyncio.sleep(3_600)
        if fault is Fault.NOT_HTTP and request.transport is not None:
            request.transport.write(b"this is no HTTP\r\n\r\n")
        if fault is Fault.CLOSE_BEFORE_BODY:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
        if fault in (Fault.CLOSE_BEFORE_HEAD, Fault.CLOSE_BEFORE_BODY, Fault.NOT_HTTP):
            _close(request)
            return web.Response()
        return None

    async def _generate(self, request: web.Request, shape: type[answers.Chat | answers.Text]) -> web.StreamResponse:
        body = await self._read(request)
        fault = self._fault()
        refused = await self._refusal(request, fault)
        if refused is not None:
            return refused
        said = shape(str(self.requests), self.model, int(time.time()))
        self.in_service += 1
        try:
            streams = body.get("stream") is True
            answer = await (self._stream(request, body, said, fault) if streams else self._whole(body, said))
            self.served += 1
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        except ConnectionError:
            self.cancelled += 1
            return web.Response()
        finally:
            self.in_service -= 1
        return answer

    async def _whole(self, body: dict[str, Any], said: answers.Chat | answers.Text) -> web.Response:
        tokens = self._tokens(body)
        async for _ in self._paced(tokens):
            pass
        return web.json_response(said.whole(self.behaviour.word * tokens, 1, tokens))

    async def _stream(
        self, request: web.Request, body: dict[str, Any], said: answers.Chat | answers.Text, fault: Fault
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        first, tokens = said.first(), self._tokens(body)
        if first is not None:
            await response.write(answers.event(first))
        async for i in self._paced(tokens):
            if fault is not Fault.NONE and i == self.behaviour.break_after:
                return await self._break(request, response, said, fault)
            await response.write(answers.event(said.token(self.behaviour.word)))
        await response.write(answers.event(said.last()))
        if (body.get("stream_options") or {}).get("include_usage"):
            await response.write(answers.event(said.usage(1, tokens)))
        await response.write(answers.DONE)
        return response

    async def _break(
        self, request: web.Request, response: web.StreamResponse, said: answers.Chat | answers.Text, fault: Fault
    ) -> web.StreamResponse:
        if fault is Fault.HANG_MID_STREAM:
            await asyncio.sleep(3_600)
        if fault is Fault.ERROR_MID_STREAM:
            await response.write(answers.event(answers.error(500, "as told")))
            return response
        if fault is Fault.CLOSE_MID_EVENT:
            await response.write(answers.event(said.token(self.behaviour.word))[:20])
        _close(request)
        return response

    def _tokens(self, body: dict[str, Any]) -> int:
        wanted = body.get("max_tokens")
        return min(self.behaviour.tokens, wanted) if isinstance(wanted, int) else self.behaviour.tokens

    async def _paced(self, tokens: int) -> AsyncIterator[int]:
        """Give the tokens' numbers, each at its time."""
        ttft_s, tbot_s = self.behaviour.pace(self.in_service)
        for i in range(tokens):
            wait_s = tbot_s if i else ttft_s
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            yield i


def _close(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()
