"""Panic: where too much of a route's weight is left out, what is only suspected is ignored.

    panic where (weight known to be down + weight ejected) / weight > threshold

Ejecting is right while the others can carry the load; past that, leaving more engines out turns a slow fleet into a
dead one, and many suspicions at once speak against the observer. Engines known to be down stay out.

Source: the panic threshold of Envoy's load balancers (50 % by default).
"""

from collections.abc import Collection, Mapping


def panics(ppm: Mapping[str, int], down: Collection[str], ejected: Collection[str], threshold: float) -> bool:
    """Say whether ejections are to be ignored; never where nothing is ejected."""
    if not ejected:
        return False
    out = sum(weight for engine, weight in ppm.items() if engine in down or engine in ejected)
    return out > threshold * sum(ppm.values())
