"""SIGTERM and SIGINT as a question a loop asks: the first asks it to end in good order, the second ends it at once."""

import signal
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
