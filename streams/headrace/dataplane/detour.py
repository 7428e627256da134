"""The way to an engine when some of a route's engines are left out: the slot, other slots, all by weight, the last.

    session ─► where it was let go to ─► its slot, but for a surge's overflow, which goes where the failover has room
            ─► failover ─► other slots (bounded) ─► crowded only: its slot
            ─► scan ─► scan, crowded ones too ─► throttled everywhere: shed ─► scan, ejected ones too (panic)
            ─► fallback ─► refused, with the reason

Each step gives an engine that is not left out, or hands on. Only sessions whose own engine is left out move, and they
move back when it is not. The propensity is over the sessions' hashes: an engine's weight over that of all engines not
left out; 1 where the session was let go before and stays where it went.
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import xxhash

from headrace.dataplane.avoidance import Avoidance
from headrace.dataplane.decision import Decision, DecisionReason
from headrace.dataplane.overflow import Spill, spill
from headrace.dataplane.rendezvous import Candidates
from headrace.dataplane.route_table import RouteTable
from headrace.schemas.weights import PPM

MANY_EXCLUDED: Final = 64
MANY_PLACED: Final = 256
"""Sets of engines without room for which it is kept where sessions overflow to."""


class Asked(NamedTuple):
    """A request as far as it matters for which engine it gets; `keyed` where it has a session."""

    point: int
    keyed: bool
    hint: str | None = None
    exclude: Collection[str] = ()
    established: bool | None = None
    tier: int | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Who may not be taken: of one request, or of many that are alike.

    Attributes:
        view: the guards' judgement of the route that this goes by.
        hard: never to be taken: those, and the ones that the caller excluded.
        avoided: the hard ones, and who is ejected.
        throttled: kept from this session by throttling.
        crowded: above their share.
        barred: all of these.
        no_room: those, all suspects, and who overflows in a surge: a crowded engine's sessions are not moved there.
        at_home: decisions made so far for sessions that keep their slot with these left out, by engine, so that the
            next one like it is picked and not made.
        moved: likewise for those that do not.
        taken: each engine's part of the sessions that the failover places, once one was placed.
        spills: what overflows, once that was asked.
    """

    view: Avoidance
    hard: AbstractSet[str]
    avoided: AbstractSet[str]
    throttled: AbstractSet[str]
    crowded: AbstractSet[str]
    barred: AbstractSet[str]
    no_room: AbstractSet[str]
    at_home: dict[str | None, Decision] = field(default_factory=dict[str | None, Decision])
    moved: dict[tuple[str | None, DecisionReason], Decision] = field(
        default_factory=dict[tuple[str | None, DecisionReason], Decision]
    )
    taken: dict[str, float] = field(default_factory=dict[str, float])
    spills: list[Spill] = field(default_factory=list[Spill])

    @classmethod
    def of(
        cls, view: Avoidance, crowded: frozenset[str], throttled: frozenset[str], exclude: Iterable[str]
    ) -> "LeftOut":
        """Put together who is left out of a route, and out of one request."""
        hard = view.down.union(exclude)
        avoided = view.avoided | hard
        barred = avoided | throttled | crowded
        no_room = barred.union(view.suspected, view.overflow.limits)
        return cls(view, hard, avoided, throttled, crowded, barred, no_room)

    def holds(self, engine_id: str, point: int) -> bool:
        """Say whether an engine goes on holding a session that was let go to it."""
        view = self.view
        gone = engine_id in self.barred or engine_id in view.suspected
        return not gone and not view.overflow.moves(engine_id, point)

    def stay(self, table: RouteTable, home: Decision) -> Decision:
        """Give the decision for a session whose slot's engine is not barred."""
        known = self.at_home.get(home.engine_id)
        if known is None:
            known = self.at_home[home.engine_id] = home.because(DecisionReason.SLOT, self._of(table, home))
        return known

    def move(self, table: RouteTable, found: Decision, reason: DecisionReason) -> Decision:
        """Give the decision for a session that goes to an engine that is not barred."""
        known = self.moved.get((found.engine_id, reason))
        if known is None:
            known = self.moved[found.engine_id, reason] = found.because(reason, self._of(table, found))
        return known

    def _of(self, table: RouteTable, found: Decision) -> float:
        return self.propensity(table, str(found.engine_id))

    def propensity(self, table: RouteTable, engine_id: str) -> float:
        """Give the engine's own sessions, and its part of those that may not, or should not, stay at theirs."""
        spill = self.spill(table)
        must_move = table.weight(self.avoided | self.throttled)
        should_move = table.weight(self.barred) - must_move - sum(spill.moved.get(e, 0.0) for e in self.crowded)
        own = table.weight((engine_id,)) - spill.moved.get(engine_id, 0.0)
        got = 0.0
        if engine_id not in self.barred:
            got = must_move * self._taken(table, engine_id, must_move + should_move)
        if own and should_move and engine_id not in self.no_room:
            got += own * should_move / (PPM - table.weight(self.no_room))
        return (own + got + self._spilt(table, spill).get(engine_id, 0.0)) / PPM

    def spill(self, table: RouteTable) -> Spill:
        """Give what of the route's weight overflows, reckoned once."""
        if not self.spills:
            out = self.avoided | self.throttled
            self.spills.append(spill(table, self.view.overflow, out, self.no_room))
        return self.spills[0]

    def _spilt(self, table: RouteTable, spill: Spill) -> Mapping[str, float]:
        """Give what each engine gets of the sessions that overflow elsewhere, in ppm of all."""
        if not spill.ppm or table.failover is None:
            return {}
        placed, key = self.view.placed, (frozenset(self.no_room), spill.ppm)
        known = placed.get(key)
        if known is None:
            slots, by = table.limits_of({e: self.view.overflow.limits[e] for e in spill.moved})
            parts = table.failover.parts(slots, self.no_room, spill.ppm, by)
            known = {engine: part * spill.ppm for engine, part in parts.items()}
            if len(placed) < MANY_PLACED:
                placed[key] = known
        return known

    def _taken(self, table: RouteTable, engine_id: str, barred_ppm: float) -> float:
        """Give an engine's part of the sessions that must move: what the failover comes to, or else by weight."""
        failover = table.failover
        if failover is not None and any(e not in self.no_room for e in failover.shares):
            if not self.taken:
                out = self.avoided | self.throttled
                self.taken.update(failover.parts(table.slots_of(out), self.no_room, table.weight(out)))
            return self.taken.get(engine_id, 0.0)
        return table.weight((engine_id,)) / (PPM - barred_ppm) if barred_ppm < PPM else 0.0


