"""What a streams worker counts, for Prometheus, off unless `streams.metrics_port` is set. Every label is bounded.

`topic` is the signals' role in the topic table (`signals.engine`, `signals.demand`, `signals.network`), whatever the
topic is called; `outcome` and `reason` are the words of `Outcome` and `RejectReason`; `step` is fold or deliver.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from headrace.streams.core.keyed import Folded

PREFIX: Final = "headrace_streams_"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIGNALS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


class Row(NamedTuple):
    """One metric: its name after PREFIX, kind, labels, buckets where it is a histogram, and what it says."""

    name: str
    kind: type[Counter | Gauge | Histogram]
    labels: tuple[str, ...]
    says: str
    buckets: tuple[float, ...] = ()


TABLE: Final = (
    Row("signals_total", Counter, ("topic", "outcome"), "Signals folded, by what became of them"),
    Row("refused_total", Counter, ("topic", "reason"), "Signals written to the dead letters, by reason"),
    Row("states_total", Counter, ("topic",), "States written"),
    Row("batch_seconds", Histogram, ("topic", "step"), "Time of a batch: folding, and delivery to Kafka", _SECONDS),
    Row("batch_signals", Histogram, ("topic",), "Signals in a batch", _SIGNALS),
    Row("watermark_delay_seconds", Gauge, ("topic",), "Wall clock less the newest event time, at the last batch"),
    Row("lag_signals", Gauge, ("topic",), "Signals in the owned partitions that are not folded yet; asked every 5 s"),
    Row("partitions", Gauge, ("topic",), "Owned partitions"),
    Row("assignments_total", Counter, (), "Times that the group gave this worker its partitions"),
    Row("recovery_seconds", Gauge, (), "From the last assignment to the first signal that could be folded"),
    Row("read_again_total", Counter, ("topic",), "Signals read again behind what was committed"),
    Row("engines_known", Gauge, (), "Engines in the fleet topic"),
)
"""Every metric there is: the page that documents them and the dashboards are checked against this."""


class Meter:
    """The worker's metrics in a registry of their own, served on one port."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._by_name: dict[str, Any] = {row.name: _made(row, self.registry) for row in TABLE}

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Serve them at `/metrics` from a thread of its own; gives the function that ends it.

        Raises:
            OSError: the port is taken.
        """
        server, _ = start_http_server(port, host, self.registry)

        def end() -> None:
            server.shutdown()
            server.server_close()

        return end

    def batch(self, topic: str, signals: int, folded: Folded, took_s: Mapping[str, float]) -> None:
        """Count a batch that was acknowledged; `took_s` by step."""
        for outcome, count in folded.outcomes.items():
            self._by_name["signals_total"].labels(topic, str(outcome)).inc(count)
        for letter in folded.rejected:
            self._by_name["refused_total"].labels(topic, str(letter.reason)).inc()
        self._by_name["states_total"].labels(topic).inc(len(folded.states))
        for step, seconds in took_s.items():
            self._by_name["batch_seconds"].labels(topic, step).observe(seconds)
        self._by_name["batch_signals"].labels(topic).observe(signals)

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Add to a counter of the table."""
        self._of(name, labels).inc(amount)

    def show(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge of the table."""
        self._of(name, labels).set(value)

    def _of(self, name: str, labels: tuple[str, ...]) -> Any:  # noqa: ANN401 - prometheus_client's kinds share no type
        metric = self._by_name[name]
        return metric.labels(*labels) if labels else metric


def _made(row: Row, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    name = f"{PREFIX}{row.name}"
    if row.kind is Histogram:
        return Histogram(name, row.says, row.labels, registry=registry, buckets=row.buckets)
    return row.kind(name, row.says, row.labels, registry=registry)
