"""Which sessions go elsewhere in a surge: of each engine those that it, and it alone, has no room for.

    share moved = min(1 - (1 + headroom) / times, failover_kept)      headroom, kept: the snapshot's; times: `Surge`'s

A session moves where the low 32 bits of its hash are below the share: always the same ones, more as the surge grows,
and back when it is over, or when the next weights know of it. Engines of which the snapshot tells no headroom keep all
of theirs; so does a route without a failover: there is no room that anybody knows of. An engine that an operator has
pinned gives none and takes none: its share is theirs, and a surge may be a mistake. Nobody is shed for a surge.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from headrace.dataplane.route_table import RouteTable
from headrace.schemas.weights import Reason

BITS: Final = 32
_LOW: Final = (1 << BITS) - 1


class Overflow:
    """Of one route, for one size of a surge. Never changes.

    Attributes:
        limits: of the engines that have not enough room, under which a session's low 32 bits move it; 0 of those that
            are pinned, and take nobody in either.
    """

    __slots__ = ("limits",)

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.limits = limits

    def moves(self, engine_id: str | None, point: int) -> bool:
        """Say whether the session at `point` may not stay at its engine."""
        return point & _LOW < self.limits.get(engine_id or "", 0)

    def moved_ppm(self, engine_id: str, weight_ppm: float) -> float:
        """Give what of an engine's weight moves."""
        return weight_ppm * self.limits.get(engine_id, 0) / (1 << BITS)


NO_OVERFLOW: Final = Overflow({})


def overflow(table: RouteTable, times: float) -> Overflow:
    """Give who moves while `times` what the route's weights know of arrives."""
    if times <= 1.0 or table.failover is None:
        return NO_OVERFLOW
    limits: dict[str, int] = {}
    for target in table.weights.targets:
        if target.reason is Reason.PINNED:
            limits[target.engine_id] = 0
        elif target.weight_ppm and target.headroom is not None and target.failover_kept is not None:
            share = min(1.0 - (1.0 + target.headroom) / times, target.failover_kept)
            if share > 0.0:
                limits[target.engine_id] = round(share * (1 << BITS))
    return Overflow(limits) if any(limits.values()) else NO_OVERFLOW


class Spill(NamedTuple):
    """What overflows: `moved` of each engine's weight, in ppm, and together in whole `ppm`."""

    moved: Mapping[str, float]
    ppm: int


NO_SPILL: Final = Spill({}, 0)


def spill(table: RouteTable, over: Overflow, out: Collection[str], no_room: Collection[str]) -> Spill:
    """Give what overflows of engines that are not out; nothing where every engine of the failover is without room."""
    if not over.limits or table.failover is None or all(engine in no_room for engine in table.failover.shares):
        return NO_SPILL
    moved = {e: over.moved_ppm(e, table.ppm.get(e, 0)) for e in sorted(over.limits) if e not in out}
    return Spill(moved, round(sum(moved.values())))


def spilled(over: Overflow, ppm: Mapping[str, int], shares: Mapping[str, int], out: Collection[str]) -> dict[str, int]:
    """Give a route's weights with what moves: to the engines of the failover that are not out and have room, by share.

    Args:
        over: who moves.
        ppm: the weights without.
        shares: the failover's.
        out: engines that nobody moves to, or from.
    """
    takers = {e: share for e, share in shares.items() if e not in out and e not in over.limits}
    total = sum(takers.values())
    left = dict(ppm)
    if total <= 0:
        return left
    for engine in over.limits.keys() & ppm.keys():
        if engine in out:
            continue
        moved = int(over.moved_ppm(engine, ppm[engine]))
        left[engine] -= moved
        for taker, share in takers.items():
            left[taker] = left.get(taker, 0) + moved * share // total
    return left
