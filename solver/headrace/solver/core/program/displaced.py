"""Where a route's sessions are by now: its weights, and those of engines that are out where its failover put them.

    weight = previous weight + weights of the engines that are out x failover share / shares of those that are not

Data planes move the sessions of an engine that is out at once, by the failover in their snapshot. So the next plan
finds them there, and leaves them there unless moving is worth its price; it would otherwise move them a second time.
Without a failover, or where all of its engines are out, nobody knows where they are, and they are counted nowhere.
"""

from collections.abc import Collection, Iterable

from headrace.schemas.weights import RouteWeights


def after_failover(route: RouteWeights, usable: Collection[str]) -> Iterable[tuple[str, int]]:
    """Give (engine, ppm) of the weights above 0 of engines that may still be used."""
    weights = {t.engine_id: t.weight_ppm for t in route.targets if t.weight_ppm > 0}
    out = sum(ppm for engine_id, ppm in weights.items() if engine_id not in usable)
    left = {t.engine_id: t.weight_ppm for t in route.failover if t.engine_id in usable} if out else {}
    total, rest = sum(left.values()), out
    for engine_id, share in sorted(left.items(), key=lambda each: (each[1], each[0])):
        # The largest comes last, and takes what rounding has left.
        part = rest if share == total else rest * share // total
        weights[engine_id] = weights.get(engine_id, 0) + part
        total, rest = total - share, rest - part
    return [(engine_id, ppm) for engine_id, ppm in weights.items() if ppm > 0 and engine_id in usable]
