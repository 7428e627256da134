"""Readings of series as they were scraped, and where a signal was read: what the bridge hands on, not yet differenced.

Counters and histograms of engines count since they began. The difference of two readings needs memory, which the bridge
has not: readings travel as they are, and the fold of their key takes the difference.
"""

from dataclasses import dataclass
from enum import StrEnum


class SeriesField(StrEnum):
    """Which field of an engine, or of the demand at a cluster, a series tells."""

    UNKNOWN = "UNKNOWN"
    TTFT = "TTFT"
    TBOT = "TBOT"
    E2E = "E2E"
    QUEUE = "QUEUE"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    KV_USAGE = "KV_USAGE"
    REPLICAS_DESIRED = "REPLICAS_DESIRED"
    REPLICAS_READY = "REPLICAS_READY"
    HEALTH = "HEALTH"
    ARRIVALS = "ARRIVALS"
    REJECTED = "REJECTED"
    RETRIES = "RETRIES"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class SeriesKind(StrEnum):
    """Since when a reading counts: since the series began, since the reading before, or it is of its instant."""

    UNKNOWN = "UNKNOWN"
    CUMULATIVE = "CUMULATIVE"
    DELTA = "DELTA"
    INSTANT = "INSTANT"


class SeriesPart(StrEnum):
    """What of a histogram a reading is, where its source writes them one by one."""

    UNKNOWN = "UNKNOWN"
    WHOLE = "WHOLE"
    BUCKET = "BUCKET"
    SUM = "SUM"
    COUNT = "COUNT"


class SeriesOver(StrEnum):
    """How a gauge is put together over ranks, or over instances."""

    UNKNOWN = "UNKNOWN"
    SUM = "SUM"
    MEAN = "MEAN"
    MAX = "MAX"
    MIN = "MIN"


class TbotKind(StrEnum):
    """What one observation of a time between tokens is: a request's mean, or one output of the engine.

    An output may hold several tokens, as under speculative decoding.
    """

    UNKNOWN = "UNKNOWN"
    REQUEST_MEAN = "REQUEST_MEAN"
    PER_OUTPUT = "PER_OUTPUT"


@dataclass(frozen=True, slots=True)
class SeriesHistogram:
    """A histogram in seconds as its source keeps it: explicit where `scale` is None, else exponential."""

    count: int
    sum_s: float | None
    min_s: float | None
    max_s: float | None
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    scale: int | None
    zero_count: int
    first_bucket: int


@dataclass(frozen=True, slots=True)
class SeriesReading:
    """One reading of one series; neither value nor histogram: the source said that it recorded none.

    Of names that one series goes by, `slot` is the same, and `alias` 0 is preferred. `offset` and `index` say which
    reading of its source record it is; both None where there is no source record. `tbot_kind` None: not told.
    """

    series: int
    slot: int
    alias: int
    field: SeriesField
    kind: SeriesKind
    part: SeriesPart
    model: str
    instance: str
    rank: str
    over_ranks: SeriesOver
    over_instances: SeriesOver
    at_ms: int
    start_ms: int | None
    value: float | None
    histogram: SeriesHistogram | None
    offset: int | None
    index: int | None
    tbot_kind: TbotKind | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a signal that the bridge made came from; offset and index are those of its last reading."""

    topic: str
    partition: int
    offset: int
    index: int
    mapping_hash: str
