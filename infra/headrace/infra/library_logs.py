"""What the libraries log, in the process's own log: one form for every line, their warnings and above alone.

aiokafka's debug records alone cost an eighth of the throughput.
"""

import logging
from typing import Protocol


class Log(Protocol):
    """Where it is said again."""

    def warning(self, event: str, **fields: object) -> object:
        """Log what someone should look at."""
        ...

    def error(self, event: str, **fields: object) -> object:
        """Log a fault."""
        ...


class _ToLog(logging.Handler):
    """Hands records of the standard library's logging on."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        say = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        fields: dict[str, object] = {"logger": record.name}
        if record.exc_info is not None:
            fields["exc_info"] = record.exc_info
        say(record.getMessage(), **fields)


def redirect_library_logs(log: Log) -> None:
    """Send what Faust, the Kafka clients and asyncio log to `log`; what others set up for the root logger goes."""
    logging.root.handlers[:] = [_ToLog(log)]
    logging.root.setLevel(logging.WARNING)
    for name in ("aiokafka", "faust", "mode", "asyncio", "headrace.kafka"):
        logging.getLogger(name).setLevel(logging.WARNING)
