"""What the libraries log, in the process's own log: one form for every line, their warnings and above alone.

One kind of line (the same words, whatever the numbers in them) is said at once and then every SAY_AGAIN_S at most, with
how many were held back: a Kafka client whose broker is away says so thirty times a second. aiokafka's debug records
alone cost an eighth of the throughput.
"""

import logging
import re
import time
from collections.abc import Callable
from typing import Final, Protocol

SAY_AGAIN_S: Final = 10.0
MAX_KINDS: Final = 1_000
_NUMBERS = re.compile(r"\d+")


class Log(Protocol):
    """Where it is said again."""

    def warning(self, event: str, **fields: object) -> object:
        """Log what someone should look at."""
        ...

    def error(self, event: str, **fields: object) -> object:
        """Log a fault."""
        ...


class _ToLog(logging.Handler):
    """Hands records of the standard library's logging on. `logging` calls it under its lock."""

    def __init__(self, log: Log, now_s: Callable[[], float]) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._now_s = now_s
        self._said: dict[str, tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, or hold it back."""
        message = record.getMessage()
        kind, now_s = f"{record.name} {_NUMBERS.sub('#', message)}", self._now_s()
        said_s, held_back = self._said.get(kind, (-SAY_AGAIN_S, 0))
        if now_s - said_s < SAY_AGAIN_S:
            self._said[kind] = said_s, held_back + 1
            return
        if len(self._said) >= MAX_KINDS:
            self._said.clear()
        self._said[kind] = now_s, 0
        say = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        fields: dict[str, object] = {"logger": record.name}
        if held_back:
            fields["held_back"] = held_back
        if record.exc_info is not None:
            fields["exc_info"] = record.exc_info
        say(message, **fields)


def redirect_library_logs(log: Log, now_s: Callable[[], float] = time.monotonic) -> None:
    """Send what Faust, the Kafka clients and asyncio log to `log`; what others set up for the root logger goes."""
    logging.root.handlers[:] = [_ToLog(log, now_s)]
    logging.root.setLevel(logging.WARNING)
    for name in ("aiokafka", "faust", "mode", "asyncio", "headrace.kafka"):
        logging.getLogger(name).setLevel(logging.WARNING)
