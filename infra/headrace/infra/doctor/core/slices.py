"""Which offsets of a partition are read, so that a topic of any length costs a bounded time.

    first ............ at_earlier ──► earlier ............ at_since ──────────────► end
                       `few` of a while ago                at most `most`, at least `least` of the newest

Offsets are None where the broker could not tell them; what is then read begins `least` before the end.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Appetite:
    """How much of a topic is wanted: all of it (as far as `most` go), or what came since a while ago.

    Attributes:
        since_ms: how far back from now; None = from the beginning.
        least: records of each partition that are read however old they are.
        most: records of each partition that are read at most; the newest of them.
        earlier_ms: how far back from now a few more are read; None = none.
        few: how many those are.
    """

    since_ms: int | None
    least: int
    most: int
    earlier_ms: int | None = None
    few: int = 0


@dataclass(frozen=True, slots=True)
class Slice:
    """Offsets [start, stop) of a partition."""

    topic: str
    partition: int
    start: int
    stop: int


def newest_slice(
    topic: str, partition: int, first: int, end: int, at_since: int | None, appetite: Appetite
) -> Slice | None:
    """Give what is read of the newest; None where the partition is empty."""
    if end <= first:
        return None
    start = end - appetite.least if at_since is None else min(at_since, end - appetite.least)
    if appetite.since_ms is None:
        start = first
    return Slice(topic, partition, max(first, start, end - appetite.most), end)


def earlier_slice(newest: Slice, first: int, at_earlier: int | None, appetite: Appetite) -> Slice | None:
    """Give what is read of a while ago; None where the newest reach that far, or nothing is that old."""
    if at_earlier is None or at_earlier >= newest.start:
        return None
    start = max(first, at_earlier)
    return Slice(newest.topic, newest.partition, start, min(start + appetite.few, newest.start))
