"""What an answer to "why" holds. Prices in ms per request; flows in RPS."""

from dataclasses import dataclass

from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import Excluded, Protected


@dataclass(frozen=True, slots=True)
class PriceTerms:
    """Parts of a price: the first five add up to `marginal_ms`."""

    network_ms: float
    engine_ms: float
    congestion_ms: float
    scarcity_ms: float
    move_ms: float
    marginal_ms: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """A way that carries nothing: the engines of one pool, and by how much it is too dear."""

    engine_ids: tuple[str, ...]
    site: str
    gap_ms: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one engine has its weight in one route.

    Attributes:
        route: the route.
        engine_id: the engine.
        weight_ppm: its weight, of what the route serves.
        demand_rps: the route's demand.
        terms: the engine's price for this route; None where it is excluded.
        route_marginal_ms: the route's dual; None where the policy knows no prices.
        utilisation: the engine's planned load; None where it is excluded.
        excluded: why it may not be used, or None.
        binding: the constraints that hold the route where it is, one clause each.
        alternatives: at most two ways that carry nothing, nearest to being used first.
        others_excluded: the route's other excluded engines.
        replica_worth_ms_rps: the most that one more replica of it would take off the objective, ms x RPS; None
            where unknown, and where it may come to serve what is shed: the price of shedding is no latency.
        sentences: the same in three plain sentences, and a fourth where something acted on the engine or it fails.
        replica_worth_rps: how much of what is shed one more replica would serve, at least, RPS of work 1; None where
            unknown, and where a pin may be what refuses it.
        price_interval_ms: what the engine's price may be at its load: the slopes on both sides of it, the same two but
            at a corner of its curve; without an upper end where it is full. None where the weights stand as they are.
        shed_ratio: the share of the route's demand that is shed.
        protections: what acted on the engine before anything was decided, or was kept from acting, in its words.
        failed_share: the share of its requests that the engine failed in its window, 0..1; None where nobody counted.
    """

    route: RouteKey
    engine_id: str
    weight_ppm: int
    demand_rps: float
    terms: PriceTerms | None
    route_marginal_ms: float | None
    utilisation: float | None
    excluded: Excluded | None
    binding: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    others_excluded: tuple[Excluded, ...]
    replica_worth_ms_rps: float | None
    sentences: tuple[str, ...] = ()
    replica_worth_rps: float | None = None
    price_interval_ms: tuple[float, float | None] | None = None
    shed_ratio: float = 0.0
    protections: tuple[Protected, ...] = ()
    failed_share: float | None = None
