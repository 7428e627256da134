"""What a simulated run shows of single requests: sessions that met their engine again, choices, and what users met.

Everything is counted from the instant at which scoring begins. Choices are thinned evenly once there are too many, so
memory does not grow with the run.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

import xxhash

from headrace.dataplane.decision import Decision
from headrace.infra.fleet.gateway import REQUEST_CLASS
from headrace.infra.fleet.request import Ended, Kind, Request
from headrace.replay.score.off_policy import LoggedChoice
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.single_requests import NOT_DRAWN
from headrace.replay.score.users_met import UsersMet, UsersMetFold
from headrace.replay.score.variant_score import SessionHits
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import PPM, Snapshot

MAX_CHOICES = 40_000
MAX_SESSIONS = 500_000

Dated = Sequence[tuple[float, Snapshot]]


class WeightsHistory:
    """Which weights stood when, of one run."""

    def __init__(self, snapshots: Dated) -> None:
        self._at_s = [at_s for at_s, _ in snapshots]
        self._shares = [
            {str(r.route): {t.engine_id: t.weight_ppm / PPM for t in r.targets if t.weight_ppm} for r in s.routes}
            for _, s in snapshots
        ]

    def at(self, at_s: float, route: str) -> dict[str, float]:
        """Give the shares of a route at a time; empty before the first snapshot."""
        place = bisect_right(self._at_s, at_s) - 1
        return self._shares[place].get(route, {}) if place >= 0 else {}


class Observer:
    """Listens to a simulation."""

    def __init__(
        self, model: str, begins_s: float, now_ms: Callable[[float], int], rules: ScoreSettings | None = None
    ) -> None:
        self._model = model
        self._begins_s = begins_s
        self._now_ms = now_ms
        self._engine_of: dict[bytes, str] = {}
        self._returning = self._hits = 0
        self._met = UsersMetFold(now_ms(begins_s), rules or ScoreSettings())
        self._choices: list[LoggedChoice] = []
        self._every = 1
        self._seen = 0

    def end(self, request: Request, ended: Ended) -> None:
        """Take a request's end; a `Listener`."""
        if request.arrived_s < self._begins_s:
            return
        sent_ms = self._now_ms(request.arrived_s)
        if ended.kind is not Kind.ANSWERED or ended.engine_id is None or ended.latency_s is None:
            (self._met.fail if ended.attempts else self._met.shed)(sent_ms)
            return
        self._met.answer(sent_ms, ended.latency_s)
        before = self._engine_of.pop(request.session, None)
        if before is not None:
            self._returning += 1
            self._hits += before == ended.engine_id
        self._engine_of[request.session] = ended.engine_id
        if len(self._engine_of) > MAX_SESSIONS:
            del self._engine_of[next(iter(self._engine_of))]
        if ended.attempts == 1 and ended.decision is not None:
            self._choose(request, ended.decision, ended.engine_id, ended.latency_s)

    @property
    def sessions(self) -> SessionHits:
        """Sessions that returned, and found their engine."""
        return SessionHits(self._returning, self._hits)

    @property
    def choices(self) -> tuple[LoggedChoice, ...]:
        """Evenly thinned choices that were drawn and whose outcome is known, with the data plane's propensity.

        A session's slot is drawn once, so its requests are one draw of an estimate, not as many as there are.
        """
        return tuple(self._choices)

    @property
    def met(self) -> UsersMet:
        """What users met."""
        return self._met.finish()

    def _choose(self, request: Request, decision: Decision, engine_id: str, latency_s: float) -> None:
        if decision.propensity is None or decision.reason in NOT_DRAWN:
            return
        self._seen += 1
        if self._seen % self._every:
            return
        route = str(RouteKey(request.cluster, self._model, REQUEST_CLASS))
        at_ms, cost_ms = self._now_ms(request.arrived_s), 1000 * latency_s
        session = xxhash.xxh3_64_intdigest(request.session)
        self._choices.append(LoggedChoice(at_ms, route, engine_id, decision.propensity, cost_ms, session))
        if len(self._choices) >= MAX_CHOICES:
            self._choices = self._choices[::2]
            self._every *= 2
