"""Virtual time: actions in the order of (time, order of scheduling), run as far as the caller says.

    at(0.5, a); at(0.2, b); at(0.5, c); run_until(0.5)   ->   b, a, c    and now_s is 0.5

Actions may schedule further ones; one scheduled for the past raises, since it would break the order. Seconds are floats
from the start of the simulation; the wall clock is nowhere.
"""

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Timeline:
    """A heap of timed actions."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._heap: list[tuple[float, int, Action]] = []
        self._scheduled = 0

    def at(self, at_s: float, action: Action) -> None:
        """Run `action` when virtual time reaches `at_s`.

        Raises:
            ValueError: `at_s` is already past.
        """
        if at_s < self.now_s:
            raise ValueError(f"at_s is {at_s}; now_s is {self.now_s}")
        self._scheduled += 1
        heapq.heappush(self._heap, (at_s, self._scheduled, action))

    def every(self, period_s: float, action: Action, first_s: float | None = None) -> None:
        """Run `action` at `first_s` (None: a period from now) and after each period, for ever, without drift."""
        self._repeat(self.now_s + period_s if first_s is None else first_s, period_s, 0, action)

    def _repeat(self, start_s: float, period_s: float, count: int, action: Action) -> None:
        def step() -> None:
            self._repeat(start_s, period_s, count + 1, action)
            action()

        self.at(start_s + count * period_s, step)

    def run_until(self, until_s: float) -> None:
        """Run every action due up to and including `until_s`; virtual time then stands there."""
        heap = self._heap
        while heap and heap[0][0] <= until_s:
            self.now_s, _, action = heapq.heappop(heap)
            action()
        self.now_s = max(self.now_s, until_s)
