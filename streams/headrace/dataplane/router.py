"""The router of one cluster: `route()` is a look-up in memory, safe from any thread, and always has an answer.

    route ─► hash of the session key ─► shed? ─► hint, if still valid ─► slot ─► up? ─► ENGINE
                                                                                 │ no
                     REFUSED with a reason ◄─ fallback ◄─ weighted scan ◄─ other slots (bounded)

No lock, no I/O, no clock, no dice. A snapshot is one reference, stored once; what is known to be down is a set whose
single operations are atomic. An engine known to be down is never given out, whatever its weight: `set_health` wins at
once, and only that engine's sessions move, and move back when it is up.
"""

from collections.abc import Collection
from itertools import count
from typing import Final

import xxhash

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.demand import DemandCounter
from headrace.dataplane.installation import Installation, NotInstalled, RouteName, install
from headrace.dataplane.rendezvous import Candidates
from headrace.dataplane.retry_budget import Retry, RetryBudget
from headrace.dataplane.route_table import SHED_BITS, RouteTable
from headrace.dataplane.settings import DataPlaneSettings, FallbackEngine
from headrace.dataplane.staleness import Staleness, staleness
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import identifier_problem
from headrace.schemas.weights import Snapshot

_POINT_BITS: Final = 64
_SHED_SHIFT: Final = _POINT_BITS - SHED_BITS


class Router:
    """Decides which engine each request of one cluster goes to.

    Args:
        settings: checked here, all problems at once.
        cluster: whose routes of a snapshot are used.

    Raises:
        InvalidInputError: a table size is no prime, or a name is no identifier.

    Attributes:
        demand: counts of the requests reported, for `headrace.dataplane.reporter` to publish.
    """

    def __init__(self, settings: DataPlaneSettings, cluster: str) -> None:
        _check(settings, cluster)
        self.settings = settings
        self.cluster = cluster
        self.demand = DemandCounter(cluster, settings.source, settings.demand_period_ms)
        self._installed: Installation | None = None
        self._down: set[str] = set()
        self._budgets: dict[RouteName, RetryBudget] = {}
        self._keyless = count()
        self._keyless_seed = xxhash.xxh3_64_intdigest(f"{cluster}|{settings.source}".encode())
        self._configured = {model: _configured(engines) for model, engines in settings.fallback.items()}
        self._refused = {reason: _refused(reason, settings.retry_after_s) for reason in DecisionReason}

    @property
    def installation(self) -> Installation | None:
        """What requests are routed by now; None before the first snapshot."""
        return self._installed

    def apply(self, snapshot: Snapshot) -> Installation | NotInstalled:
        """Make a snapshot ready and route by it from the next request on; call from one thread, not a request's.

        A snapshot that is not newer, not LIVE or not sound is left aside with a reason, and the one before stays.
        """
        made = install(snapshot, self.cluster, self.settings, self._installed)
        if isinstance(made, Installation):
            burst = self.settings.retry_burst
            self._budgets = {name: self._budgets.get(name) or RetryBudget(burst) for name in made.tables}
            self._installed = made
        return made

    def set_health(self, engine_id: str, up: bool) -> None:  # noqa: FBT001 - reads as a sentence: set_health("a", True)
        """Say that an engine is down, or up again; it holds until said otherwise, over whatever snapshots say."""
        if up:
            self._down.discard(engine_id)
        else:
            self._down.add(engine_id)

    def is_down(self, engine_id: str) -> bool:
        """Say whether an engine was called down."""
        return engine_id in self._down

    def staleness(self, now_ms: int) -> Staleness:
        """Judge the installed weights by their age."""
        commit = None if self._installed is None else self._installed.commit
        return staleness(commit, now_ms, self.settings.fresh_periods)

    def route(  # noqa: PLR0913 - what a request is known by; all but the model have defaults
        self,
        model: str,
        request_class: str = "default",
        key: bytes | str | None = None,
        *,
        tier: int | None = None,
        hint: str | None = None,
        exclude: Collection[str] = (),
        now_ms: int,
    ) -> Decision:
        """Decide for one request. Never raises: arguments of other types are INVALID_REQUEST.

        Args:
            model: what the request asks for.
            request_class: its class; a class the solver does not know is UNKNOWN_ROUTE.
            key: of the session: equal keys get the same engine while weights allow. None or empty: no session; such
                requests are spread by the weights, each by itself.
            tier: 0 = shed last; None is the route's own.
            hint: an engine that has the session's cache, taken if it has a weight and is up.
            exclude: engines that were tried already.
            now_ms: the caller's wall clock.
        """
        try:
            point = self._point(key)
            installed = self._installed
            if installed is None:
                return self._without_snapshot(model, point, exclude)
            table = installed.tables.get((model, request_class))
            if table is None:
                return self._refused[DecisionReason.UNKNOWN_ROUTE]
            if now_ms >= installed.commit.valid_until_ms:
                return self._by_stale_snapshot(table, point, exclude)
            if table.shed_below and point >> _SHED_SHIFT < table.shed_limit(tier):
                return table.shed if table.weights.targets else table.no_eligible_engine
            if hint is not None and hint in table.by_hint and hint not in self._down and hint not in exclude:
                return table.by_hint[hint]
            return self._by_weights(table, point, exclude)
        except Exception:  # noqa: BLE001 - the data plane never raises into the gateway
            return self._refused[DecisionReason.INVALID_REQUEST]

    def report(self, model: str, request_class: str, decision: Decision, *, retry: bool = False, now_ms: int) -> None:
        """Count a request by what was decided for it: once per `route()` call that a gateway acted on."""
        routed = decision.outcome is Outcome.ROUTED
        self.demand.count(model, request_class, now_ms, rejected=not routed, retry=retry)
        if routed and not retry:
            table, budget = self._budgeted(model, request_class)
            if table is not None and budget is not None:
                budget.earn(table.weights.retry_ratio)

    def may_retry(self, model: str, request_class: str, tried: Collection[str]) -> Retry:
        """Ask to send a failed request again, before its first byte, to another engine: `route(exclude=tried)`.

        Spends one retry of the route's budget where GRANTED. One retry at most: with two engines tried it is refused.
        """
        if len(tried) > 1:
            return Retry.ALREADY_RETRIED
        table, budget = self._budgeted(model, request_class)
        if table is None or budget is None:
            return Retry.UNKNOWN_ROUTE
        return budget.spend(table.weights.retry_ratio)

    def _budgeted(self, model: str, request_class: str) -> tuple[RouteTable | None, RetryBudget | None]:
        installed, name = self._installed, (model, request_class)
        return (None if installed is None else installed.tables.get(name)), self._budgets.get(name)

    def _point(self, key: bytes | str | None) -> int:
        """Give the session's place on the circle of 64 bits."""
        if not key:
            return xxhash.xxh3_64_intdigest(next(self._keyless).to_bytes(8, "little"), self._keyless_seed)
        if isinstance(key, str):
            key = key.encode("utf-8", "surrogatepass")
        return xxhash.xxh3_64_intdigest(key)

    def _by_weights(self, table: RouteTable, point: int, exclude: Collection[str]) -> Decision:
        if not table.size:
            return table.no_eligible_engine
        decision = table.by_slot[table.slots[point % table.size]]
        if decision.engine_id not in self._down and decision.engine_id not in exclude:
            return decision
        return self._around(table, point, exclude)

    def _around(self, table: RouteTable, point: int, exclude: Collection[str]) -> Decision:
        """Decide for a session whose slot's engine may not be used."""
        for seed in range(1, self.settings.rehash_max + 1):
            other = xxhash.xxh3_64_intdigest(point.to_bytes(8, "little"), seed)
            decision = table.by_slot[table.slots[other % table.size]]
            if decision.engine_id not in self._down and decision.engine_id not in exclude:
                return _because(DecisionReason.REHASH, decision)
        scanned = table.weighted.pick(point, self._down, exclude)
        if scanned is not None:
            return _because(DecisionReason.SCAN, scanned)
        fallback = table.fallback.pick(point, self._down, exclude)
        if fallback is not None:
            return _because(DecisionReason.FALLBACK_DOWN, fallback)
        return table.all_down if self._all_down(table.weighted, table.fallback) else table.no_other_engine

    def _by_stale_snapshot(self, table: RouteTable, point: int, exclude: Collection[str]) -> Decision:
        """Decide past the time to live: nothing is shed by a measure that old, and nothing refused for age alone."""
        fallback = table.fallback.pick(point, self._down, exclude)
        if fallback is not None:
            return fallback
        decision = self._by_weights(table, point, exclude)
        return decision if decision.engine_id is None else _because(DecisionReason.STALE_WEIGHTS, decision)

    def _without_snapshot(self, model: str, point: int, exclude: Collection[str]) -> Decision:
        configured = self._configured.get(model)
        if configured is None:
            return self._refused[DecisionReason.NO_SNAPSHOT]
        decision = configured.pick(point, self._down, exclude)
        if decision is not None:
            return decision
        all_down = self._all_down(configured)
        return self._refused[DecisionReason.ALL_DOWN if all_down else DecisionReason.NO_OTHER_ENGINE]

    def _all_down(self, *candidates: Candidates) -> bool:
        return all(d.engine_id in self._down for some in candidates for d in some.decisions)


