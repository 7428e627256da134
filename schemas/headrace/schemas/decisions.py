"""One record a tick: what the solver was given, what it found, how, and what it cost."""

from dataclasses import dataclass

from headrace.schemas.weights import InputOffsets, SnapshotMode, SnapshotStatus


@dataclass(frozen=True, slots=True)
class RouteDual:
    """What one more request per second of a route would cost, in ms per request."""

    route: str
    marginal_ms: float


@dataclass(frozen=True, slots=True)
class PoolDual:
    """The marginal price of a pool's engine time, in ms per request, and how full it is; of requests of work 1."""

    pool: str
    price_ms: float
    load_rps: float
    capacity_rps: float


@dataclass(frozen=True, slots=True)
class InputDigests:
    """What had been read of one input topic: per partition, a digest of each key's newest record.

    So that whoever reads the topic again, years later or from a file, knows whether it is what the solver read.
    """

    topic: str
    digests: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SolveRecord:
    """The record of one tick. `gap` is certified: (upper bound - lower bound) / upper bound of the true convex cost.

    `settings` (JSON) stands in a keyframe's record, the first of an epoch and one every `keyframe_ms`. With `inputs`,
    `input_digests` and the snapshot before, that is all that a tick depends on.
    """

    epoch: int
    version: int
    mode: SnapshotMode
    status: SnapshotStatus
    rung: str
    sentence: str
    tick_ms: int
    inputs: tuple[InputOffsets, ...]
    policy: str
    policy_hash: str
    objective: float | None
    gap: float | None
    demand_rps: float
    capacity_rps: float
    shed_rps: float
    moved_rps: float
    utilisation: float | None
    columns: int
    rows: int
    components: int
    iterations: int | None
    build_us: int
    solve_us: int
    check_us: int
    publish_us: int
    route_duals: tuple[RouteDual, ...]
    pool_duals: tuple[PoolDual, ...]
    settings: str | None = None
    input_digests: tuple[InputDigests, ...] | None = None

    @property
    def key(self) -> bytes:
        """Kafka key: the version, in decimal."""
        return str(self.version).encode()
