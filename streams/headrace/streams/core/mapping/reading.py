"""What mapping gives: one reading of one field of one engine, in seconds or plain numbers, not yet differenced."""

from enum import StrEnum
from typing import NamedTuple

from headrace.schemas.signals import Metric, Vantage
from headrace.streams.core.decode.contract import Explicit, Exponential, Temporality


class Field(StrEnum):
    """What of an engine, or of the demand at a cluster, a reading tells."""

    TTFT = "ttft"
    TBOT = "tbot"
    E2E = "e2e"
    QUEUE = "queue"
    RUNNING = "running"
    WAITING = "waiting"
    KV_USAGE = "kv_usage"
    REPLICAS_DESIRED = "replicas_desired"
    REPLICAS_READY = "replicas_ready"
    HEALTH = "health"
    ARRIVALS = "arrivals"
    REJECTED = "rejected"
    RETRIES = "retries"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


DURATIONS = {Field.TTFT: Metric.TTFT, Field.TBOT: Metric.TBOT, Field.E2E: Metric.E2E, Field.QUEUE: Metric.QUEUE}
"""Fields that are distributions of seconds, and the metric of a signal that each becomes."""

GAUGES = frozenset(
    (
        Field.RUNNING,
        Field.WAITING,
        Field.KV_USAGE,
        Field.REPLICAS_DESIRED,
        Field.REPLICAS_READY,
        Field.HEALTH,
    )
)
DEMANDED = frozenset((Field.ARRIVALS, Field.REJECTED, Field.RETRIES))
"""Counters of the demand at a cluster."""
OUTCOMES = frozenset((Field.SUCCEEDED, Field.FAILED))
"""Counters of an engine's requests, by how they ended; in neither: what says nothing of the engine."""
COUNTERS = DEMANDED | OUTCOMES


class Over(StrEnum):
    """How a gauge is put together over ranks, or over instances."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"


class TbotKind(StrEnum):
    """What one observation of TBOT is: a request's mean, or one output of the engine, which may hold several tokens."""

    UNKNOWN = "unknown"
    REQUEST_MEAN = "request_mean"
    PER_OUTPUT = "per_output"


class Identity(NamedTuple):
    """Who a series is of. "" is "not told"; engine and model are always told, cluster where demand is."""

    engine: str
    model: str
    instance: str
    rank: str
    cluster: str
    request_class: str


class Reading(NamedTuple):
    """One reading of one field.

    `series` names the series, its metric's name included; `slot` names it without, so that aliases of one series share
    it: of those, `alias` 0 is preferred to 1, and so on. A distribution has a histogram in seconds, the rest a value;
    a reading with neither is missing.
    """

    identity: Identity
    field: Field
    series: int
    slot: int
    alias: int
    temporality: Temporality
    time_ms: int
    start_ms: int | None
    value: float | None
    histogram: Explicit | Exponential | None
    vantage: Vantage
    over_ranks: Over
    over_instances: Over
    tbot_kind: TbotKind
    name: str
    place: int

    @property
    def is_missing(self) -> bool:
        """Whether the source said that it recorded no value."""
        return self.value is None and self.histogram is None
