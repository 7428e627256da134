"""A cluster's gateway: asks its own router about every request, and learns from what the engines do.

    each attempt                ->  begun and ended, with what became of it: the router's guards learn from that
    connection refused or lost  ->  the engine is down for this router at once
    each second                 ->  every engine that is down is tried again; up one round trip after it answers

Retries: those that the router's budget allows, never to an engine that has failed the request.
"""

from collections.abc import Mapping

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.dataplane.router import Router
from headrace.infra.fleet.outcomes import Tally
from headrace.infra.fleet.request import RETRYABLE, EngineRefusal, Request
from headrace.infra.fleet.round_trips import RoundTrip
from headrace.infra.fleet.scenario import ClusterSpec

REQUEST_CLASS = "default"
_MEANS_FULL = frozenset({EngineRefusal.QUEUE_FULL, EngineRefusal.NO_READY_REPLICA})
_MEANS_DOWN = frozenset(
    {EngineRefusal.CONNECTION_REFUSED, EngineRefusal.CONNECTION_LOST, EngineRefusal.BROKEN_OFF},
)


class Gateway:
    """One cluster's gateway. `known_down` is what it has told its router."""

    def __init__(
        self, spec: ClusterSpec, model: str, router: Router, links: Mapping[str, RoundTrip], tally: Tally
    ) -> None:
        self.spec = spec
        self.router = router
        self.links = links
        self.known_down: set[str] = set()
        self.surge = 1.0
        self._model = model
        self._tally = tally
        self._under_way: dict[int, tuple[Decision, int, bool]] = {}
        """By request: what was decided for its attempt, when it was sent, and whether another failed before it."""

    def choose(self, request: Request, failed_before: tuple[str, ...], now_ms: int) -> Decision:
        """Ask the router; counts what it says about an engine whose death it was told of (it must never)."""
        decision = self.router.route(self._model, REQUEST_CLASS, request.session, exclude=failed_before, now_ms=now_ms)
        self.router.report(self._model, REQUEST_CLASS, decision, retry=bool(failed_before), now_ms=now_ms)
        if decision.outcome is Outcome.ROUTED:
            self._tally.attempts += 1
            if decision.engine_id in self.known_down:
                self._tally.routed_to_known_dead += 1
            self._tally.spilled += decision.reason is DecisionReason.SPILLED
            self.router.begin(self._model, REQUEST_CLASS, decision, now_ms=now_ms)
            self._under_way[request.number] = decision, now_ms, bool(failed_before)
        return decision

    def answered(self, request: Request, since_first_token_s: float, now_ms: int) -> None:
        """Take note that an attempt was answered in full, and how long ago its first token came."""
        self._end(request, AttemptOutcome.OK, since_first_token_s, now_ms)

    def turned_away(self, request: Request, reason: EngineRefusal, now_ms: int) -> None:
        """Take note that an engine did not take an attempt, or did not finish it."""
        full = reason in _MEANS_FULL
        self._end(request, AttemptOutcome.REJECTED if full else AttemptOutcome.ERROR, None, now_ms)

    def _end(self, request: Request, outcome: AttemptOutcome, since_first_token_s: float | None, now_ms: int) -> None:
        decision, sent_ms, retry = self._under_way.pop(request.number)
        e2e_s = (now_ms - sent_ms) / 1000
        self.router.end(
            self._model,
            REQUEST_CLASS,
            decision,
            outcome,
            ttft_s=None if since_first_token_s is None else e2e_s - since_first_token_s,
            e2e_s=e2e_s,
            key=request.session,
            retry=retry,
            now_ms=now_ms,
        )

    def may_retry(self, tried: tuple[str, ...], reason: EngineRefusal) -> bool:
        """Say whether a request that an engine did not serve may be sent to another one; spends the budget."""
        if reason not in RETRYABLE:
            return False
        granted = bool(self.router.may_retry(self._model, REQUEST_CLASS, tried))
        self._tally.retries += granted
        return granted

    def learn(self, engine_id: str, reason: EngineRefusal) -> None:
        """Take note of what an engine did to a request."""
        if reason in _MEANS_DOWN and engine_id not in self.known_down:
            self.known_down.add(engine_id)
            self.router.set_health(engine_id, up=False)

    def answers_again(self, engine_id: str) -> None:
        """Take note that a down engine answered a probe."""
        self.known_down.discard(engine_id)
        self.router.set_health(engine_id, up=True)
