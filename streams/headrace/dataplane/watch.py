"""Who is left out of which route, kept up to date: health as told, suspicions as learnt, judged anew after each change.

`signs` says whether a request may have to take another way than its slot at all; while it is empty, which is the usual
case, nobody asks anything else. Whatever changes is counted, and a judgement older than the count is made again by the
next request that needs it. No lock: single operations on sets and dictionaries are atomic, judgements are replaced.
"""

from itertools import count
from typing import Final

from headrace.dataplane.avoidance import Avoidance, Limits, avoidance
from headrace.dataplane.detour import Asked, LeftOut
from headrace.dataplane.experience import Experience
from headrace.dataplane.guards.contract import Sample
from headrace.dataplane.installation import Installation, RouteName
from headrace.dataplane.live_route import LiveRoute
from headrace.dataplane.overflow import spilled
from headrace.dataplane.route_table import RouteTable
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.staleness import fresh_until_ms

_NOBODY: Final = frozenset[str]()
_SUSPICION: Final = "suspicion"


class Watch:
    """Of one router; `seed` is the data plane's name, for the jitter of ejections.

    Attributes:
        down: engines told to be down.
        signs: why a request may have to take another way than its slot.
        experience: what was learnt of engines.
    """

    def __init__(self, settings: DataPlaneSettings, seed: str) -> None:
        self.down: set[str] = set()
        self.signs: set[str] = set()
        self.experience = Experience(settings.guards, seed)
        self._settings = settings
        self._installed: Installation | None = None
        self._avoidances: dict[RouteName, Avoidance] = {}
        self._for_all: dict[RouteName, LeftOut] = {}
        self._for_new: dict[RouteName, LeftOut] = {}
        self._changes = count(1)
        self._change = 0

    def install(self, made: Installation) -> None:
        """Judge by a new snapshot from now on, and forget engines and routes that it does not name."""
        self._installed = made
        self.experience.keep({engine for table in made.tables.values() for engine in table.engines})
        self._avoidances, self._for_all, self._for_new = {}, {}, {}
        self._changed()

    def set_health(self, engine_id: str, *, up: bool) -> None:
        """Take note that an engine is down, or up."""
        (self.down.discard if up else self.down.add)(engine_id)
        self.sign(f"down {engine_id}", shown=not up)
        self._changed()

    def learn(self, engine_id: str, sample: Sample, now_ms: int, *, begun: bool) -> None:
        """Take note of what an attempt met; `begun` where its sending was noted."""
        if self.experience.learn(engine_id, sample, now_ms, begun=begun):
            self.signs.add(_SUSPICION)
            self._changed()

    def begin(self, engine_id: str, live: LiveRoute, now_ms: int) -> None:
        """Take note that an attempt of a route is sent."""
        self.experience.send(engine_id, now_ms)
        self.look_at_crowd(live)

    def look_at_crowd(self, live: LiveRoute) -> None:
        """Show whether a route has crowded engines."""
        if live.in_flight.crowded_for_new:
            self.signs.add(live.crowded_sign)
        elif live.crowded_sign in self.signs:
            self.signs.discard(live.crowded_sign)

    def arrive(self, live: LiveRoute, now_ms: int) -> None:
        """Take note that a request of a route has come. Only this route's judgement goes out of date by it."""
        if live.surge.arrive(now_ms):
            self.look_at_surge(live)

    def look_at_surge(self, live: LiveRoute) -> None:
        """Show whether more of a route's requests come than its weights know of."""
        self.sign(live.surge_sign, shown=live.surge.times > 1.0)

    def forget(self, live: LiveRoute) -> None:
        """Take away the signs of a route that is no more."""
        self.signs.difference_update((live.crowded_sign, live.released_sign, live.surge_sign))

    def sign(self, what: str, *, shown: bool) -> None:
        """Show a sign, or take it away."""
        (self.signs.add if shown else self.signs.discard)(what)

    def left_out(self, table: RouteTable, asked: Asked, live: LiveRoute | None, now_ms: int) -> LeftOut:
        """Give who may not be taken for one request."""
        view = self._view(table, live, now_ms)
        throttled = view.throttled_for(asked.point) if view.throttled else _NOBODY
        return LeftOut.of(view, _crowded(live, asked.established), throttled, asked.exclude)

    def left_out_of_all(
        self, table: RouteTable, point: int, live: LiveRoute | None, now_ms: int, *, new: bool
    ) -> LeftOut | None:
        """Give who may not be taken for requests without wishes; None where this session is throttled somewhere."""
        known = (self._for_new if new else self._for_all).get(table.name)
        crowded = _NOBODY if live is None else live.in_flight.crowded_for_new if new else live.in_flight.crowded
        if (
            known is not None
            and known.crowded is crowded
            and known.view.change == self._change
            and known.view.table is table
            and (live is None or known.view.times == live.surge.times)
            and known.view.from_ms <= now_ms < known.view.until_ms
            and not (known.view.throttled and known.view.throttled_for(point))
        ):
            return known
        view = self._view(table, live, now_ms)
        if view.throttled and view.throttled_for(point):
            return None
        made = LeftOut.of(view, _crowded(live, established=not new), _NOBODY, ())
        (self._for_new if new else self._for_all)[table.name] = made
        return made

    def _view(self, table: RouteTable, live: LiveRoute | None, now_ms: int) -> Avoidance:
        view = self._avoidances.get(table.name)
        if (
            view is None
            or view.table is not table
            or view.change != self._change
            or (live is not None and view.times != live.surge.times)
            or not view.from_ms <= now_ms < view.until_ms
        ):
            view = self._avoidances[table.name] = self._judge(table, live, now_ms)
            if live is not None:
                shared = table.ppm if table.failover is None else table.failover.weights(table.ppm, view.avoided)
                if table.failover is not None and view.overflow.limits:
                    shared = spilled(view.overflow, shared, table.failover.shares, view.suspected)
                sound = {engine: weight for engine, weight in shared.items() if engine not in view.suspected}
                live.in_flight.weigh(sound or table.ppm)
                self.look_at_crowd(live)
        return view

    def _judge(self, table: RouteTable, live: LiveRoute | None, now_ms: int) -> Avoidance:
        """Put together who is left out of a route, and note whether anybody is suspected at all."""
        change = self._change  # read first: what changes while this looks makes it out of date
        guards, commit = self._settings.guards, None if self._installed is None else self._installed.commit
        fresh_until = now_ms if commit is None else fresh_until_ms(commit, self._settings.fresh_periods)
        times = 1.0 if live is None else live.surge.times
        if now_ms < fresh_until:
            limits = Limits(guards.ejected_max, guards.panic_above, fresh_until, times)
        else:
            limits = Limits(guards.ejected_max_frozen, guards.panic_above, times=times)
        # Taken away first and put back if need be: a suspicion that arises in between then stays.
        self.signs.discard(_SUSPICION)
        if self.experience.turns(now_ms) or self.experience.throttled(now_ms):
            self.signs.add(_SUSPICION)
        return avoidance(table, self.down, self.experience, limits, change, now_ms)

    def _changed(self) -> None:
        self._change = next(self._changes)


def _crowded(live: LiveRoute | None, established: bool | None) -> frozenset[str]:  # noqa: FBT001 - as in Asked
    if live is None:
        return _NOBODY
    return live.in_flight.crowded_for_new if established is False else live.in_flight.crowded
