"""What a process counts of itself: a table of metrics as data, and the port through which its parts count. Pure.

Each process has one table beside its code (`streams/metrics.py`, `streams/bridge/metrics.py`, `solver/metrics.py`);
`headrace.infra.metrics` makes them visible to Prometheus. Every label has a bounded set of values.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

MetricKind = Literal["counter", "gauge", "histogram"]
Labels = tuple[str, ...]


class Metric(NamedTuple):
    """One metric: its name after the process's prefix, kind, labels, what it says, and its buckets if a histogram.

    The name of a counter ends in `_total`, that of an instant in `_timestamp_seconds`; units are Prometheus' own.
    """

    name: str
    kind: MetricKind
    labels: Labels
    says: str
    buckets: tuple[float, ...] = ()


class Counts(Protocol):
    """Where a process counts; names and labels are those of its table."""

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Add to a counter."""
        ...

    def show(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge; NaN says that it is not known."""
        ...

    def show_all(self, name: str, values: Mapping[Labels, float]) -> None:
        """Set every series of a gauge: those that were there before and are not any more become 0."""
        ...

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        ...


class NoCounts:
    """Counts nothing: metrics are off."""

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Count nothing."""

    def show(self, name: str, value: float, *labels: str) -> None:
        """Show nothing."""

    def show_all(self, name: str, values: Mapping[Labels, float]) -> None:
        """Show nothing."""

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Count nothing."""
