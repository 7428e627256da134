"""Settings of the data plane, with their bounds. Pure: `headrace.infra.configuration` reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt


@dataclass(frozen=True, slots=True)
class FallbackEngine:
    """One engine that may be used before any snapshot has arrived. Weights are relative to each other."""

    engine_id: str
    address: str | None = None
    weight: Annotated[float, Gt(0), Le(1e6)] = 1.0


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """When a data plane acts on what it sees for itself; `headrace.dataplane.guards` has the formulas.

    Attributes:
        error_tolerated: share of failed requests that is no reason to act.
        error_bad: share that is.
        error_once_in: requests of an engine at the tolerated share to one wrong ejection, at least, in the mean.
        ttft_factor: times the expected time to first token, in the mean, up to which an engine is left alone.
        ttft_clip: times the expected that one request counts for at most.
        ttft_requests: requests in a row as slow as that which eject an engine.
        ejection_base_ms: how long the first ejection lasts.
        ejection_max_ms: how long any lasts at most.
        ejection_jitter: share of an ejection's length that a hash decides on.
        ejected_max: share of a route's weight that may be ejected; for its errors one engine may weigh more, up to
            `panic_above`, while its sessions have somewhere to go. 0 for no ejections.
        ejected_max_frozen: the same while the solver is not heard from: then nobody else takes broken engines out.
        panic_above: share of a route's weight down or ejected above which ejections are ignored.
        throttle_k: times its accepts that an engine is asked at most, once it rejects.
        throttle_window_ms: time constant with which rejections are forgotten.
        in_flight_new: times its share of the requests under way from which an engine lets new conversations go.
        in_flight_established: the same for conversations under way.
        in_flight_most: times its share that either comes to in whole requests, at most: they are rounded up.
        in_flight_min: requests under way that are no crowd, whatever the share.
        surge_sigmas: deviations above what the weights know of from which more arrivals are a surge.
        surge_window_ms: time over which they are counted; half seconds.
        surge_most: times what the weights know of that is believed at most; 1 to leave surges where they are.
        released_max: sessions per route whose new engine is remembered after they were let go.
    """

    error_tolerated: Annotated[float, Gt(0), Lt(1)] = 0.02
    error_bad: Annotated[float, Gt(0), Lt(1)] = 0.25
    error_once_in: Annotated[float, Gt(1), Le(1e18)] = 1e6
    ttft_factor: Annotated[float, Gt(1), Le(1_000)] = 2.0
    ttft_clip: Annotated[float, Gt(1), Le(1_000)] = 4.0
    ttft_requests: Annotated[int, Ge(1), Le(100_000)] = 20
    ejection_base_ms: Annotated[int, Ge(1), Le(3_600_000)] = 30_000
    ejection_max_ms: Annotated[int, Ge(1), Le(86_400_000)] = 300_000
    ejection_jitter: Annotated[float, Ge(0), Lt(1)] = 0.2
    ejected_max: Annotated[float, Ge(0), Le(1)] = 0.3
    ejected_max_frozen: Annotated[float, Ge(0), Le(1)] = 0.5
    panic_above: Annotated[float, Ge(0), Le(1)] = 0.5
    throttle_k: Annotated[float, Ge(1), Le(1_000)] = 2.0
    throttle_window_ms: Annotated[int, Ge(1), Le(3_600_000)] = 60_000
    in_flight_new: Annotated[float, Ge(1), Le(1_000)] = 1.15
    in_flight_established: Annotated[float, Ge(1), Le(1_000)] = 1.25
    in_flight_most: Annotated[float, Gt(1), Le(1_000)] = 1.3
    in_flight_min: Annotated[int, Ge(1), Le(1_000_000)] = 4
    surge_sigmas: Annotated[float, Gt(0), Le(100)] = 3.0
    surge_window_ms: Annotated[int, Ge(500), Le(60_000)] = 3_000
    surge_most: Annotated[float, Ge(1), Le(100)] = 2.0
    released_max: Annotated[int, Ge(1), Le(10_000_000)] = 50_000


def _no_fallback() -> Mapping[str, tuple[FallbackEngine, ...]]:
    return {}


@dataclass(frozen=True, slots=True)
class DataPlaneSettings:
    """Settings of one data plane.

    Attributes:
        source: name of this data plane in its reports; replicas of one cluster should differ, since it also seeds the
            order in which requests without a key are spread.
        table_size: slots per route, a prime. Data planes agree on a session's engine only where they agree on it.
        large_table_size: slots per route that knows more than `large_above` engines, a prime.
        large_above: engines up to which `table_size` is used.
        fresh_periods: solver periods without a commit after which the weights count as frozen.
        rehash_max: other slots to try when a slot's engine may not be used, before all engines are weighed.
        retry_after_s: what a refused caller is told to wait: about what the solver needs to change its mind.
        shed_retry_after_s: the same where the request was shed; longer, since the same session stays shed.
        retry_burst: retries that may be saved up per route; also what a route starts with.
        demand_period_ms: period of the demand reports.
        routed_share: share of the sessions whose requests are published one by one, for replay; 0 publishes none.
        fallback: engines by model, used before any snapshot has arrived, and never after.
        guards: when it acts on what it sees for itself.
    """

    source: str = "dataplane"
    table_size: Annotated[int, Ge(101), Le(1_000_003)] = 16_381
    large_table_size: Annotated[int, Ge(101), Le(1_000_003)] = 65_537
    large_above: Annotated[int, Ge(1)] = 32
    fresh_periods: Annotated[int, Ge(1), Le(1_000)] = 3
    rehash_max: Annotated[int, Ge(0), Le(64)] = 8
    retry_after_s: Annotated[float, Ge(0), Le(3_600)] = 1.0
    shed_retry_after_s: Annotated[float, Ge(0), Le(3_600)] = 5.0
    retry_burst: Annotated[int, Ge(0), Le(10_000)] = 10
    demand_period_ms: Annotated[int, Ge(100), Le(60_000)] = 1_000
    routed_share: Annotated[float, Ge(0), Le(1)] = 0.0
    fallback: Mapping[str, tuple[FallbackEngine, ...]] = field(default_factory=_no_fallback)
    guards: GuardSettings = field(default_factory=GuardSettings)
