"""A request's way through the gateway: judge it, dispatch it, relay the answer, and take note of how it went."""

from aiohttp import web

from headrace.infra.gateway.core.decision_header import NAME
from headrace.infra.gateway.core.generation import Endpoint
from headrace.infra.gateway.core.judgement import Asked, Rules, judge
from headrace.infra.gateway.core.refusal import MODEL_NOT_FOUND, Refusal
from headrace.infra.gateway.deadline import Deadline
from headrace.infra.gateway.dispatch import NOT_MEASURED, Dispatcher, NotDispatched
from headrace.infra.gateway.metrics import GatewayMetrics
from headrace.infra.gateway.relay import Relay
from headrace.infra.gateway.replies import refuse
from headrace.infra.gateway.settings import GatewaySettings

MODEL = web.RequestKey("model", str)
"""Under this, a request carries the model it asked for, once that is known to be served here."""


class Proxy:
    """Answers what is asked of engines."""

    def __init__(
        self, settings: GatewaySettings, rules: Rules, dispatcher: Dispatcher, metrics: GatewayMetrics
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._dispatcher = dispatcher
        self._metrics = metrics

    async def answer(self, request: web.Request, endpoint: Endpoint, body: bytes, tenant: str) -> web.StreamResponse:
        """Answer one request whose body is read and whose caller is known."""
        asked = judge(endpoint, request.headers, body, tenant, self._rules)
        if isinstance(asked, Refusal):
            self._metrics.turned_away(asked.code)
            return refuse(asked)
        relay: Relay | None = None
        deadline = Deadline(self._settings.total_s)
        try:
            async with deadline:
                dispatched = await self._dispatcher.dispatch(asked, deadline)
                if isinstance(dispatched, NotDispatched):
                    return self._not_dispatched(request, asked, dispatched)
                request[MODEL] = asked.model
                relay = Relay(request, dispatched, self._settings.max_event_bytes)
                await relay.run(deadline, self._settings.idle_s)
                return relay.client
        except TimeoutError:
            refusal = Refusal.timed_out(deadline.name, deadline.seconds)
            if relay is None:
                return refuse(refusal)
            await relay.break_off(refusal)
            return relay.client
        finally:
            if relay is not None:
                self._note(asked, relay)

    def _note(self, asked: Asked, relay: Relay) -> None:
        """Take note of what became of an answer."""
        latency = NOT_MEASURED
        if relay.timing is not None and relay.ending is not None:
            latency = relay.timing.latency()
            self._metrics.streamed(asked.model, relay.chosen.engine.alias, relay.ending.value, latency)
        self._dispatcher.over(asked, relay.chosen, relay.outcome, latency)

    def _not_dispatched(self, request: web.Request, asked: Asked, why: NotDispatched) -> web.Response:
        if why.refusal.code != MODEL_NOT_FOUND:
            request[MODEL] = asked.model
        return refuse(why.refusal, {NAME: why.header})
