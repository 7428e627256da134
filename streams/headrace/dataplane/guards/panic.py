"""Panic: where too much of a route's weight is left out, what is only suspected is ignored.

    panic where (weight known to be down + weight ejected) / weight > threshold

Ejecting is right while the others can carry the load; past that, leaving more engines out turns a slow fleet into a
dead one, and many suspicions at once speak against the observer. Engines known to be down stay out. A single engine
whose sessions all have a place by the snapshot is no panic, whatever it weighs: it is one suspicion, and there is room.

Source: the panic threshold of Envoy's load balancers (50 % by default; none where other priorities have room).
"""

from collections.abc import Collection, Mapping


def panics(
    ppm: Mapping[str, int],
    down: Collection[str],
    ejected: Collection[str],
    threshold: float,
    placed: Collection[str] = (),
) -> bool:
    """Say whether ejections are to be ignored; never where nothing is ejected, or one of `placed` alone is out."""
    if not ejected or (not down and len(ejected) == 1 and all(engine in placed for engine in ejected)):
        return False
    out = sum(weight for engine, weight in ppm.items() if engine in down or engine in ejected)
    return out > threshold * sum(ppm.values())