def _because(reason: DecisionReason, d: Decision) -> Decision:
    return Decision(d.outcome, d.engine_id, d.address, reason, d.epoch, d.version)


def _refused(reason: DecisionReason, retry_after_s: float) -> Decision:
    return Decision(Outcome.REFUSED, None, None, reason, retry_after_s=retry_after_s)


def _configured(engines: tuple[FallbackEngine, ...]) -> Candidates:
    reason = DecisionReason.FALLBACK_CONFIGURED
    decisions = [Decision(Outcome.ROUTED, engine.engine_id, engine.address, reason) for engine in engines]
    return Candidates(decisions, [engine.weight for engine in engines])


def _check(settings: DataPlaneSettings, cluster: str) -> None:
    names = [("cluster", cluster), ("dataplane.source", settings.source)]
    for model, engines in settings.fallback.items():
        names.append(("dataplane.fallback", model))
        names += [(f"dataplane.fallback[{model}].engine_id", engine.engine_id) for engine in engines]
    problems = [problem for name, value in names if (problem := identifier_problem(name, value)) is not None]
    for name in ("table_size", "large_table_size"):
        size: int = getattr(settings, name)
        if not _is_prime(size):
            problems.append(f"dataplane.{name} is {size}; a prime, such as 16381 or 65537")
    if problems:
        raise InvalidInputError("data plane", tuple(problems))


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
