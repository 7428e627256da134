"""Which sessions are shed while engines are down whose sessions do not all find room.

    ratio = s + (1 - s) unplaced         s = what the snapshot sheds, unplaced = share that nobody has room for

By the same hashes as the snapshot's own shedding, so whoever is shed by that is shed by this too.
"""

from headrace.dataplane.detour import Asked
from headrace.dataplane.live_route import LiveRoute
from headrace.dataplane.route_table import SHED_SHIFT, RouteTable
from headrace.dataplane.shedding import split


def sheds_unplaced(table: RouteTable, asked: Asked, live: LiveRoute | None, unplaced: float) -> bool:
    """Say whether a request is shed; `unplaced` is a share of the route's sessions, 0..1: at 0 nobody is."""
    if unplaced <= 0.0:
        return False
    ratio = table.weights.shed_ratio
    ratio += (1.0 - ratio) * unplaced
    if live is not None and asked.established is not None:
        new, established = split(ratio, live.mix.established)
        ratio = established if asked.established else new
    return asked.point >> SHED_SHIFT < table.shed_limit_at(asked.tier, ratio)
