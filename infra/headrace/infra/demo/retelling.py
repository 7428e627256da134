"""What the solver saw and did, as events: who is out, which protection holds an engine back, what moved, what is shed.

    snapshot ──► engines out and back, protections, moves of a route, shedding ──► sentences

Told is what differs enough from what was told last, and whatever a snapshot carries, by its own sentences. A protection
is told again when its factor is `FACTOR_FROM` away from the one last told, a route when `MOVED_FROM` of it has moved
since; neither sooner than `AGAIN_MS`. Pure: time is the snapshots' own.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.infra.demo.movement import demand_rps, shed_rps
from headrace.infra.weights_tail.causes import cause_of, counted_rps, ended_words, out_of_all, protections_of
from headrace.infra.weights_tail.route_move import move_words, route_move
from headrace.infra.weights_tail.shed_for import pins_with_room
from headrace.infra.weights_tail.told import Told
from headrace.schemas.weights import Excluded, RouteWeights, Snapshot

if TYPE_CHECKING:
    from headrace.schemas.ids import RouteKey

FACTOR_FROM = 0.1
MOVED_FROM = 0.1
SHED_FROM_RPS = 0.5
"""Less than this is the edge of a solution, not an event."""
AGAIN_MS = 5_000
SHED_AGAIN_MS = 2_000


class Retelling:
    """Folds snapshots in their order; what the first one says is where it begins."""

    def __init__(self) -> None:
        self._out: dict[str, Excluded] = {}
        self._factors: dict[tuple[str, str], tuple[float, int]] = {}
        self._routes: dict[RouteKey, Told] = {}
        self._sheds = False
        self._shed_ms = 0

    def offer(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Take the next snapshot; gives what there is to tell of it."""
        first, now_ms = not self._routes, snapshot.commit.tick_ms
        told = [] if first else [*self._engines(snapshot), *self._protections(snapshot, now_ms)]
        if first:
            self._out = dict(out_of_all(snapshot))
        told += [*self._moves(snapshot, now_ms), *self._shedding(snapshot, now_ms)]
        return tuple(told)

    def _engines(self, snapshot: Snapshot) -> Iterator[str]:
        before, self._out = self._out, dict(out_of_all(snapshot))
        for name in sorted(self._out.keys() - before.keys()):
            yield f"solver: {name} is out: {self._out[name].reason}, {self._out[name].sentence}"
        for name in sorted(before.keys() - self._out.keys()):
            yield f"solver: {name} is back"

    def _protections(self, snapshot: Snapshot, now_ms: int) -> Iterator[str]:
        now = protections_of(snapshot.commit)
        counted = counted_rps(snapshot)
        for key in sorted(now.keys() | self._factors.keys()):
            engine_id, protection = key
            told, at_ms = self._factors.get(key, (1.0, now_ms - AGAIN_MS))
            factor = now[key].factor if key in now else 1.0
            if engine_id in self._out:
                self._factors.pop(key, None)
                continue
            over = key not in now and told != 1.0
            if now_ms - at_ms < AGAIN_MS or not (over or abs(factor - told) >= FACTOR_FROM):
                continue
            self._factors[key] = factor, now_ms
            if key in now:
                left = f"; planned with {counted[engine_id]:.0f} RPS" if engine_id in counted else ""
                yield f"solver: {engine_id}: {now[key].sentence} ({protection}){left}"
            else:
                del self._factors[key]
                yield f"solver: {ended_words(engine_id, protection)}"

    def _moves(self, snapshot: Snapshot, now_ms: int) -> Iterator[str]:
        for route in snapshot.routes:
            last = self._routes.get(route.route)
            if last is None or last.route.demand_rps <= 0.0:
                self._routes[route.route] = Told(snapshot, route)
                continue
            if now_ms - last.snapshot.commit.tick_ms < AGAIN_MS:
                continue
            move = route_move(last.route, route)
            if round(move.share, 6) >= MOVED_FROM:
                self._routes[route.route] = last.moved(snapshot, route)
                cause = cause_of(move, last.snapshot, snapshot, last.earlier(now_ms))
                yield f"{route.cluster} moves {move_words(move)}: {cause}"

    def _shedding(self, snapshot: Snapshot, now_ms: int) -> Iterator[str]:
        shed = shed_rps(snapshot)
        if (shed >= SHED_FROM_RPS) == self._sheds or now_ms - self._shed_ms < SHED_AGAIN_MS:
            return
        self._sheds, self._shed_ms = not self._sheds, now_ms
        if not self._sheds:
            yield "shedding ends"
            return
        shedding = [route for route in snapshot.routes if route.shed_ratio > 0.0]
        above = [_shed_share(route) for route in shedding if not pins_with_room(route)]
        held = [f"{_shed_share(r)} ({', '.join(pins_with_room(r))})" for r in shedding if pins_with_room(r)]
        why = [f"demand is above capacity: {', '.join(above)}"] if above else []
        why += [f"pins hold engines that have room: {', '.join(held)}"] if held else []
        yield f"shedding {shed:.0f} of {demand_rps(snapshot):.0f} RPS, {'; '.join(why)}"


def _shed_share(route: RouteWeights) -> str:
    return f"{route.cluster} {100 * route.shed_ratio:.0f} %"
