"""A turn to think: of several threads one has it, and whoever comes back with an answer gets it first.

    take()    waits until nobody has it; of those that wait, the answered come first, each in the order they came
    give()    hands it to the next that waits
    pause()   hands it to one that has an answer, if any waits, and waits for it again; nothing else

Tasks that think in numpy on short arrays gain nothing from each other's threads (see `glop`), but what they ask of the
linear solver does. So a task whose programs are solved should ask for the next ones at once, also when another is in
the midst of a long thought.
"""

from collections import deque
from threading import Lock


class Turn:
    """Had by one thread at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_had = False
        self._answered: deque[Lock] = deque()
        self._others: deque[Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for it."""
        with self._lock:
            return len(self._answered) + len(self._others)

    def take(self, *, answered: bool = False) -> None:
        """Wait for it."""
        with self._lock:
            if not self._is_had:
                self._is_had = True
                return
            gate = _shut()
            (self._answered if answered else self._others).append(gate)
        # Opened by whoever hands it over.
        gate.acquire()

    def give(self) -> None:
        """Hand it over, if anybody waits."""
        with self._lock:
            waiting = self._answered or self._others
            if waiting:
                waiting.popleft().release()
            else:
                self._is_had = False

    def pause(self) -> None:
        """Let those go first that have an answer, if any waits."""
        with self._lock:
            if not self._answered:
                return
            gate = _shut()
            self._others.append(gate)
            self._answered.popleft().release()
        gate.acquire()


def _shut() -> Lock:
    gate = Lock()
    gate.acquire()
    return gate
