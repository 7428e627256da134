"""What the solver publishes: the weights of each route, and the commit that makes a set of them a snapshot."""

from dataclasses import dataclass
from enum import StrEnum

from headrace.schemas.ids import COMMIT_KEY, SEPARATOR, RouteKey

PPM = 1_000_000
"""Weights are integers in parts per million; a route's sum is exactly this, or 0 where everything is refused."""


class SnapshotStatus(StrEnum):
    """How the weights came about: the rung of the solver's ladder, or HELD where the last good ones still stand."""

    UNKNOWN = "UNKNOWN"
    OPTIMAL = "OPTIMAL"
    PROPORTIONAL = "PROPORTIONAL"
    HELD = "HELD"


class SnapshotMode(StrEnum):
    """Whether data planes may route by it."""

    UNKNOWN = "UNKNOWN"
    LIVE = "LIVE"
    SHADOW = "SHADOW"


class Reason(StrEnum):
    """Why an engine has the weight it has, or is excluded; each comes with a sentence where it stands in a record."""

    UNKNOWN = "UNKNOWN"
    CHEAPEST = "CHEAPEST"
    KEPT_WARM = "KEPT_WARM"
    SPILL = "SPILL"
    AT_CAPACITY = "AT_CAPACITY"
    COSTLIER = "COSTLIER"
    NO_DEMAND = "NO_DEMAND"
    STALE = "STALE"
    UNHEALTHY = "UNHEALTHY"
    NO_READY_REPLICA = "NO_READY_REPLICA"
    NO_STATE = "NO_STATE"
    INVALID_STATE = "INVALID_STATE"
    DRAINED = "DRAINED"
    MODEL_NOT_SERVED = "MODEL_NOT_SERVED"
    CAPABILITY_MISSING = "CAPABILITY_MISSING"
    RESIDENCY = "RESIDENCY"
    NETWORK_UNKNOWN = "NETWORK_UNKNOWN"
    NETWORK_LOST = "NETWORK_LOST"
    NO_PROFILE = "NO_PROFILE"
    PINNED = "PINNED"


@dataclass(frozen=True, slots=True)
class Target:
    """One engine's share of a route, `previous_ppm` in the snapshot before.

    `solver_ppm` is the policy's own answer to the problem it was given, before weights that may stand were kept.
    `failover_kept` is the share of its sessions that others have room for, should it be out before the next snapshot;
    None where that is not known. `headroom` is by how much of what the route plans to send it the engine may get more
    before it is full, None where that is not known, or nothing is planned.
    """

    engine_id: str
    address: str | None
    weight_ppm: int
    solver_ppm: int
    previous_ppm: int
    network_s: float
    ttft_s: float | None
    tbot_s: float | None
    utilisation: float | None
    engine_price_ms: float | None
    reason: Reason
    sentence: str
    failover_kept: float | None = None
    headroom: float | None = None


@dataclass(frozen=True, slots=True)
class Excluded:
    """An engine that may not take this route's traffic, and why."""

    engine_id: str
    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class FallbackTarget:
    """An engine of the static fallback, used when the snapshot is past its time to live; or one of the failover."""

    engine_id: str
    address: str | None
    weight_ppm: int


@dataclass(frozen=True, slots=True)
class RouteWeights:
    """The weights of one route. Only changed routes are written again, so `version` may be below the commit's.

    `failover` says where the sessions of an engine that is out go until the next snapshot; () is by the weights.
    """

    cluster: str
    model: str
    request_class: str
    tier: int
    epoch: int
    version: int
    demand_rps: float
    targets: tuple[Target, ...]
    excluded: tuple[Excluded, ...]
    fallback: tuple[FallbackTarget, ...]
    shed_ratio: float
    retry_ratio: float
    marginal_ms: float | None
    sentence: str
    failover: tuple[FallbackTarget, ...] = ()

    @property
    def route(self) -> RouteKey:
        """The route that these weights are for."""
        return RouteKey(self.cluster, self.model, self.request_class)

    @property
    def key(self) -> bytes:
        """Kafka key: `cluster|model|class`."""
        # The same as the route's, without the route between: it is asked of every route at every tick.
        return f"{self.cluster}{SEPARATOR}{self.model}{SEPARATOR}{self.request_class}".encode()


@dataclass(frozen=True, slots=True)
class InputOffsets:
    """How far one input topic had been read: the next offset of each partition, in partition order."""

    topic: str
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """What the next tick must know of one engine; an engine that is as profiled, warm and unsuspected has none.

    `trim_ppm` is how slow it is against its profile, `trim_step` the step of it that the program was given,
    `penalty_ppm` the share of capacity that an outlier, or an engine that fails requests, is left. `away` it could take
    nothing at this tick; `returned_ms` is None where it is warm. `score_error_ppm` is a feedback policy's own.
    `capacity_ppm` is the share of its stated capacity that it was measured to serve, None where that was not measured;
    `full_since_ms` since when (event time) a queue stands before `full_replicas` ready replicas, None where none does.
    `error_ppm` is the evidence, of outcomes up to `error_until_ms` (event time), that it fails more requests than its
    peers, as a share of what is enough; None of none. `penalty_for_errors` says that the penalty is, or was, for that.
    """

    engine_id: str
    trim_ppm: int = PPM
    trim_step: int = 0
    penalty_ppm: int = PPM
    away: bool = False
    returned_ms: int | None = None
    score_error_ppm: int | None = None
    capacity_ppm: int | None = None
    full_since_ms: int | None = None
    full_replicas: int | None = None
    error_ppm: int | None = None
    error_until_ms: int | None = None
    penalty_for_errors: bool = False


@dataclass(frozen=True, slots=True)
class Protected:
    """One protection that changed what the program was given, by which factor, and why."""

    engine_id: str
    protection: str
    factor: float
    sentence: str


@dataclass(frozen=True, slots=True)
class SnapshotCommit:
    """The last record of a snapshot's transaction: names the set, dates it, and extends the validity of all routes.

    `remembered` and `protections` are sorted by engine. Memory travels in the snapshot, so that a restart, a standby
    and a replay go on from the same. `demand_until_ms` is up to when (event time) demand was known to it, None where
    that is not told.
    """

    epoch: int
    version: int
    mode: SnapshotMode
    status: SnapshotStatus
    sentence: str
    tick_ms: int
    period_ms: int
    valid_until_ms: int
    route_count: int
    changed: tuple[str, ...]
    digest: str
    policy: str
    policy_hash: str
    inputs: tuple[InputOffsets, ...]
    remembered: tuple[EngineMemory, ...] = ()
    protections: tuple[Protected, ...] = ()
    demand_until_ms: int | None = None

    @property
    def key(self) -> bytes:
        """Kafka key: `!commit`."""
        return COMMIT_KEY


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The unit of truth: a commit and every route it covers, sorted by key. Replaced, never patched."""

    commit: SnapshotCommit
    routes: tuple[RouteWeights, ...]
