"""Which engines of one route are left out now, and until when that holds: the guards' judgements put together.

    down (known)  |  ejected (suspected; within the share; ignored in panic)
    throttled, overflowing in a surge (for a share of the sessions each)

Made when something has changed and a request asks, and kept until the next change or `until_ms`; a request then looks
at sets. Crowded engines are not here: they change with every request, and are the route's `InFlight`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from headrace.dataplane.experience import NEVER_MS, Experience
from headrace.dataplane.guards.ejection import within_share
from headrace.dataplane.guards.panic import panics
from headrace.dataplane.overflow import NO_OVERFLOW, Overflow, overflow
from headrace.dataplane.route_table import RouteTable

THROTTLE_BITS: Final = 32
_LOW: Final = (1 << THROTTLE_BITS) - 1
_NOBODY: Final = frozenset[str]()
THROTTLES_HOLD_MS: Final = 100
"""How long a throttle's share is used before it is counted again: it fades all the time."""
OUT_OF_ORDER_MS: Final = 1_000
"""By how much requests on several threads may differ in what time it is without any clock having stepped."""


@dataclass(frozen=True, slots=True)
class Avoidance:
    """Who is left out of one route.

    Attributes:
        table: the route this is about.
        change: the router's count of changes at which it was made.
        from_ms: the instant before which it is no judgement: the clock has stepped back.
        until_ms: the instant from which it is out of date.
        down: engines of the route known to be down, those of its fallback too.
        avoided: those, and the ejected ones.
        suspected: engines that are down or ejected, also those that stay in since too much is out: nobody is moved to
            them to make room elsewhere, and their idleness is no room. They may be idle because they fail at once.
        throttled: engines with the limit under which the low 32 bits of a session's hash keep it away.
        unplaced: share of the route's sessions, 0..1, whose engine is down and that nobody has room for.
        panic: whether ejections are ignored for want of other engines.
        times: how many times what the weights know of arrived when it was made; out of date when it is another.
        overflow: whose sessions move for that.
        placed: where those come to, by who has no room and how much moves: crowds come and go with every request.
    """

    table: RouteTable
    change: int
    from_ms: int
    until_ms: int
    down: frozenset[str]
    avoided: frozenset[str]
    suspected: frozenset[str]
    throttled: tuple[tuple[str, int], ...]
    panic: bool
    unplaced: float = 0.0
    times: float = 1.0
    overflow: Overflow = NO_OVERFLOW
    placed: dict[tuple[frozenset[str], int], Mapping[str, float]] = field(
        default_factory=dict[tuple[frozenset[str], int], Mapping[str, float]]
    )

    def throttled_for(self, point: int) -> frozenset[str]:
        """Give the engines that the session at `point` is kept from."""
        low = point & _LOW
        return frozenset(engine for engine, limit in self.throttled if low < limit)


@dataclass(frozen=True, slots=True)
class Limits:
    """At one instant: how much may be ejected, when that is ignored, until when this holds, and the route's surge."""

    ejected_max: float
    panic_above: float
    until_ms: int = NEVER_MS
    times: float = 1.0


def avoidance(
    table: RouteTable, down: Collection[str], experience: Experience, limits: Limits, change: int, now_ms: int
) -> Avoidance:
    """Judge one route; `limits` says how much of a surge there is, too."""
    here = frozenset(down) & table.engines
    lasting = [e for e in experience.ejections(now_ms) if e.engine_id in table.engines and e.engine_id not in here]
    ejections = [e for e in lasting if e.engine_id in table.ppm]
    # While somebody is down the room that the snapshot speaks of may be taken.
    replaceable = _NOBODY if here or not ejections else table.replaceable
    ejected = within_share(ejections, table.ppm, limits.ejected_max, replaceable)
    panic = panics(table.ppm, here, ejected, limits.panic_above)
    throttled = tuple(
        (engine, round(share * (1 << THROTTLE_BITS)))
        for engine, share in experience.throttled(now_ms).items()
        if engine in table.ppm
    )
    until_ms = min([limits.until_ms, *experience.turns(now_ms)])
    if throttled:
        until_ms = min(until_ms, now_ms + THROTTLES_HOLD_MS)
    avoided = here if panic else here | ejected
    suspected = here.union(e.engine_id for e in lasting)
    from_ms, unplaced, times = now_ms - OUT_OF_ORDER_MS, table.unplaced(here), limits.times
    over = overflow(table, times)
    return Avoidance(
        table, change, from_ms, until_ms, here, avoided, suspected, throttled, panic, unplaced, times, over
    )
