"""From a judged request to an engine that answers: route, try, and where that is allowed once more elsewhere.

route ─► try ─► answered ─────────────────────────────────────────► the answer
          │
          └─ not reachable, lost before the first byte, 502-504 ─► another engine? ─► budget? ─► try ─► ...
                                                                    no: what there is is the answer
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import aiohttp

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.dataplane.retry_budget import Retry
from headrace.dataplane.router import Router
from headrace.infra.gateway.attempt import Answered, Failed, Failure, Question, attempt
from headrace.infra.gateway.core.decision_header import decision_header
from headrace.infra.gateway.core.experience import outcome_of_status
from headrace.infra.gateway.core.judgement import Asked
from headrace.infra.gateway.core.refusal import Refusal, refusal_of
from headrace.infra.gateway.core.stream_timing import StreamLatency
from headrace.infra.gateway.deadline import Deadline
from headrace.infra.gateway.engines import Engine, Engines
from headrace.infra.gateway.metrics import GatewayMetrics
from headrace.infra.gateway.settings import GatewaySettings
from headrace.infra.gateway.watch import EngineWatch

NOT_MEASURED: Final = StreamLatency()
RESULTS: Final = {outcome: outcome.value.lower() for outcome in AttemptOutcome}


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt: what was decided, whom it names, and when it was sent (monotonic seconds)."""

    decision: Decision
    engine: Engine
    number: int
    sent_s: float

    @property
    def header(self) -> str:
        """What the client is told of it."""
        return decision_header(self.decision, self.engine.alias, self.number)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """An engine's answer has begun."""

    chosen: Try
    answered: Answered


@dataclass(frozen=True, slots=True)
class NotDispatched:
    """There is no engine's answer; `header` says what was decided."""

    refusal: Refusal
    header: str


@dataclass(frozen=True, slots=True)
class Reach:
    """What it takes to reach engines: how, through what, and who minds those that are down."""

    engines: Engines
    session: aiohttp.ClientSession
    watch: EngineWatch


class Dispatcher:
    """Finds engines that answer."""

    def __init__(
        self,
        settings: GatewaySettings,
        router: Router,
        reach: Reach,
        metrics: GatewayMetrics,
        now_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._router = router
        self._engines = reach.engines
        self._session = reach.session
        self._watch = reach.watch
        self._metrics = metrics
        self._now_ms = now_ms

    async def dispatch(self, asked: Asked, deadline: Deadline) -> Dispatched | NotDispatched:
        """Give the answer of the engine that the request belongs to, or of one other, or a refusal.

        Raises:
            TimeoutError: the deadline's. An engine that is slow is not left for another: it may be at work.
        """
        decision = self._route(asked, ())
        self._report(asked, decision, retry=False)
        chosen = self._try(decision, 1)
        question = Question(asked.endpoint, asked.headers, asked.body)
        while isinstance(chosen, Try):
            answered = await self._attempt(asked, chosen, question, deadline)
            served = isinstance(answered, Answered) and answered.response.status not in self._settings.retry_statuses
            further = None if served else self._further(asked, chosen)
            if isinstance(answered, Answered):
                if further is None:
                    return Dispatched(chosen, answered)
                answered.response.close()
                self.over(asked, chosen, outcome_of_status(answered.response.status))
            elif further is None:
                return NotDispatched(Refusal.lost(), chosen.header)
            chosen = further
        return chosen

    def over(self, asked: Asked, chosen: Try, outcome: AttemptOutcome, latency: StreamLatency = NOT_MEASURED) -> None:
        """Take note that an attempt is over: to be called once for each that was dispatched."""
        self._metrics.attempted(chosen.engine.alias, RESULTS[outcome])
        self._router.end(
            asked.model,
            asked.standing.request_class,
            chosen.decision,
            outcome,
            ttft_s=latency.ttft_s,
            tbot_s=latency.tbot_s,
            e2e_s=time.monotonic() - chosen.sent_s,
            key=asked.key,
            retry=chosen.number > 1,
            now_ms=self._now_ms(),
        )

    async def _attempt(self, asked: Asked, chosen: Try, question: Question, deadline: Deadline) -> Answered | Failed:
        """Try one engine; where it gives no answer, that attempt is over, and its failure noted."""
        outcome: AttemptOutcome | None = AttemptOutcome.CANCELLED
        self._router.begin(asked.model, asked.standing.request_class, chosen.decision, now_ms=self._now_ms())
        try:
            answered = await attempt(self._session, chosen.engine, question, deadline, self._settings.first_byte_s)
            outcome = None if isinstance(answered, Answered) else AttemptOutcome.ERROR
        except asyncio.CancelledError:
            if deadline.passed:
                outcome = AttemptOutcome.TIMEOUT
            raise
        finally:
            if outcome is not None:
                self.over(asked, chosen, outcome)
        if isinstance(answered, Failed):
            lost = answered.failure is Failure.LOST
            (self._watch.suspect if lost else self._watch.not_reachable)(chosen.engine)
        return answered

    def _further(self, asked: Asked, failed: Try) -> Try | None:
        """Give another engine to try, if none was tried before, if there is one, and if the budget grants it."""
        if failed.number > 1:
            self._metrics.retried(Retry.ALREADY_RETRIED.value.lower())
            return None
        tried = (failed.engine.engine_id,)
        decision = self._route(asked, tried)
        further = self._try(decision, failed.number + 1)
        if not isinstance(further, Try):
            self._metrics.retried("no_other_engine")
            return None
        granted = self._router.may_retry(asked.model, asked.standing.request_class, tried)
        self._metrics.retried(granted.value.lower())
        if not granted:
            return None
        self._report(asked, decision, retry=True)
        return further

    def _route(self, asked: Asked, tried: tuple[str, ...]) -> Decision:
        return self._router.route(
            asked.model,
            asked.standing.request_class,
            asked.key,
            tier=asked.standing.tier,
            established=asked.established,
            exclude=tried,
            now_ms=self._now_ms(),
        )

    def _report(self, asked: Asked, decision: Decision, *, retry: bool) -> None:
        """Count a decision. A model that nobody serves is no demand: clients can invent names without end."""
        self._metrics.decided(decision.outcome, decision.reason)
        if decision.reason is not DecisionReason.UNKNOWN_ROUTE:
            model, request_class = asked.model, asked.standing.request_class
            self._router.report(model, request_class, decision, retry=retry, now_ms=self._now_ms())

    def _try(self, decision: Decision, number: int) -> Try | NotDispatched:
        engine = self._engines.reach(decision)
        if engine is not None:
            return Try(decision, engine, number, time.monotonic())
        routed = decision.outcome is Outcome.ROUTED
        alias = None if decision.engine_id is None else self._engines.alias(decision.engine_id)
        refusal = Refusal.without_address() if routed else refusal_of(decision)
        return NotDispatched(refusal, decision_header(decision, alias, number))
