"""SIGTERM and SIGINT as a question a loop asks: the first asks it to end in good order, the second ends it at once."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType


def stop_on_signals() -> Callable[[], bool]:
    """Install the handlers; gives the function that says whether to stop. To be called in the main thread."""
    asked: list[int] = []

    def ask(signum: int, _: FrameType | None) -> None:
        asked.append(signum)
        signal.signal(signum, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    return lambda: bool(asked)


def end_process() -> None:
    """End a process that has closed all it had open, without the second that taking the interpreter down costs."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
