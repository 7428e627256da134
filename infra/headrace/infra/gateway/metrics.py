"""What the gateway counts, for Prometheus, in a registry of its own. Every label's values are bounded.

    headrace_gateway_requests_total{endpoint,model,status}      answered requests, by the status the client saw
    headrace_gateway_decisions_total{outcome,reason}            what the router said, first and further attempts
    headrace_gateway_engine_answers_total{engine,result}        attempts: ok, error, timeout, rejected, cancelled
    headrace_gateway_retries_total{result}                      granted, no_other_engine, budget_spent, ...
    headrace_gateway_streams_total{ending}                      DONE, ERROR (the engine said so), CUT (it did not)
    headrace_gateway_client_gone_total                          clients that left before the end of their answer
    headrace_gateway_turned_away_total{cause}                   refused before routing: body, auth, in_flight, ...
    headrace_gateway_source_problems_total                      what the source of weights and the reports complain of
    headrace_gateway_ttft_seconds{model,engine}                 histogram, of streams, as seen from here
    headrace_gateway_tbot_seconds{model,engine}                 histogram, likewise
    headrace_gateway_request_seconds{endpoint}                  histogram, from the head's arrival to the last byte
    headrace_gateway_in_flight, _connections, _buffered_bytes, _engines_down, _ready      gauges
    headrace_gateway_snapshot_epoch, _snapshot_version, _snapshot_age_seconds             gauges; age -1: none yet

`model` and `engine` are `other` beyond MAX_MODELS and MAX_PAIRS; engines go by their aliases. What the router knows
(staleness, ejections, throttles, retries, weights) is in `headrace.infra.gateway.router_metrics`.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from prometheus_client import Counter, Gauge, Histogram

from headrace.infra.gateway.core.bounded_names import OTHER, BoundedNames
from headrace.infra.gateway.core.stream_timing import StreamLatency
from headrace.infra.metrics import new_registry

MAX_MODELS: Final = 200
MAX_ENGINES: Final = 1_000
MAX_PAIRS: Final = 1_000
_TTFT_S: Final = (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0)
_TBOT_S: Final = (0.002, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)
_REQUEST_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


M = TypeVar("M", Counter, Histogram)


class GatewayMetrics:
    """The gateway's metrics; `registry` is what /metrics shows."""

    def __init__(self) -> None:
        self.registry = new_registry()
        self._models = BoundedNames(MAX_MODELS)
        self._engines = BoundedNames(MAX_ENGINES)
        self._pairs = BoundedNames(MAX_PAIRS)
        self._requests = self._counter("requests", "Answered requests", "endpoint", "model", "status")
        self._decisions = self._counter("decisions", "Decisions of the router", "outcome", "reason")
        self._answers = self._counter("engine_answers", "What engines did to attempts", "engine", "result")
        self._retries = self._counter("retries", "Retries asked for", "result")
        self._streams = self._counter("streams", "Streams by how they ended", "ending")
        self._gone = self._counter("client_gone", "Clients that left before the end")
        self._turned_away = self._counter("turned_away", "Requests refused before routing", "cause")
        self._problems = self._counter("source_problems", "Problems of the weights' source and of reports")
        self._ttft = self._histogram("ttft_seconds", "Time to the first token", _TTFT_S, "model", "engine")
        self._tbot = self._histogram("tbot_seconds", "Time between output tokens", _TBOT_S, "model", "engine")
        self._seconds = self._histogram("request_seconds", "Time of a whole request", _REQUEST_S, "endpoint")

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Show what `read` gives at each scrape."""
        Gauge(f"headrace_gateway_{name}", text, registry=self.registry).set_function(read)

    def answered(self, endpoint: str, model: str | None, status: int, seconds: float) -> None:
        """Count a request at its end. `endpoint` is one of the gateway's own paths, `model` None where unknown."""
        name = OTHER if model is None else self._models.name(model)
        self._requests[endpoint, name, status].inc()
        self._seconds[(endpoint,)].observe(seconds)

    def decided(self, outcome: str, reason: str) -> None:
        """Count a decision."""
        self._decisions[outcome, reason].inc()

    def attempted(self, alias: str, result: str) -> None:
        """Count what became of an attempt."""
        self._answers[self._engines.name(alias), result].inc()

    def retried(self, result: str) -> None:
        """Count what was said to a retry."""
        self._retries[(result,)].inc()

    def streamed(self, model: str, alias: str, ending: str, latency: StreamLatency) -> None:
        """Count a stream, and take what was measured of it."""
        self._streams[(ending,)].inc()
        pair = (model, alias) if self._pairs.name(f"{model}|{alias}") != OTHER else (OTHER, OTHER)
        if latency.ttft_s is not None:
            self._ttft[pair].observe(latency.ttft_s)
        if latency.tbot_s is not None:
            self._tbot[pair].observe(latency.tbot_s)

    def client_gone(self) -> None:
        """Count a client that left."""
        self._gone[()].inc()

    def source_problem(self) -> None:
        """Count a problem of what the weights come from, or of what reports go to; told in the log or not."""
        self._problems[()].inc()

    def turned_away(self, cause: str) -> None:
        """Count a request that was refused before routing."""
        self._turned_away[(cause,)].inc()

    def _counter(self, name: str, text: str, *labels: str) -> "_Family[Counter]":
        return _Family(Counter(f"headrace_gateway_{name}", text, labels, registry=self.registry))

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> "_Family[Histogram]":
        return _Family(Histogram(f"headrace_gateway_{name}", text, labels, registry=self.registry, buckets=buckets))


class _Family(dict[tuple[str | int, ...], M]):
    """A metric's children by their labels; remembered, since prometheus_client's own look-up takes a lock."""

    def __init__(self, metric: M) -> None:
        super().__init__()
        self._metric: M = metric

    def __missing__(self, labels: tuple[str | int, ...]) -> M:
        child: M = self._metric.labels(*map(str, labels)) if labels else self._metric
        self[labels] = child
        return child
