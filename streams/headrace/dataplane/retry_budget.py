"""Retries of one route: every first attempt earns `ratio` of a retry, a retry spends one, up to `burst` are saved.

Retries are then at most `ratio` of the traffic, however much of it fails, and none where the fleet is full (ratio 0).
Exact under any number of threads without a lock: the n-th attempt earns a retry where floor(n ratio) steps up, and the
saved ones are a deque, whose ends are atomic.

Source: the retry budgets of Finagle, and "Handling Overload" in Site Reliability Engineering (2016), chapter 21.
"""

from collections import deque
from enum import StrEnum
from itertools import count, repeat


class Retry(StrEnum):
    """Whether a failed request may be sent again. True in a condition only where GRANTED."""

    GRANTED = "GRANTED"
    ALREADY_RETRIED = "ALREADY_RETRIED"
    """One retry was made: there is no second."""
    BUDGET_SPENT = "BUDGET_SPENT"
    """Retries have reached their share of the traffic, or the fleet is too full for any."""
    UNKNOWN_ROUTE = "UNKNOWN_ROUTE"
    """There are no weights for the route, so nothing says that the fleet could bear it."""
    INVALID_REQUEST = "INVALID_REQUEST"
    """The arguments are not of the types they should be."""

    def __bool__(self) -> bool:
        return self is Retry.GRANTED


class RetryBudget:
    """The budget of one route. It begins full, so that a quiet route may retry its first failure."""

    __slots__ = ("_attempts", "_saved")

    def __init__(self, burst: int) -> None:
        self._attempts = count()
        self._saved: deque[None] = deque(repeat(None, burst), maxlen=burst)

    @property
    def saved(self) -> int:
        """Retries that may be spent now, where the snapshot allows any."""
        return len(self._saved)

    def earn(self, ratio: float) -> None:
        """Note a first attempt."""
        n = next(self._attempts)
        if int((n + 1) * ratio) > int(n * ratio):
            self._saved.append(None)

    def spend(self, ratio: float) -> Retry:
        """Take a retry out of the budget, if the snapshot allows any and one is left."""
        if ratio <= 0:
            return Retry.BUDGET_SPENT
        try:
            self._saved.pop()
        except IndexError:
            return Retry.BUDGET_SPENT
        return Retry.GRANTED
