"""The decision for a request that may not go straight to its slot: engines are left out, or it has wishes of its own.

    who is left out ─► shed for want of room? ─► hint, if not left out ─► detour ─► note where a session was let go to
    past the time to live: fallback ─► as above, but nothing is shed ─► said to be by STALE_WEIGHTS

The router asks this only where its look-up in the slot table is not the answer, so that a request of a quiet route
pays for none of it. Who is left out is the watch's judgement; a route that it has nothing live of (None) has nobody
crowded and nobody let go.
"""

from headrace.dataplane.decision import Decision, DecisionReason
from headrace.dataplane.detour import Asked, detour
from headrace.dataplane.live_route import LiveRoute
from headrace.dataplane.route_table import RouteTable
from headrace.dataplane.unplaced import sheds_unplaced
from headrace.dataplane.watch import Watch


class OtherWay:
    """Of one router.

    Args:
        watch: the router's.
        rehash_max: other slots that are tried for a session whose own engine is left out.
    """

    __slots__ = ("_rehash_max", "_watch")

    def __init__(self, watch: Watch, rehash_max: int) -> None:
        self._watch = watch
        self._rehash_max = rehash_max

    def known(
        self, table: RouteTable, live: LiveRoute | None, point: int, home: str | None, now_ms: int, *, new: bool
    ) -> Decision | None:
        """Give the decision for a session that keeps its slot while others are left out, if one like it was made."""
        if live is None or (live.released.used and live.released.get(point) is not None):
            return None
        out = self._watch.left_out_of_all(table, point, live, now_ms, new=new)
        if out is None or out.view.unplaced > 0.0 or out.view.overflow.moves(home, point):
            return None
        return out.at_home.get(home)

    def decide(
        self, table: RouteTable, live: LiveRoute | None, asked: Asked, now_ms: int, *, sheds: bool = True
    ) -> Decision:
        """Decide for one request; without `sheds` none is shed because nobody has room for it."""
        if not table.size:
            return table.no_eligible_engine
        out = None
        if asked.exclude == ():
            out = self._watch.left_out_of_all(table, asked.point, live, now_ms, new=asked.established is False)
        if out is None:
            out = self._watch.left_out(table, asked, live, now_ms)
        if sheds and sheds_unplaced(table, asked, live, out.view.unplaced):
            return table.shed
        if asked.hint is not None and asked.hint in table.by_hint and asked.hint not in out.barred:
            return table.by_hint[asked.hint]
        released_to = live.released.get(asked.point) if live is not None and asked.keyed else None
        decision = detour(table, asked.point, out, self._rehash_max, released_to)
        if decision.reason is not DecisionReason.RELEASED or live is None or not asked.keyed:
            return decision
        if released_to is None or (released_to not in out.avoided and released_to not in out.throttled):
            live.released.put(asked.point, str(decision.engine_id))
            self._watch.sign(live.released_sign, shown=True)
        return decision

    def by_stale_snapshot(self, table: RouteTable, live: LiveRoute | None, asked: Asked, now_ms: int) -> Decision:
        """Decide past the time to live: nothing is shed by a measure that old, and nothing refused for age alone."""
        barred = self._watch.down.union(asked.exclude)
        fallback = table.fallback.pick(asked.point, barred, DecisionReason.FALLBACK_STALE)
        if fallback is not None:
            return fallback
        decision = self.decide(table, live, asked, now_ms, sheds=False)
        return (
            decision
            if decision.engine_id is None
            else decision.because(DecisionReason.STALE_WEIGHTS, decision.propensity)
        )
