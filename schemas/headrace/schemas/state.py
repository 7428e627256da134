"""What the streams make of signals: the compacted state that the solver reads.

Each record is the Faust table's value itself: the public part, the window's panes (opaque to all but the fold that
wrote them), and the highest applied offset, which makes at-least-once delivery count once. `series` is what the
differences of cumulative series need to go on; None where none was ever read.
"""

from dataclasses import dataclass
from enum import StrEnum

from headrace.schemas.ids import RouteKey, link_key
from headrace.schemas.series import TbotKind
from headrace.schemas.signals import Health, Metric, Vantage


class Invalid(StrEnum):
    """Why a state may not be used, or NO where it may."""

    NO = "NO"
    UNKNOWN = "UNKNOWN"
    NO_SIGNAL_YET = "NO_SIGNAL_YET"
    LOW_COVERAGE = "LOW_COVERAGE"


@dataclass(frozen=True, slots=True)
class LatencyState:
    """One metric of one model over the sliding window, and its smoothed mean.

    `count` 0 means no traffic: the latency is unknown and the engine is fine. `tbot_kind` says of a time between tokens
    what one observation is; None where that is not told.
    """

    model: str
    metric: Metric
    count: int
    mean_s: float | None
    smoothed_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    tbot_kind: TbotKind | None = None


@dataclass(frozen=True, slots=True)
class OutcomePane:
    """How requests ended in the pane that ends at `end_ms`; `is_final` where nothing can be added to it any more."""

    end_ms: int
    succeeded: int
    failed: int
    is_final: bool


@dataclass(frozen=True, slots=True)
class OutcomeState:
    """How one model's requests ended over the window, seen from one vantage, by pane; oldest first.

    By pane, so that who counts evidence counts each request once, however often he looks.
    """

    model: str
    vantage: Vantage
    pane_ms: int
    panes: tuple[OutcomePane, ...]


@dataclass(frozen=True, slots=True)
class EngineState:
    """One engine as its signals tell it, as of `as_of_ms` (the end of its last closed pane, event time).

    `period_ms` is how long the newest signal's period was, `covered_ms` how much of the window is covered,
    `finished_rps` what it finished over its newest periods of 3 s or more; None in states of older writers. `outcomes`
    says how requests ended, as the engine and as gateways saw it; None where nobody counted.
    """

    engine_id: str
    as_of_ms: int
    last_signal_ms: int
    signal_timestamp_ms: int
    health: Health
    replicas_desired: int | None
    replicas_ready: int | None
    replicas_reporting: int | None
    running: float | None
    waiting: float | None
    kv_usage: float | None
    latencies: tuple[LatencyState, ...]
    coverage: float
    filled: tuple[str, ...]
    invalid: Invalid
    late: int
    applied_offset: int
    panes: bytes
    period_ms: int | None = None
    covered_ms: int | None = None
    finished_rps: float | None = None
    series: bytes | None = None
    outcomes: tuple[OutcomeState, ...] | None = None

    @property
    def key(self) -> bytes:
        """Kafka key: the same bytes as the key of its signals."""
        return self.engine_id.encode()


@dataclass(frozen=True, slots=True)
class DemandState:
    """Arrivals per second at one cluster for one model and class; retries and rejects are parts apart."""

    cluster: str
    model: str
    request_class: str
    as_of_ms: int
    last_signal_ms: int
    signal_timestamp_ms: int
    rate_rps: float | None
    smoothed_rps: float | None
    peak_1s_rps: float | None
    rejected_rps: float | None
    retry_rps: float | None
    coverage: float
    invalid: Invalid
    late: int
    applied_offset: int
    panes: bytes
    series: bytes | None = None

    @property
    def route(self) -> RouteKey:
        """The route that is demanded."""
        return RouteKey(self.cluster, self.model, self.request_class)

    @property
    def key(self) -> bytes:
        """Kafka key: `cluster|model|class`."""
        return self.route.encode()


@dataclass(frozen=True, slots=True)
class NetworkState:
    """Round trip from a cluster to a site. `lost_share` is the share of the window's probes that were lost."""

    from_cluster: str
    to_site: str
    as_of_ms: int
    last_signal_ms: int
    signal_timestamp_ms: int
    count: int
    rtt_s: float | None
    smoothed_s: float | None
    lost_share: float | None
    invalid: Invalid
    late: int
    applied_offset: int
    panes: bytes
    series: bytes | None = None

    @property
    def key(self) -> bytes:
        """Kafka key: `from|to`."""
        return link_key(self.from_cluster, self.to_site)
