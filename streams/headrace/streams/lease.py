"""A worker that was asleep does not write: its partitions may be another's, and its states older than that one's.

    held while every two looks are at most `session_s` apart          lost for ever once they were further apart

The broker gives a member's partitions to others after a session's silence. A process that was stopped (SIGSTOP, a
machine that was suspended or starved) does not know; it finds out here, before it writes, and ends. The clock counts
the time that the machine slept. What is left: a stop between the look and the sending, and records that were handed to
the producer before the stop.
"""

import time
from collections.abc import Callable

from headrace.schemas.errors import HeadraceError


class LeaseLostError(HeadraceError):
    """The process was not running for longer than its session: it may own nothing any more."""


def clock_s() -> float:
    """Give seconds that never go back, the machine's sleep included where the system counts it."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Lease:
    """Looked at by the worker's loop all the time, and by each fold before it writes."""

    def __init__(self, session_s: float, now_s: Callable[[], float] = clock_s) -> None:
        self._session_s = session_s
        self._now_s = now_s
        self._seen_s = now_s()

    def look(self) -> None:
        """Note that the process runs.

        Raises:
            LeaseLostError: it did not for longer than the session.
        """
        now_s = self._now_s()
        asleep_s = now_s - self._seen_s
        if asleep_s > self._session_s:
            raise LeaseLostError(f"asleep for {asleep_s:.1f} s; the session is {self._session_s:g} s")
        self._seen_s = now_s
