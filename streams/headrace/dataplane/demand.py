"""Requests counted per route and period: what the data plane tells the solver about demand.

`count()` only appends to a bounded deque, which is atomic, so any number of request threads may call it; `close()`
folds what is there and gives the periods that are over. A request counted after its period was closed goes into the
next one: none is lost, none counted twice.

A route once seen is reported for every period, also with zero: zero demand is then measured, not missing. After
`FORGET_AFTER_PERIODS` of silence it is forgotten, so that invented model names do not add up. A gap longer than
`MAX_GAP_PERIODS` (the process was suspended) is not measured, and not reported.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.schemas.ids import RouteKey, is_identifier
from headrace.schemas.signals import Demand

MAX_PENDING: Final = 1_000_000
"""Requests counted between two calls of `close()`; further ones are dropped and counted in `dropped`."""
MAX_ROUTES: Final = 10_000
FORGET_AFTER_PERIODS: Final = 600
MAX_GAP_PERIODS: Final = 60


@dataclass(slots=True)
class _Counts:
    offered: int = 0
    rejected: int = 0
    retries: int = 0


@dataclass(slots=True)
class _Route:
    idle_periods: int = 0
    by_period: dict[int, _Counts] = field(default_factory=dict[int, _Counts])


class DemandCounter:
    """Counts of one cluster's requests. One caller closes; any number count.

    Attributes:
        dropped: requests that were not counted: too many pending, too many routes, or a name that is no identifier.
    """

    def __init__(self, cluster: str, source: str, period_ms: int = 1_000) -> None:
        self.cluster = cluster
        self.source = source
        self.period_ms = period_ms
        self.dropped = 0
        self._pending: deque[tuple[Any, Any, int, bool, bool]] = deque(maxlen=MAX_PENDING)
        self._routes: dict[RouteKey, _Route] = {}
        self._open: int | None = None

    def count(
        self, model: str, request_class: str, now_ms: int, *, rejected: bool = False, retry: bool = False
    ) -> None:
        """Count one request: offered, and rejected where no engine was found for it; a retry counts as nothing else."""
        if len(self._pending) >= MAX_PENDING:
            self.dropped += 1
            return
        self._pending.append((model, request_class, now_ms, rejected, retry))

    def close(self, now_ms: int) -> tuple[Demand, ...]:
        """Give the periods that ended at or before `now_ms` and were not given yet, by period and route."""
        current = now_ms // self.period_ms
        first = self._earliest(current) if self._open is None else self._open
        self._open = current = max(first, current)
        measured_from = max(first + 1, current - MAX_GAP_PERIODS)
        while self._pending:
            self._fold(first, measured_from, current)
        closed: list[Demand] = []
        for period in (first, *range(measured_from, current)) if first < current else ():
            closed += [self._take(key, period) for key in sorted(self._routes)]
            self._forget()
        return tuple(closed)

    def _earliest(self, current: int) -> int:
        """Give the period that the first close begins with: that of the first request, if it is a recent one."""
        if not self._pending:
            return current
        return max(min(self._pending[0][2] // self.period_ms, current), current - MAX_GAP_PERIODS)

    def _fold(self, first: int, measured_from: int, current: int) -> None:
        """Add the oldest pending request to its period: one that is still to be given."""
        model, request_class, at_ms, rejected, retry = self._pending.popleft()
        route = self._route(model, request_class)
        if route is None:
            self.dropped += 1
            return
        period = at_ms // self.period_ms
        period = first if period <= first else max(period, measured_from)
        counts = route.by_period.setdefault(min(period, current), _Counts())
        counts.offered += not retry
        counts.rejected += bool(rejected and not retry)
        counts.retries += bool(retry)

    def _route(self, model: object, request_class: object) -> _Route | None:
        if not (isinstance(model, str) and isinstance(request_class, str)):
            return None
        key = RouteKey(self.cluster, model, request_class)
        route = self._routes.get(key)
        if route is None and len(self._routes) < MAX_ROUTES and all(map(is_identifier, key)):
            route = self._routes[key] = _Route()
        return route

    def _take(self, key: RouteKey, period: int) -> Demand:
        route = self._routes[key]
        counts = route.by_period.pop(period, None)
        route.idle_periods = 0 if counts is not None else route.idle_periods + 1
        counts = counts or _Counts()
        start_ms, end_ms = period * self.period_ms, (period + 1) * self.period_ms
        return Demand(*key, self.source, start_ms, end_ms, counts.offered, counts.rejected, counts.retries)

    def _forget(self) -> None:
        silent = [key for key, route in self._routes.items() if route.idle_periods >= FORGET_AFTER_PERIODS]
        for key in silent:
            del self._routes[key]
