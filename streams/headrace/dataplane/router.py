"""The router of one cluster: `route()` is a look-up in memory, safe from any thread, and always has an answer.

    route ─► hash of the session key ─► shed? ─► hint, if still valid ─► slot ─► anyone left out? ─ no ─► ENGINE
                                                                                 │ yes
            ENGINE, or REFUSED with a reason ◄─ other way (other slots, scan, panic, fallback)

No lock, no I/O, no clock, no dice. A snapshot is one reference, stored once; what is known of engines is kept in sets
and dictionaries whose single operations are atomic. An engine known to be down is never given out, whatever its weight:
`set_health` wins at once, and only that engine's sessions move, and move back when it is up. Engines that are only
suspected, by what `end` and `report` have said of them, are left out within bounds (`headrace.dataplane.guards`).
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

import xxhash

from headrace.dataplane.configured import Configured
from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.demand import DemandCounter
from headrace.dataplane.detour import Asked, excluded
from headrace.dataplane.guards.contract import AttemptOutcome, Sample
from headrace.dataplane.guards.ejection import Ejection
from headrace.dataplane.installation import Installation, NotInstalled, RouteName, install
from headrace.dataplane.instant import asked_instant, checked_instant, is_name
from headrace.dataplane.latencies import LatencyCounter
from headrace.dataplane.live_route import LiveRoute, sheds
from headrace.dataplane.other_way import OtherWay
from headrace.dataplane.retry_budget import Retry
from headrace.dataplane.route_table import RouteTable
from headrace.dataplane.routed_sample import RoutedSample
from headrace.dataplane.router_settings import check_settings
from headrace.dataplane.session_point import SessionPoints
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.staleness import Staleness, staleness
from headrace.dataplane.watch import Watch
from headrace.schemas.weights import Snapshot

_NOBODY: Final[tuple[str, ...]] = ()
_NO_WEIGHTS: Final[Mapping[str, int]] = MappingProxyType({})
_hash = xxhash.xxh3_64_intdigest


class Router:
    """Decides which engine each request of one cluster goes to.

    A gateway calls `route`, then `report` once; around each attempt `begin` and `end`, if guards are to learn.

    Args:
        settings: checked here, all problems at once.
        cluster: whose routes of a snapshot are used.

    Raises:
        InvalidInputError: a table size is no prime, or a name is no identifier.

    Attributes:
        demand: counts of the requests reported, for `headrace.dataplane.reporter` to publish.
        latencies: the latencies reported, likewise.
        routed: the sampled requests, likewise.
        invalid: calls with arguments of other types; each was INVALID_REQUEST, or had no effect.
    """

    def __init__(self, settings: DataPlaneSettings, cluster: str) -> None:
        check_settings(settings, cluster)
        self.settings = settings
        self.cluster = cluster
        self.demand = DemandCounter(cluster, settings.source, settings.demand_period_ms)
        self.latencies = LatencyCounter(settings.source)
        self.routed = RoutedSample(cluster, settings.source, settings.routed_share)
        self.invalid = 0
        self._installed: Installation | None = None
        name = f"{cluster}|{settings.source}"
        self._watch = Watch(settings, name)
        self._other_way = OtherWay(self._watch, settings.rehash_max)
        self._down = self._watch.down
        self._signs = self._watch.signs
        self._live: dict[RouteName, LiveRoute] = {}
        self._point = SessionPoints(name).of
        self._configured = Configured(settings)
        self._refused = self._configured.refused

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
            live = {name: self._live.get(name) or LiveRoute(self.settings, name) for name in made.tables}
            for name, table in made.tables.items():
                live[name].install(table, made.commit.demand_until_ms)
                self._watch.look_at_surge(live[name])
            gone = [was for name, was in self._live.items() if name not in live]
            self._live = live
            for was in gone:
                self._watch.forget(was)
            self._installed = made
            self._watch.install(made)
        return made

    def set_health(self, engine_id: str, up: bool) -> None:  # noqa: FBT001 - reads as a sentence: set_health("a", True)
        """Say that an engine is down, or up again; it holds until said otherwise, over whatever snapshots say."""
        try:
            self._watch.set_health(engine_id, up=up)
        except Exception:  # noqa: BLE001 - as in `route`
            self.invalid += 1

    # Questions that are no request's. Those with an instant raise InvalidInputError where it is none; a name of
    # whatever type that nobody has is one that is not known.

    def weights(self, model: str, request_class: str = "default") -> Mapping[str, int]:
        """Give a route's weights in ppm, without the engines that have none; empty for a route that is not known."""
        table, _ = self._asked(model, request_class)
        return _NO_WEIGHTS if table is None else MappingProxyType(dict(table.ppm))

    def is_down(self, engine_id: str) -> bool:
        """Say whether an engine was called down."""
        return is_name(engine_id) and engine_id in self._down

    def ejections(self, now_ms: int) -> tuple[Ejection, ...]:
        """Give who is suspected now, why and until when; a route leaves out at most its share of them."""
        return self._watch.experience.ejections(asked_instant(now_ms))

    def throttled(self, now_ms: int) -> dict[str, float]:
        """Give the engines that reject, each with the share of sessions that is kept from it."""
        return self._watch.experience.throttled(asked_instant(now_ms))

    def in_flight(self, model: str, request_class: str, engine_id: str) -> int:
        """Give the attempts begun and not ended at an engine for a route; 0 for a route that is not known."""
        _, live = self._asked(model, request_class)
        return 0 if live is None or not is_name(engine_id) else live.in_flight.count(engine_id)

    def surge(self, model: str, request_class: str = "default") -> float:
        """Give how many times what a route's weights know of arrives; 1 where nothing says that it is more."""
        _, live = self._asked(model, request_class)
        return 1.0 if live is None else live.surge.times

    def retries_saved(self, model: str, request_class: str = "default") -> int:
        """Give the retries that a route may spend now; 0 for one that is not known, or where weights allow none."""
        table, live = self._asked(model, request_class)
        return 0 if table is None or live is None or table.weights.retry_ratio <= 0 else live.budget.saved

    def staleness(self, now_ms: int) -> Staleness:
        """Judge the installed weights by their age."""
        commit = None if self._installed is None else self._installed.commit
        return staleness(commit, asked_instant(now_ms), self.settings.fresh_periods)

    def route(  # noqa: C901, PLR0913 - one line of guards, which calls would slow; what a request is known by
        self,
        model: str,
        request_class: str = "default",
        key: bytes | str | None = None,
        *,
        tier: int | None = None,
        hint: str | None = None,
        exclude: Collection[str] = _NOBODY,
        established: bool | None = None,
        now_ms: int,
    ) -> Decision:
        """Decide for one request. Never raises: arguments of other types are INVALID_REQUEST.

        Args:
            model: what the request asks for.
            request_class: its class; a class the solver does not know is UNKNOWN_ROUTE.
            key: of the session: equal keys get the same engine while weights allow. None or empty: no session; such
                requests are spread by the weights, each by itself.
            tier: 0 = shed last; None is the route's own.
            hint: an engine that has the session's cache, taken if it has a weight and is not left out.
            exclude: engines that were tried already; a text is one engine.
            established: whether the conversation has begun before; those are shed and moved after new ones. None:
                not known.
            now_ms: the caller's wall clock.
        """
        try:
            if type(now_ms) is not int:
                now_ms = checked_instant(now_ms)
            point = _hash(key.encode()) if type(key) is str and key and key.isascii() else self._point(key)
            installed = self._installed
            if installed is None:
                return self._configured.decide(model, point, exclude, self._down)
            table = installed.tables.get((model, request_class))
            if table is None:
                return self._refused[DecisionReason.UNKNOWN_ROUTE]
            if now_ms >= installed.commit.valid_until_ms:
                asked = Asked(point, bool(key), None, excluded(exclude, table))
                return self._other_way.by_stale_snapshot(table, self._live.get(table.name), asked, now_ms)
            if established is not None:
                self._see(table, established=established)
            if table.shed_below and sheds(table, self._live.get(table.name), point, tier, established):
                return table.shed if table.weights.targets else table.no_eligible_engine
            if hint is None and exclude is _NOBODY and table.size:
                decision = table.by_slot[table.slots[point % table.size]]
                if not self._signs:
                    return decision
                live = self._live.get(table.name)
                known = self._other_way.known(table, live, point, decision.engine_id, now_ms, new=established is False)
                if known is not None:
                    return known
            out = exclude if exclude is _NOBODY else excluded(exclude, table)
            asked = Asked(point, bool(key), hint, out, established, tier)
            return self._other_way.decide(table, self._live.get(table.name), asked, now_ms)
        except Exception:  # noqa: BLE001 - the data plane never raises into the gateway
            self.invalid += 1
            return self._refused[DecisionReason.INVALID_REQUEST]

    def report(  # noqa: PLR0913 - what is known of a request when it is over; a caller gives what it knows
        self,
        model: str,
        request_class: str,
        decision: Decision,
        *,
        retry: bool = False,
        outcome: AttemptOutcome | None = None,
        ttft_s: float | None = None,
        now_ms: int,
    ) -> None:
        """Count a request by what was decided for it: once per `route()` call that a gateway acted on.

        A gateway that does not call `end` may give here what became of it, for the guards; not both.
        """
        try:
            routed = decision.outcome is Outcome.ROUTED
            checked_instant(now_ms)
            self.demand.count(model, request_class, now_ms, rejected=not routed, retry=retry)
            table, live = self._known(model, request_class)
            if live is not None and not retry:
                self._watch.arrive(live, now_ms)
            if table is not None and live is not None and routed and not retry:
                live.budget.earn(table.weights.retry_ratio)
            if decision.reason is DecisionReason.THROTTLED and table is not None:
                self._watch.experience.keep_back(table.ppm, now_ms)
            if outcome is not None and decision.engine_id is not None:
                sample = Sample(AttemptOutcome(outcome), ttft_s)
                self._learn(model, request_class, decision.engine_id, sample, now_ms, begun=False)
        except Exception:  # noqa: BLE001 - as in `route`
            self.invalid += 1

    def begin(self, model: str, request_class: str, decision: Decision, *, now_ms: int) -> None:
        """Note that an attempt is sent to the decision's engine: each one is to be ended once."""
        try:
            live = self._live.get((model, request_class))
            if live is not None and decision.engine_id is not None:
                live.in_flight.begin(decision.engine_id)
                self._watch.begin(decision.engine_id, live, checked_instant(now_ms))
        except Exception:  # noqa: BLE001 - as in `route`
            self.invalid += 1

    def end(  # noqa: PLR0913 - what is known of an attempt when it is over; a caller gives what it knows
        self,
        model: str,
        request_class: str,
        decision: Decision,
        outcome: AttemptOutcome,
        *,
        ttft_s: float | None = None,
        tbot_s: float | None = None,
        e2e_s: float | None = None,
        key: bytes | str | None = None,
        retry: bool = False,
        now_ms: int,
    ) -> None:
        """Note that an attempt is over, for the guards and the reports; latencies as seen from here.

        `key` and `retry` as they were given to `route` and `report`: only the sample of routed requests asks for them.
        """
        try:
            if decision.engine_id is None:
                return
            live = self._live.get((model, request_class))
            begun = live is not None and live.in_flight.end(decision.engine_id)
            if live is not None and begun:
                self._watch.look_at_crowd(live)
            sample = Sample(AttemptOutcome(outcome), ttft_s)
            self.latencies.note(decision.engine_id, model, ttft_s, tbot_s, checked_instant(now_ms), sample.outcome)
            self._learn(model, request_class, decision.engine_id, sample, now_ms, begun=begun)
            self.routed.note(
                model,
                request_class,
                decision,
                sample.outcome,
                key=key,
                retry=retry,
                ttft_s=ttft_s,
                e2e_s=e2e_s,
                now_ms=now_ms,
            )
        except Exception:  # noqa: BLE001 - as in `route`
            self.invalid += 1

    def may_retry(self, model: str, request_class: str, tried: Collection[str]) -> Retry:
        """Ask to send a failed request again, before its first byte, to another engine: `route(exclude=tried)`.

        Spends one retry of the route's budget where GRANTED. One retry at most: with two engines tried it is refused.
        """
        try:
            if not isinstance(tried, str) and len(tried) > 1:
                return Retry.ALREADY_RETRIED
            table, live = self._known(model, request_class)
            if table is None or live is None:
                return Retry.UNKNOWN_ROUTE
            return live.budget.spend(table.weights.retry_ratio)
        except Exception:  # noqa: BLE001 - as in `route`
            self.invalid += 1
            return Retry.INVALID_REQUEST

    def _asked(self, model: str, request_class: str) -> tuple[RouteTable | None, LiveRoute | None]:
        return self._known(model, request_class) if is_name(model) and is_name(request_class) else (None, None)

    def _known(self, model: str, request_class: str) -> tuple[RouteTable | None, LiveRoute | None]:
        installed, name = self._installed, (model, request_class)
        return (None if installed is None else installed.tables.get(name)), self._live.get(name)

    def _learn(
        self, model: str, request_class: str, engine_id: str, sample: Sample, now_ms: int, *, begun: bool
    ) -> None:
        table, _ = self._known(model, request_class)
        if table is not None and sample.ttft_s is not None:
            sample = Sample(sample.outcome, sample.ttft_s, table.expected_ttft_s.get(engine_id))
        self._watch.learn(engine_id, sample, now_ms, begun=begun)

    def _see(self, table: RouteTable, *, established: bool) -> None:
        live = self._live.get(table.name)
        if live is not None:
            live.see(established=established)
