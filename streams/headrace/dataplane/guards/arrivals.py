"""How many requests of one route arrived, by half seconds of the last two minutes: a ring of counts.

    count(from, to)   whole half seconds of it; what is older than the ring was, or never seen, is not known: None

Counting is one addition. Two threads that add to the same half second at once may count one; nobody is billed by this.
A clock that steps back by more than the ring's unit, or on by more than its length, begins it anew.
"""

from typing import Final

UNIT_MS: Final = 500
UNITS: Final = 256


class Arrivals:
    """Of one route, from the first request on."""

    __slots__ = ("_at", "_counts", "_first")

    def __init__(self) -> None:
        self._counts = [0] * UNITS
        self._first = self._at = -1

    @property
    def unit(self) -> int:
        """The half second that is being counted, since the epoch; -1 before the first request."""
        return self._at

    def note(self, now_ms: int) -> bool:
        """Count a request; says whether a half second has ended since the one before."""
        unit = now_ms // UNIT_MS
        if unit == self._at:
            self._counts[unit % UNITS] += 1
            return False
        if unit == self._at - 1:  # of another thread, a little late
            self._counts[unit % UNITS] += unit >= self._first
            return False
        if not self._at < unit < self._at + UNITS or self._first < 0:
            self._counts = [0] * UNITS
            self._first = unit
        else:
            for passed in range(self._at + 1, unit + 1):
                self._counts[passed % UNITS] = 0
        self._at = unit
        self._counts[unit % UNITS] += 1
        return True

    def count(self, first: int, end: int) -> int | None:
        """Give the requests of the half seconds `first` to `end`, without `end`; None where some are not known.

        The half second of the first request is not: it had begun before.
        """
        if self._first < 0 or not max(self._first, self._at - UNITS) < first <= end <= self._at:
            return None
        return sum(self._counts[unit % UNITS] for unit in range(first, end))
