"""Which variant's weights differ most from the recorded one's: the one that is worth looking at beside it."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

Weights = Mapping[str, Mapping[str, Sequence[float]]]


def differs_most(document: Mapping[str, Any]) -> str | None:
    """Give its name; of equals the best, then the first. None where there is no other variant."""
    recorded = next(v for v in document["variants"] if v["name"] == document["recorded"])
    others = [v for v in document["variants"] if v is not recorded]
    if not others:
        return None
    chosen = max(others, key=lambda v: (_distance(recorded, v), v["name"] == document["best"]))
    return str(chosen["name"])


def _distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Sum, over time, routes and engines, how far apart the shares are; where none are watched, the flows."""
    return _apart(one["series"]["weights"], other["series"]["weights"]) or _flows_apart(one["flows"], other["flows"])


def _apart(one: Weights, other: Weights) -> float:
    total = 0.0
    for route in one.keys() | other.keys():
        a, b = one.get(route, {}), other.get(route, {})
        for engine in a.keys() | b.keys():
            pairs = zip_longest(a.get(engine, ()), b.get(engine, ()), fillvalue=0.0)
            total += sum(abs(x - y) for x, y in pairs)
    return round(total, 9)


def _flows_apart(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> float:
    a, b = ({(f["cluster"], f["engine"]): float(f["requests"]) for f in flows} for flows in (one, other))
    return round(sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys()), 9)
