"""Gauges of an engine's ranks and instances -> one number: over ranks first, then over instances.

Only what is fresh counts: a reading older than `ttl_ms` before the newest one of the engine has expired, so that a
gauge frozen at a bad value, or a rank that went away, does not speak for ever. Nothing fresh: None, not zero.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from headrace.streams.core.mapping.reading import Field, Over


class Gauge(NamedTuple):
    """The last value of one gauge of one rank of one instance."""

    field: Field
    model: str
    instance: str
    rank: str
    value: float
    time_ms: int
    over_ranks: Over
    over_instances: Over


_OVER: Final[dict[Over, Callable[[Sequence[float]], float]]] = {
    Over.SUM: math.fsum,
    Over.MEAN: lambda values: math.fsum(values) / len(values),
    Over.MAX: max,
    Over.MIN: min,
}


def combine(gauges: Iterable[Gauge], field: Field, newest_ms: int, ttl_ms: int) -> float | None:
    """Give the engine's value of a field; None where no gauge of it is fresh. Order of the gauges does not matter.

    Models that share an engine add up where instances do (`sum`), and are further instances else.
    """
    by_instance: dict[tuple[str, str], list[Gauge]] = {}
    for gauge in gauges:
        if gauge.field is field and gauge.time_ms + ttl_ms >= newest_ms:
            by_instance.setdefault((gauge.model, gauge.instance), []).append(gauge)
    if not by_instance:
        return None
    values: list[float] = []
    over_instances = Over.SUM
    for name in sorted(by_instance):
        ranks = by_instance[name]
        over_instances = ranks[0].over_instances
        values.append(_OVER[ranks[0].over_ranks](sorted(gauge.value for gauge in ranks)))
    return _OVER[over_instances](values)


def instances(gauges: Iterable[Gauge], newest_ms: int, ttl_ms: int) -> int:
    """Give how many instances have a fresh gauge: the replicas that report."""
    return len({gauge.instance for gauge in gauges if gauge.time_ms + ttl_ms >= newest_ms})
