"""The log that parts are given: what they say goes wherever whoever runs the process sends it."""

from typing import Protocol


class Log(Protocol):
    """A structured logger, such as structlog's: a sentence and its fields."""

    def debug(self, event: str, **fields: object) -> object:
        """Log what is only of use when looking closer."""
        ...

    def info(self, event: str, **fields: object) -> object:
        """Log what happened."""
        ...

    def warning(self, event: str, **fields: object) -> object:
        """Log what someone should look at."""
        ...

    def error(self, event: str, **fields: object) -> object:
        """Log a fault of this program."""
        ...
