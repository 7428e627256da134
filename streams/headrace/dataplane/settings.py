"""Settings of the data plane, with their bounds. Pure: `headrace.infra.config` reads them from `headrace.toml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Gt, Le


@dataclass(frozen=True, slots=True)
class FallbackEngine:
    """One engine that may be used before any snapshot has arrived. Weights are relative to each other."""

    engine_id: str
    address: str | None = None
    weight: Annotated[float, Gt(0), Le(1e6)] = 1.0


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
        fallback: engines by model, used before any snapshot has arrived, and never after.
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
    fallback: Mapping[str, tuple[FallbackEngine, ...]] = field(default_factory=_no_fallback)
