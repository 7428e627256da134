"""What the worker needs from outside it."""

from collections.abc import Mapping, MutableMapping
from typing import Protocol

from headrace.streams.core.keyed import Folded


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
        """Log a fault."""
        ...


class Counts(Protocol):
    """What the worker counts of itself; `headrace.streams.metrics.TABLE` names all of it."""

    def batch(self, topic: str, signals: int, folded: Folded, took_s: Mapping[str, float]) -> None:
        """Count a batch that was acknowledged; `took_s` by step."""
        ...

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Add to a counter."""
        ...

    def show(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        ...


class NoCounts:
    """Counts nothing: metrics are off."""

    def batch(self, topic: str, signals: int, folded: Folded, took_s: Mapping[str, float]) -> None:
        """Count nothing."""

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Count nothing."""

    def show(self, name: str, value: float, *labels: str) -> None:
        """Show nothing."""


class RecoveredTable(Protocol):
    """The states of the owned partitions by key, and where in their changelog each lay when it was recovered."""

    @property
    def data(self) -> MutableMapping[bytes, bytes]:
        """Give the states. What is set here is not written to the changelog."""
        ...

    @property
    def places(self) -> Mapping[bytes, int]:
        """Give the changelog's offsets, of deleted states too."""
        ...
