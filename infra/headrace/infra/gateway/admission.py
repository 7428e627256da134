"""Before a request is judged: is its caller known, is there room for it, and its body in full.

credential ─► room in flight ─► room for the body ─► the body, within its size and time
"""

import asyncio

from aiohttp import web
from multidict import istr

from headrace.infra.gateway.core.bearer import Credentials, caller_of, digest_of
from headrace.infra.gateway.core.body_budget import BodyBudget
from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.settings import GatewaySettings

AUTHORIZATION = istr("Authorization")


class Admission:
    """Admits requests, and holds what they reserve."""

    def __init__(self, settings: GatewaySettings, credentials: Credentials | None) -> None:
        self._settings = settings
        self._credentials = credentials
        self.bodies = BodyBudget(settings.max_buffered_bytes)
        self.in_flight = 0

    def caller(self, request: web.Request) -> str | Refusal:
        """Give whose request it is: a name from the file, or where there is none what its credential hashes to."""
        authorization = request.headers.get(AUTHORIZATION)
        if self._credentials is None:
            return "" if authorization is None else digest_of(authorization).hex()[:16]
        caller = caller_of(authorization, self._credentials)
        return Refusal.unauthorized() if caller is None else caller

    def enter(self) -> Refusal | None:
        """Take a place among the requests in flight, to be given back by `leave`; a refusal where all are taken."""
        if self.in_flight >= self._settings.max_in_flight:
            return Refusal.overloaded(f"{self.in_flight} requests are in flight.")
        self.in_flight += 1
        return None

    def leave(self) -> None:
        """Give the place back."""
        self.in_flight -= 1

    def size_of(self, request: web.Request) -> int | Refusal:
        """Give how much room a body may need: what it says, or the most that is allowed where it does not."""
        limit, length = self._settings.max_body_bytes, request.content_length
        if length is not None and length > limit:
            return Refusal.too_large(limit)
        return limit if length is None or "Content-Encoding" in request.headers else length

    async def read(self, request: web.Request) -> bytes | Refusal:
        """Read a body for which there is room."""
        try:
            if request.content.is_eof():
                return await request.read()  # all of it is here: nothing to wait for
            async with asyncio.timeout(self._settings.body_s):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            return Refusal.too_large(self._settings.max_body_bytes)
        except web.RequestPayloadError:
            return Refusal.bad_request("the body cannot be read: it is not what its headers say")
        except TimeoutError:
            return Refusal(408, "invalid_request_error", "body_timeout", "The body took too long to arrive.")
