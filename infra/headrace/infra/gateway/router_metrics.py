"""What the router of a gateway knows, for Prometheus; read at each scrape, so that it costs requests nothing.

    headrace_gateway_weights_state{state}              1 for the one that holds: ABSENT, FRESH, FROZEN, FALLBACK
    headrace_gateway_weight{model,class,engine}        share of the route, 0 to 1, as the snapshot has it
    headrace_gateway_ejected{engine,cause}             1 for each engine that is ejected now; a route leaves out at most
                                                       its share of them
    headrace_gateway_throttled_share{engine}           share of the sessions that is kept from an engine that rejects
    headrace_gateway_attempts_in_flight{model,class,engine}   attempts begun and not ended
    headrace_gateway_retries_saved{model,class}        retries that the route's budget holds now
    headrace_gateway_surge_ratio{model,class}          times what the weights know of that arrives; 1 if no more
    headrace_gateway_not_counted_total{what}           dropped from reports: demand, latency; invalid: odd calls
    headrace_gateway_snapshots_total{result}           installed, refused (not whole), not_installed, failures
    headrace_gateway_reports_total{result}             records to Kafka: published, delivered, failed, dropped

The last two are there where the weights come from Kafka. Engines go by their aliases; of the families with an engine at
most MAX_SERIES series each are shown, the rest is counted in headrace_gateway_series_left_out{family}.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.dataplane.router import Router
from headrace.dataplane.staleness import Staleness
from headrace.infra.gateway.weights_source import FromKafka, WeightsSource

MAX_SERIES: Final = 1_000
BOUNDED: Final = ("weight", "ejected", "throttled_share", "attempts_in_flight", "retries_saved", "surge_ratio")
"""Families that may have more series than are shown."""
_PREFIX: Final = "headrace_gateway_"

Series = Iterable[tuple[tuple[str, ...], float]]


class RouterMetrics(Collector):
    """Shows one router. `alias` gives the name an engine goes by outside."""

    def __init__(
        self, router: Router, source: WeightsSource, alias: Callable[[str], str], now_ms: Callable[[], int]
    ) -> None:
        self._router = router
        self._source = source
        self._alias = alias
        self._now_ms = now_ms
        self._left_out: dict[str, int] = {}

    def collect(self) -> Iterator[Metric]:
        """Read everything once."""
        router, now_ms = self._router, self._now_ms()
        self._left_out = dict.fromkeys(BOUNDED, 0)
        state = router.staleness(now_ms)
        yield self._gauge(
            "weights_state", "How old the weights are", ("state",), (((s.value,), float(s is state)) for s in Staleness)
        )
        route = ("model", "class")
        yield self._gauge("weight", "Share of a route", (*route, "engine"), self._weights())
        ejected = (((self._alias(e.engine_id), e.cause.value), 1.0) for e in router.ejections(now_ms))
        yield self._gauge("ejected", "Engines left out for what they did", ("engine", "cause"), ejected)
        throttled = (((self._alias(engine),), share) for engine, share in router.throttled(now_ms).items())
        yield self._gauge("throttled_share", "Share of sessions kept from an engine", ("engine",), throttled)
        yield self._gauge("attempts_in_flight", "Attempts under way", (*route, "engine"), self._in_flight())
        saved = ((name, float(router.retries_saved(*name))) for name in self._routes())
        yield self._gauge("retries_saved", "Retries that may be spent now", route, saved)
        surges = ((name, router.surge(*name)) for name in self._routes())
        yield self._gauge("surge_ratio", "Times what the weights know of that arrives", route, surges)
        lost = {
            "demand": router.demand.dropped,
            "latency": router.latencies.dropped,
            "routed": router.routed.dropped,
            "invalid": router.invalid,
        }
        yield _counter("not_counted", "Left out of what is reported", "what", lost)
        if isinstance(self._source, FromKafka):
            yield _counter("snapshots", "What became of snapshots", "result", asdict(self._source.feed.counts))
            reports = self._source.reporter.counts
            results = {name: getattr(reports, name) for name in ("published", "delivered", "failed", "dropped")}
            yield _counter("reports", "What became of records to Kafka", "result", results)
        left_out = (((family,), float(count)) for family, count in self._left_out.items())
        yield self._gauge("series_left_out", "Series beyond what is shown", ("family",), left_out)

    def _routes(self) -> list[tuple[str, str]]:
        installed = self._router.installation
        return [] if installed is None else sorted(installed.tables)

    def _weights(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for name in self._routes():
            for engine, ppm in self._router.weights(*name).items():
                yield (*name, self._alias(engine)), ppm / 1e6

    def _in_flight(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for name in self._routes():
            for engine in self._router.weights(*name):
                yield (*name, self._alias(engine)), float(self._router.in_flight(*name, engine))

    def _gauge(self, name: str, text: str, labels: tuple[str, ...], series: Series) -> Metric:
        family, rest = GaugeMetricFamily(_PREFIX + name, text, labels=labels), iter(series)
        for values, value in islice(rest, MAX_SERIES):
            family.add_metric(values, value)
        more = sum(1 for _ in rest)
        if more:
            self._left_out[name] = more
        return family


def _counter(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, text, labels=(label,))
    for what, count in values.items():
        family.add_metric((what,), float(count))
    return family
