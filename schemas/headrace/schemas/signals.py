"""What engines and gateways publish: latencies and status of an engine, demand at a cluster, network round trips.

Instants are integer milliseconds since the epoch (event time), durations are seconds. null is "not measured", 0 is
"measured zero".
"""

from dataclasses import dataclass
from enum import StrEnum

from headrace.schemas.ids import RouteKey, link_key
from headrace.schemas.series import Lineage, SeriesReading


class Vantage(StrEnum):
    """Where a latency was seen from. A gateway's includes the network that the program adds again."""

    UNKNOWN = "UNKNOWN"
    ENGINE = "ENGINE"
    GATEWAY = "GATEWAY"
    CLIENT = "CLIENT"


class Metric(StrEnum):
    """Which latency a distribution holds."""

    UNKNOWN = "UNKNOWN"
    TTFT = "TTFT"
    TBOT = "TBOT"
    E2E = "E2E"
    QUEUE = "QUEUE"


class Health(StrEnum):
    """What the engine says of itself. UNKNOWN is an answer too: telemetry loss is not ill health."""

    UNKNOWN = "UNKNOWN"
    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    UNHEALTHY = "UNHEALTHY"


@dataclass(frozen=True, slots=True)
class Distribution:
    """Latencies of one metric for one model over one period, in the layout of `headrace.schemas.histogram`."""

    model: str
    metric: Metric
    count: int
    sum_s: float
    min_s: float | None
    max_s: float | None
    zero_count: int
    first_bucket: int
    bucket_counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What an engine said of itself at the period's end; every field may be "not measured"."""

    health: Health
    replicas_desired: int | None
    replicas_ready: int | None
    replicas_reporting: int | None
    running: float | None
    waiting: float | None
    kv_usage: float | None


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How one model's requests ended in the period. What says nothing of the engine is in neither count.

    `failed` the engine did: not reachable, an error of its own, an answer that broke off. What the client broke off or
    got wrong, and what was refused for want of room, is not counted.
    """

    model: str
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True)
class EngineSignals:
    """One engine over one period. Latencies and status travel together, so that one engine has one order.

    Latencies come as `distributions`, already of the period, or as `series`, readings of which the fold takes the
    difference. `lineage` says where the bridge read them; None where their producer published them itself. `outcomes`
    is None where nobody counted how requests ended.
    """

    engine_id: str
    source: str
    vantage: Vantage
    period_start_ms: int
    period_end_ms: int
    distributions: tuple[Distribution, ...]
    status: EngineStatus | None
    series: tuple[SeriesReading, ...] | None = None
    lineage: Lineage | None = None
    outcomes: tuple[Outcomes, ...] | None = None

    @property
    def key(self) -> bytes:
        """Kafka key: the engine's id."""
        return self.engine_id.encode()


@dataclass(frozen=True, slots=True)
class Demand:
    """Arrivals offered at a cluster's ingress over one period, rejected ones included; retries are counted apart.

    Counted over the period, or as `series`, readings of counters of which the fold takes the difference.
    """

    cluster: str
    model: str
    request_class: str
    source: str
    period_start_ms: int
    period_end_ms: int
    offered: int
    rejected: int
    retries: int
    series: tuple[SeriesReading, ...] | None = None
    lineage: Lineage | None = None

    @property
    def route(self) -> RouteKey:
        """The route that these arrivals ask for."""
        return RouteKey(self.cluster, self.model, self.request_class)

    @property
    def key(self) -> bytes:
        """Kafka key: `cluster|model|class`."""
        return self.route.encode()


@dataclass(frozen=True, slots=True)
class NetworkProbe:
    """One directed round trip from a cluster to a site, measured on one clock; null = every packet was lost."""

    from_cluster: str
    to_site: str
    source: str
    at_ms: int
    rtt_s: float | None
    lineage: Lineage | None = None

    @property
    def key(self) -> bytes:
        """Kafka key: `from|to`."""
        return link_key(self.from_cluster, self.to_site)
