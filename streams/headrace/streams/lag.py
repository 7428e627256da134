"""How far the worker is behind: signals in its partitions that it has not folded, asked of the broker now and then."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from confluent_kafka import KafkaException

from headrace.schemas.metric_table import Counts
from headrace.streams.log_offsets import LogOffsets, Place

EVERY_S = 5.0


async def follow_lag(
    counts: Counts,
    log_offsets: LogOffsets,
    owned: Callable[[], Collection[Place]],
    next_offsets: Mapping[Place, int],
    roles: Mapping[str, str],
) -> None:
    """Show the lag and the number of owned partitions of each signals topic, until cancelled.

    A broker that does not answer leaves the lag as it was. The embedded broker's ends are too low, by up to a batch.

    Args:
        counts: where they are shown.
        log_offsets: asks the broker.
        owned: gives the owned partitions.
        next_offsets: by partition, the offset that is folded next.
        roles: by topic's name its role, which is what it is called there.
    """
    while True:
        places = tuple(owned())
        for topic, role in roles.items():
            counts.show("partitions", sum(place[0] == topic for place in places), role)
        try:
            ends = await asyncio.to_thread(log_offsets.ends, places)
        except KafkaException:
            ends = None
        if ends is not None:
            for role, lag in lags(ends, next_offsets, roles).items():
                counts.show("lag_signals", lag, role)
        await asyncio.sleep(EVERY_S)


def lags(ends: Mapping[Place, int], next_offsets: Mapping[Place, int], roles: Mapping[str, str]) -> Mapping[str, int]:
    """Give by role how many offsets lie between what is folded next and the end; a partition not begun counts none."""
    return {role: sum(_behind(ends, next_offsets, topic)) for topic, role in roles.items()}


def _behind(ends: Mapping[Place, int], next_offsets: Mapping[Place, int], topic: str) -> Iterable[int]:
    return (max(0, end - next_offsets.get(place, end)) for place, end in ends.items() if place[0] == topic)
