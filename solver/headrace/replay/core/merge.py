"""Partitions to one order: by (timestamp, topic, partition, offset), the same whatever was read first.

Within a partition the order of offsets stands, whatever its timestamps do: a record counts as no earlier than the one
before it, so a clock that stepped back cannot turn cause and effect around. One record a partition is held.
"""

import heapq
from collections.abc import Iterable, Iterator

from headrace.schemas.raw import RawRecord

Keyed = tuple[int, str, int, int, RawRecord]


def merged(partitions: Iterable[Iterable[RawRecord]]) -> Iterator[RawRecord]:
    """Give the records of partitions, each in offset order, in one order."""
    for *_, record in heapq.merge(*(_keyed(records) for records in partitions)):
        yield record


def _keyed(records: Iterable[RawRecord]) -> Iterator[Keyed]:
    newest_ms: int | None = None
    for record in records:
        newest_ms = record.timestamp_ms if newest_ms is None else max(newest_ms, record.timestamp_ms)
        yield newest_ms, record.topic, record.partition, record.offset, record
