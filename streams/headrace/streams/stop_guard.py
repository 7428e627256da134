"""A stop that ends whatever hangs: a thread of its own, which no event loop, lock or join can hold up.

    asked to stop ── within_s ──► still here: say in which part, exit with STOPPED_SHORT

Nothing is lost by it. What was not acknowledged comes again, and the guard by offset in each state drops what was
applied already.
"""

import os
import threading
import time
from collections.abc import Callable

from headrace.schemas.log import Log

STOPPED_SHORT = 3
"""Exit status of a worker that was asked to stop and could not end every part of itself in time."""
LOOK_S = 0.1


class StopGuard:
    """Watches a process from its first moment; `part` is what it is doing, in words that finish "stuck in ..."."""

    def __init__(
        self, stopped: Callable[[], bool], within_s: float, log: Log, end: Callable[[int], object] = os._exit
    ) -> None:
        self.part = "the start"
        self._stopped = stopped
        self._within_s = within_s
        self._log = log
        self._end = end

    def start(self) -> threading.Thread:
        """Watch in a thread that does not keep the process alive."""
        thread = threading.Thread(target=self.watch, name="stop guard", daemon=True)
        thread.start()
        return thread

    def watch(self) -> None:
        """Wait until the process is asked to stop, give it its time, and end it where it is still there."""
        while not self._stopped():
            time.sleep(LOOK_S)
        time.sleep(self._within_s)
        self._log.error("stopped short: what was not acknowledged comes again", stuck_in=self.part)
        self._end(STOPPED_SHORT)
