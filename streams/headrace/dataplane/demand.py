"""Requests counted per route and period: what the data plane tells the solver about demand.

`count()` only appends to a bounded deque, which is atomic, so any number of request threads may call it; `close()`
folds what is there and gives the periods that are over. A request goes into the period of its own instant; one counted
after that was closed goes into the next: none counted twice.

A route once seen is reported for every period, also with zero: zero demand is then measured, not missing. After
`FORGET_AFTER_PERIODS` of silence it is forgotten, so that invented model names do not add up.

Where the clock steps, back before the open period or forward by more than `MAX_GAP_PERIODS` (a suspended process looks
the same), counting begins anew at where it stands, as at the first close, and the gap is not measured:

    period given   7  8  9 | clock: 9 -> 3 |  3  4  ...  but not what is among the last KEPT_APART_MS given, 7 to 9

since a stream that still has those in its window would add them up. What belongs to no period then (dated by the clock
before, too far ahead, or in a period not given again) is `dropped`: never are several periods' requests put into one.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headrace.dataplane.instant import is_instant
from headrace.schemas.ids import RouteKey, is_identifier
from headrace.schemas.signals import Demand

MAX_PENDING: Final = 1_000_000
"""Requests counted between two calls of `close()`; further ones are dropped and counted in `dropped`."""
MAX_ROUTES: Final = 10_000
FORGET_AFTER_PERIODS: Final = 600
MAX_GAP_PERIODS: Final = 60
KEPT_APART_MS: Final = 20_000
"""Of what was given last, so much is not given again after a step back: twice the streams' window."""
_NONE: Final = range(0)


@dataclass(slots=True)
class _Counts:
    offered: int = 0
    rejected: int = 0
    retries: int = 0


@dataclass(slots=True)
class _Route:
    idle_periods: int = 0
    by_period: dict[int, _Counts] = field(default_factory=dict[int, _Counts])


class _Request(NamedTuple):
    """As a caller gave it: only the instant was looked at."""

    model: Any
    request_class: Any
    at_ms: float
    rejected: bool
    retry: bool


class DemandCounter:
    """Counts of one cluster's requests. One caller closes; any number count.

    Attributes:
        dropped: requests that were not counted: too many pending, too many routes, a name that is no identifier, an
            instant that is none, or one that belongs to no period after a step of the clock.
        steps: how often the clock stepped.
    """

    def __init__(self, cluster: str, source: str, period_ms: int = 1_000) -> None:
        self.cluster = cluster
        self.source = source
        self.period_ms = period_ms
        self.dropped = 0
        self.steps = 0
        self._pending: deque[tuple[Any, Any, float, bool, bool]] = deque(maxlen=MAX_PENDING)
        self._routes: dict[RouteKey, _Route] = {}
        self._open: int | None = None
        self._again = _NONE

    def count(
        self, model: str, request_class: str, now_ms: int, *, rejected: bool = False, retry: bool = False
    ) -> None:
        """Count one request: offered, and rejected where no engine was found for it; a retry counts as nothing else."""
        if len(self._pending) >= MAX_PENDING or not is_instant(now_ms):
            self.dropped += 1
            return
        self._pending.append((model, request_class, now_ms, bool(rejected), bool(retry)))

    def close(self, now_ms: int, *, stepped: bool = False) -> tuple[Demand, ...]:
        """Give the periods that ended at or before `now_ms` and were not given yet, by period and route.

        Args:
            now_ms: of the clock by which requests are counted.
            stepped: whether that clock is known to have stepped since the last close, however little.
        """
        current, first = self._period(now_ms), self._open
        requests = [_Request(*self._pending.popleft()) for _ in range(len(self._pending))]
        closed: list[Demand] = []
        if first is not None and (stepped or not first <= current <= first + MAX_GAP_PERIODS):
            if current > first:
                before = [r for r in requests if self._period(r.at_ms) <= first]
                requests = [r for r in requests if self._period(r.at_ms) > first]
                closed += self._finish(before, first)
            self._step(first, current)
            first = None
        if first is None:
            first = self._earliest(requests, current)
        for request in requests:
            self._fold(request, first, current)
        for period in range(first, current):
            closed += self._give(period)
        self._open = current
        if current > self._again.stop:
            self._again = _NONE
        return tuple(closed)

    def _period(self, at_ms: float) -> int:
        return int(at_ms // self.period_ms)

    def _earliest(self, requests: Iterable[_Request], current: int) -> int:
        """Give the period to begin with: that of the first request that is recent."""
        periods = (self._period(request.at_ms) for request in requests)
        return min((period for period in periods if current - MAX_GAP_PERIODS <= period <= current), default=current)

    def _finish(self, requests: Iterable[_Request], first: int) -> list[Demand]:
        """Give the period that was open when time leapt on."""
        for request in requests:
            self._fold(request, first, first)
        return self._give(first)

    def _step(self, first: int, current: int) -> None:
        """Take leave of the clock before, and of what was counted by it for periods that are not those of now."""
        self.steps += 1
        if current <= first:
            stop = max(first, self._again.stop)
            self._again = range(stop - KEPT_APART_MS // self.period_ms, stop)
        for route in self._routes.values():
            for period in [p for p in route.by_period if not current <= p <= current + 1]:
                self._let_go(route, period)

    def _fold(self, request: _Request, first: int, current: int) -> None:
        """Add one request to its period: one that is still to be given."""
        period = self._period(request.at_ms)
        placed = first - MAX_GAP_PERIODS <= period <= current + 1 and period not in self._again
        route = self._route(request.model, request.request_class) if placed else None
        if route is None:
            self.dropped += 1
            return
        counts = route.by_period.setdefault(max(period, first), _Counts())
        counts.offered += not request.retry
        counts.rejected += request.rejected and not request.retry
        counts.retries += request.retry

    def _route(self, model: object, request_class: object) -> _Route | None:
        if not (isinstance(model, str) and isinstance(request_class, str)):
            return None
        key = RouteKey(self.cluster, model, request_class)
        route = self._routes.get(key)
        if route is None and len(self._routes) < MAX_ROUTES and all(map(is_identifier, key)):
            route = self._routes[key] = _Route()
        return route

    def _give(self, period: int) -> list[Demand]:
        if period in self._again:
            for route in self._routes.values():
                self._let_go(route, period)
            return []
        given = [self._take(key, period) for key in sorted(self._routes)]
        for key in [key for key, route in self._routes.items() if route.idle_periods >= FORGET_AFTER_PERIODS]:
            del self._routes[key]
        return given

    def _take(self, key: RouteKey, period: int) -> Demand:
        route = self._routes[key]
        counts = route.by_period.pop(period, None)
        route.idle_periods = 0 if counts is not None else route.idle_periods + 1
        counts = counts or _Counts()
        start_ms, end_ms = period * self.period_ms, (period + 1) * self.period_ms
        return Demand(*key, self.source, start_ms, end_ms, counts.offered, counts.rejected, counts.retries)

    def _let_go(self, route: _Route, period: int) -> None:
        counts = route.by_period.pop(period, _Counts())
        self.dropped += counts.offered + counts.retries
