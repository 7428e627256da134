"""The one way in which a process shows its metrics: a table of them, and `/metrics` on `<part>.metrics_port`.

    [solver]
    metrics_port = 9465          # 0 = off, the default
    metrics_host = "127.0.0.1"   # who may ask; there is no password

`headrace gateway` shows its own beside its API. `infra/docs/metrics.md` names all of them.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)

from headrace.schemas.errors import HeadraceError
from headrace.schemas.metric_table import Counts, Labels, Metric, NoCounts

PREFIX: Final = "headrace"


class MetricsPortError(HeadraceError):
    """The metrics cannot be served where they are wanted."""


class Served(Protocol):
    """Settings of a part whose metrics can be served."""

    @property
    def metrics_port(self) -> int:
        """Give the port; 0 = off."""
        ...

    @property
    def metrics_host(self) -> str:
        """Give the address to listen at."""
        ...


def new_registry() -> CollectorRegistry:
    """Give an empty registry, whose counters are shown without the instant of their making: nobody reads it."""
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the client's types are partial
    return CollectorRegistry()


class Meter:
    """The metrics of one process, in a registry of their own: `headrace_<part>_<name>`."""

    def __init__(self, part: str, table: Iterable[Metric]) -> None:
        self.registry = new_registry()
        self._by_name: dict[str, Any] = {each.name: _made(f"{PREFIX}_{part}", each, self.registry) for each in table}
        self._shown: dict[str, set[Labels]] = {}

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Serve them at `/metrics` from a thread of its own, with the process's own (CPU, memory, open files).

        Gives the function that ends it.

        Raises:
            OSError: the port is taken, or the address is none of this host's.
        """
        ProcessCollector(registry=self.registry)
        server, _ = start_http_server(port, host, self.registry)

        def end() -> None:
            server.shutdown()
            server.server_close()

        return end

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Add to a counter of the table."""
        self._of(name, labels).inc(amount)

    def show(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge of the table."""
        self._of(name, labels).set(value)

    def show_all(self, name: str, values: Mapping[Labels, float]) -> None:
        """Set every series of a gauge: those that were there before and are not any more become 0."""
        before = self._shown.setdefault(name, set())
        for labels in before - values.keys():
            self._of(name, labels).set(0.0)
        for labels, value in values.items():
            self._of(name, labels).set(value)
        before.update(values)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to a histogram of the table."""
        self._of(name, labels).observe(value)

    def _of(self, name: str, labels: Labels) -> Any:  # noqa: ANN401 - prometheus_client's kinds share no type
        metric = self._by_name[name]
        return metric.labels(*labels) if labels else metric


def counts_of(part: str, table: Iterable[Metric], settings: Served, *, section: str | None = None) -> Counts:
    """Give what counts a process's doings, served where its settings say; nothing where they say no port.

    Args:
        part: what the names of its metrics begin with, after `headrace_`.
        table: its metrics.
        settings: says where.
        section: of the configuration, where that is not called as the part is.

    Raises:
        MetricsPortError: the port is taken, or the address is none of this host's.
    """
    if not settings.metrics_port:
        return NoCounts()
    meter = Meter(part, table)
    try:
        meter.serve(settings.metrics_host, settings.metrics_port)
    except OSError as error:
        at = f"{settings.metrics_host}:{settings.metrics_port}"
        where = f"{section or part}.metrics_host and {section or part}.metrics_port"
        raise MetricsPortError(f"metrics cannot be served at {at}: {error.strerror or error}; see {where}") from error
    return meter


def _made(prefix: str, metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    name = f"{prefix}_{metric.name}"
    if metric.kind == "histogram":
        return Histogram(name, metric.says, metric.labels, registry=registry, buckets=metric.buckets)
    if metric.kind == "counter":
        return Counter(name, metric.says, metric.labels, registry=registry)
    gauge = Gauge(name, metric.says, metric.labels, registry=registry)
    if not metric.labels:
        gauge.set(math.nan)  # not measured yet, which is not 0
    return gauge
