"""One attempt at one engine: send the request, wait for the first byte of its answer's body.

Nothing has gone to the client by then, so what ends before it (not reachable, broken off, "not served") may still be
tried elsewhere. An answer that the engine did give, an error too, is the client's.
"""

import io
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import aiohttp

from headrace.infra.gateway.core.generation import Endpoint
from headrace.infra.gateway.core.header_rules import Headers, with_credential
from headrace.infra.gateway.deadline import Deadline
from headrace.infra.gateway.engines import Engine
from headrace.infra.gateway.settings import GatewaySettings

WRITTEN_AT_ONCE: Final = 1 << 19
"""A larger body goes out in pieces, so that the loop is not held up by one copy of it."""


class Failure(StrEnum):
    """Why an engine gave no answer. All of these may be tried elsewhere."""

    CONNECT = "connect"
    """No connection: refused, unreachable, too slow, or no TLS."""
    LOST = "lost"
    """The connection ended before the first byte, or what came is no HTTP."""


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer has begun: its head, and the first bytes of its body (none where the body is empty)."""

    response: aiohttp.ClientResponse
    first: bytes


@dataclass(frozen=True, slots=True)
class Question:
    """What is sent to an engine."""

    endpoint: Endpoint
    headers: Headers
    body: bytes


def open_session(settings: GatewaySettings, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    """Give the client that all engines are reached with. Bounds: requests in flight by the gateway, not by a queue."""
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
        timeout=aiohttp.ClientTimeout(total=None, connect=settings.connect_s, sock_connect=settings.connect_s),
        max_line_size=settings.max_header_bytes,
        max_field_size=settings.max_header_bytes,
    )


async def attempt(
    session: aiohttp.ClientSession, engine: Engine, question: Question, deadline: Deadline, first_byte_s: float
) -> Answered | Failed:
    """Ask one engine.

    Raises:
        TimeoutError: the deadline's, before the first byte.
    """
    headers = question.headers if engine.credential is None else with_credential(question.headers, *engine.credential)
    body = question.body if len(question.body) < WRITTEN_AT_ONCE else io.BytesIO(question.body)
    deadline.phase("the first byte", first_byte_s)
    response: aiohttp.ClientResponse | None = None
    try:
        response = await session.post(engine.urls[question.endpoint], data=body, headers=headers, allow_redirects=False)
        first = await response.content.readany()
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL, UnicodeError):
        # UnicodeError: a host name that DNS has no form for.
        return Failed(Failure.CONNECT)
    except aiohttp.ClientError:
        if response is not None:
            response.close()
        return Failed(Failure.LOST)
    except BaseException:
        if response is not None:
            response.close()
        raise
    return Answered(response, first)