def detour(table: RouteTable, point: int, out: LeftOut, tries: int, released_to: str | None) -> Decision:
    """Decide for the session at `point`. The route has at least one engine with a weight."""
    if released_to is not None and released_to in table.by_hint and out.holds(released_to, point):
        return table.by_hint[released_to].because(DecisionReason.RELEASED, 1.0)
    home = table.by_slot[table.slots[point % table.size]]
    if home.engine_id not in out.avoided and home.engine_id not in out.throttled:
        # Before a crowded engine lets it go: this one comes back, and where all are full only the failover has room.
        found = _spilled(table, point, out, home)
        if found is not None:
            return out.move(table, found, DecisionReason.SPILLED)
    if home.engine_id not in out.barred:
        return out.stay(table, home)
    if home.engine_id in out.avoided or home.engine_id in out.throttled:
        found = _failover(table, point, out)
        if found is not None:
            return out.move(table, found, DecisionReason.FAILOVER)
        found = _other_slot(table, point, out.barred, tries)
        return _by_weight(table, point, out) if found is None else out.move(table, found, DecisionReason.REHASH)
    found = _other_slot(table, point, out.no_room, tries)
    if found is None:
        # Not kept for the next one: that one may find an engine with room.
        return home.because(DecisionReason.SLOT, out.propensity(table, str(home.engine_id)))
    return out.move(table, found, DecisionReason.RELEASED)


def _spilled(table: RouteTable, point: int, out: LeftOut, home: Decision) -> Decision | None:
    if table.failover is None or not out.view.overflow.moves(home.engine_id, point):
        return None
    return table.failover.pick(point, out.no_room, out.spill(table).ppm)


def _failover(table: RouteTable, point: int, out: LeftOut) -> Decision | None:
    if table.failover is None:
        return None
    return table.failover.pick(point, out.no_room, table.weight(out.avoided | out.throttled))


def _other_slot(table: RouteTable, point: int, barred: AbstractSet[str], tries: int) -> Decision | None:
    for seed in range(1, tries + 1):
        other = xxhash.xxh3_64_intdigest(point.to_bytes(8, "little"), seed)
        decision = table.by_slot[table.slots[other % table.size]]
        if decision.engine_id not in barred:
            return decision
    return None


def _by_weight(table: RouteTable, point: int, out: LeftOut) -> Decision:
    scanned = table.weighted.pick(point, out.barred, DecisionReason.SCAN)
    if scanned is None and out.crowded:
        scanned = table.weighted.pick(point, out.avoided | out.throttled, DecisionReason.SCAN)
    if scanned is not None:
        return scanned
    in_panic = table.weighted.pick(point, out.hard, DecisionReason.PANIC)
    if in_panic is not None:
        return table.throttled if out.throttled else in_panic
    fallback = table.fallback.pick(point, out.hard, DecisionReason.FALLBACK_DOWN)
    if fallback is not None:
        return fallback
    return table.all_down if all_among(out.view.down, table.weighted, table.fallback) else table.no_other_engine


def excluded(exclude: Collection[str], table: RouteTable | None = None) -> Collection[str]:
    """Give the engines that a caller excludes: a text is one; of very many only those that the route has.

    Raises:
        TypeError: it cannot name engines.
    """
    if isinstance(exclude, str):
        return (exclude,)
    if isinstance(exclude, bytes | bytearray | memoryview):
        raise TypeError("exclude is of bytes; engines' names are texts")
    return exclude if table is None or len(exclude) <= MANY_EXCLUDED else table.engines.intersection(exclude)


def all_among(down: AbstractSet[str], *candidates: Candidates) -> bool:
    """Say whether every candidate is down."""
    return all(d.engine_id in down for some in candidates for d in some.decisions)
