"""Recorded requests, one by one, under the weights of a variant: who would have met his engine again, at what cost.

    warm        a session's request whose slot, in the variant's table, is of the same engine as its last one's was
    off-policy  `off_policy`: the variant's share of the engine that was chosen, over the propensity it was chosen with

The tables are the data plane's own, so this is where its sessions would have gone with every engine up and none
suspected. Of the recorded weights it is asked in the same way, so that like is held against like. A request that the
variant sheds tells nothing, nor does one that was sent while none of its snapshots held. For the estimates a request
counts if it was drawn (not hinted, and not staying where its session was released to), answered, and at the first try.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.dataplane.decision import DecisionReason
from headrace.dataplane.route_table import SHED_SHIFT, RouteTable, build_table
from headrace.dataplane.settings import DataPlaneSettings
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.routed import Sampled
from headrace.replay.score.off_policy import LoggedChoice, OffPolicyEstimate, OffPolicyRefused, off_policy
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.variant_score import SessionHits
from headrace.schemas.routed import RoutedOutcome, RoutedRequest
from headrace.schemas.weights import PPM, RouteWeights, SnapshotCommit

NOT_DRAWN: Final = (DecisionReason.HINT, DecisionReason.RELEASED)
_Shares = Mapping[str, float]


class SingleRequests:
    """Follows one variant's ticks.

    Args:
        requests: in the order of their sending.
        settings: of the data planes: how large their tables are.
        rules: what the estimates are held to.
    """

    def __init__(
        self, requests: Sequence[Sampled], settings: DataPlaneSettings, rules: ScoreSettings | None = None
    ) -> None:
        self._requests = requests
        self._settings = settings
        self._rules = rules or ScoreSettings()
        self._next = 0
        self._commit: SnapshotCommit | None = None
        self._routes: dict[bytes, RouteWeights] = {}
        self._tables: dict[bytes, RouteTable] = {}
        self._shares: dict[bytes, tuple[RouteWeights, _Shares]] = {}
        self._engine_of: dict[tuple[int, str], str] = {}
        self._returning = self._hits = 0
        self._choices: list[LoggedChoice] = []
        self._at: dict[tuple[int, str], _Shares] = {}

    def add(self, tick: PlayedTick) -> None:
        """Take the next tick: what was sent before it met the weights of the one before."""
        self._until(tick.now_ms)
        self._commit = tick.snapshot.commit
        self._routes = {route.key: route for route in tick.snapshot.routes}

    def finish(self) -> None:
        """Let the last snapshot stand for as long as it holds."""
        if self._commit is not None:
            self._until(self._commit.valid_until_ms)

    @property
    def sessions(self) -> SessionHits | None:
        """Requests of sessions that had one before; None where they are too few to tell."""
        return SessionHits(self._returning, self._hits) if self._returning >= self._rules.fewest_effective else None

    @property
    def off_policy(self) -> OffPolicyEstimate | OffPolicyRefused:
        """What they tell of the variant's mean latency."""
        return off_policy(self._choices, lambda at_ms, route: self._at[at_ms, route], self._rules)

    def _until(self, now_ms: int) -> None:
        while self._next < len(self._requests) and self._requests[self._next].request.sent_ms < now_ms:
            sampled = self._requests[self._next]
            self._next += 1
            if self._commit is not None and sampled.request.sent_ms < self._commit.valid_until_ms:
                self._take(sampled)

    def _take(self, sampled: Sampled) -> None:
        request, weights = sampled.request, self._routes.get(sampled.key)
        if not request.retry and request.point is not None and weights is not None:
            self._meet(sampled, request.point, weights)
        if request.e2e_s is not None and request.propensity is not None and _counts(request):
            route = sampled.key.decode()
            cost_ms, session = 1000.0 * request.e2e_s, request.session
            self._choices.append(
                LoggedChoice(request.sent_ms, route, request.engine_id, request.propensity, cost_ms, session)
            )
            self._at[request.sent_ms, route] = {} if weights is None else self._share(sampled.key, weights)

    def _meet(self, sampled: Sampled, point: int, weights: RouteWeights) -> None:
        table = self._tables.get(sampled.key)
        if table is None or (table.weights is not weights and table.weights != weights):
            table = self._tables[sampled.key] = build_table(weights, self._settings, table)
        if not table.size or point >> SHED_SHIFT < table.shed_below:
            return
        engine = table.by_slot[table.slots[point % table.size]].engine_id or ""
        before = self._engine_of.get((point, sampled.model))
        self._engine_of[point, sampled.model] = engine
        if before is not None:
            self._returning += 1
            self._hits += before == engine

    def _share(self, key: bytes, weights: RouteWeights) -> _Shares:
        """Give a route's shares; the same object while the weights are."""
        kept = self._shares.get(key)
        if kept is None or kept[0] is not weights:
            shares = {t.engine_id: t.weight_ppm / PPM for t in weights.targets if t.weight_ppm}
            kept = self._shares[key] = weights, shares
        return kept[1]


def _counts(request: RoutedRequest) -> bool:
    return not request.retry and request.outcome is RoutedOutcome.OK and request.reason not in NOT_DRAWN
