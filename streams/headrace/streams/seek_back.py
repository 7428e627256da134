"""Where a partition is taken up: where it is committed, or before that, where a recovered state lacks something.

    states as they lie in their changelog, by offset there      applied offset  5  9  12 | 7 | 15
                                                                                          ^ written by a worker that
                                                                                            slept through its session

Each batch writes its states in the order of their applied offsets, so in a changelog with one writer these only grow.
A state that is older than one before it was written by a worker that owned its partition no more: it hides a newer one,
and signals after it are committed already. So reading begins after the oldest of those; and after the highest applied
offset, where states are missing that were acknowledged. What is read again is dropped by the guard in each state.
"""

from collections.abc import Iterable

MOST_BACK = 100_000
"""Signals of a partition that are read again at most: behind a long tail of refused ones, which no state holds."""


def start_offset(committed: int, applied: Iterable[int]) -> int:
    """Give the offset from which a partition is read.

    Args:
        committed: the group's offset.
        applied: of each state of the partition the highest applied offset, in the order in which they were written.
    """
    start, highest = committed, -1
    for offset in applied:
        if offset < highest:
            start = min(start, offset + 1)
        highest = max(highest, offset)
    if highest >= 0:
        start = min(start, highest + 1)
    return max(start, committed - MOST_BACK)


def of_another_log(applied: Iterable[int], end: int) -> bool:
    """Say whether a partition's states hold an offset that its log, up to its end, does not have."""
    return any(offset >= end for offset in applied)
