"""The gateway's own answers as aiohttp's."""

from collections.abc import Mapping

import orjson
from aiohttp import web

from headrace.infra.gateway.core.refusal import Refusal

SERVER = {"Server": "headrace"}


def refuse(refusal: Refusal, headers: Mapping[str, str] | None = None) -> web.Response:
    """Give a refusal as an answer."""
    response = web.Response(
        body=refusal.body(),
        status=refusal.status,
        content_type="application/json",
        headers={**SERVER, **refusal.headers(), **(headers or {})},
    )
    if refusal.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def say(document: object, status: int = 200) -> web.Response:
    """Give a document as JSON."""
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json", headers=SERVER)
