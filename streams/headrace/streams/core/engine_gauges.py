"""Gauges of an engine's instances and ranks -> its status. What is not fresh is not measured."""

from typing import Final

from headrace.schemas.signals import EngineStatus, Health
from headrace.streams.core.differencing.book import SeriesBook
from headrace.streams.core.differencing.gauges import combine, instances
from headrace.streams.core.mapping.reading import Field

GAUGE_TTL_MS: Final = 60_000
"""A gauge this much older than the engine's newest reading has expired: a frozen one does not speak for ever."""
MISSED_PERIODS: Final = 3
_INT31: Final = 2**31 - 1


def status_of(book: SeriesBook, period_ms: int | None) -> tuple[EngineStatus, int] | None:
    """Give the status that the gauges tell, and its instant; None where no gauge is fresh.

    Args:
        book: of the engine.
        period_ms: how often its series are read; a gauge may miss a few.
    """
    ttl_ms = max(GAUGE_TTL_MS, MISSED_PERIODS * (period_ms or 0))
    newest_ms = book.newest_ms
    fresh = [gauge for gauge in book.gauges.values() if gauge.time_ms + ttl_ms >= newest_ms]
    if not fresh:
        return None
    found = {field: combine(fresh, field, newest_ms, ttl_ms) for field in {gauge.field for gauge in fresh}}
    status = EngineStatus(
        health=_health(found.get(Field.HEALTH)),
        replicas_desired=_whole(found.get(Field.REPLICAS_DESIRED)),
        replicas_ready=_whole(found.get(Field.REPLICAS_READY)),
        replicas_reporting=instances(fresh, newest_ms, ttl_ms),
        running=found.get(Field.RUNNING),
        waiting=found.get(Field.WAITING),
        kv_usage=_share(found.get(Field.KV_USAGE)),
    )
    return status, max(gauge.time_ms for gauge in fresh)


def merged(told: EngineStatus, gauges: EngineStatus) -> EngineStatus:
    """Give what the gauges measured, and else what the engine said of itself."""
    return EngineStatus(
        told.health if gauges.health is Health.UNKNOWN else gauges.health,
        *(
            getattr(told if getattr(gauges, name) is None else gauges, name)
            for name in (
                "replicas_desired",
                "replicas_ready",
                "replicas_reporting",
                "running",
                "waiting",
                "kv_usage",
            )
        ),
    )


def _health(value: float | None) -> Health:
    if value is None:
        return Health.UNKNOWN
    return Health.HEALTHY if value >= 1.0 else Health.UNHEALTHY if value == 0.0 else Health.DEGRADED


def _whole(value: float | None) -> int | None:
    return None if value is None else min(round(value), _INT31)


def _share(value: float | None) -> float | None:
    return None if value is None else min(value, 1.0)
