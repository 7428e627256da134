"""Why a target has its weight: one reason code, and one sentence with the numbers.

NO_DEMAND     nothing is asked for; the weight is for the first request that comes
AT_CAPACITY   the engine is full: what it has is all it can take
COSTLIER      0 now: another way is cheaper
KEPT_WARM     for a new session another engine is cheaper; this one keeps what it has for the sake of its caches
SPILL         a nearer engine exists and costs the same or more by now, so this one takes part of its traffic
CHEAPEST      no engine that the route may use is nearer
PINNED        an operator holds its share within bounds, whatever it costs
"""

from dataclasses import dataclass

import numpy as np

from headrace.schemas.weights import Reason
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.predictions import FULL

MARGIN_MS = 1e-6
DEMAND_HELD = "demand held at the last known: nothing is heard of it now"
"""What ends the sentence of a route whose demand is not measured any more."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One target in numbers: milliseconds but for `weight_ppm` and `load`. `marginal_ms` is None without prices.

    `pinned` says who holds its share to what; empty where nobody does.
    """

    weight_ppm: int
    network_ms: float
    engine_ms: float
    load: float
    marginal_ms: float | None
    nearest_ms: float
    cheapest_ms: float | None
    pinned: str = ""


def nearest_and_cheapest(layout: Layout, plan: Plan) -> tuple[Floats, Floats]:
    """Give each row's shortest round trip, and its least price for a new session (NaN without prices), (R,) ms.

    Both are of a request.
    """
    nearest = np.full(len(layout.rows), np.inf)
    np.minimum.at(nearest, layout.pair_row, layout.pair_network)
    if plan.prices is None:
        return nearest * layout.row_work, np.full(len(layout.rows), np.nan)
    cheapest = np.full(len(layout.rows), np.inf)
    np.minimum.at(cheapest, layout.pair_row, layout.pair_network + plan.prices.pool[layout.pair_pool])
    return nearest * layout.row_work, cheapest * layout.row_work


def reason_of(s: Standing, demand_rps: float) -> Reason:
    """Give the reason code of one target."""
    if s.pinned:
        return Reason.PINNED
    if demand_rps <= 0.0:
        return Reason.NO_DEMAND
    if s.load >= FULL:
        return Reason.AT_CAPACITY
    if s.weight_ppm == 0:
        return Reason.COSTLIER
    if s.marginal_ms is not None and s.cheapest_ms is not None and s.marginal_ms > s.cheapest_ms + MARGIN_MS:
        return Reason.KEPT_WARM
    return Reason.SPILL if s.network_ms > s.nearest_ms + MARGIN_MS else Reason.CHEAPEST


def sentence_of(s: Standing, reason: Reason) -> str:
    """Say the reason with its numbers."""
    text = f"{reason}: {s.network_ms:.1f} ms network + {s.engine_ms:.0f} ms engine at {s.load * 100:.0f} % load"
    if s.pinned:
        text = f"{text}; {s.pinned}"
    if s.marginal_ms is None:
        return text
    if reason is Reason.KEPT_WARM and s.cheapest_ms is not None:
        return (
            f"{text}; a new session would save {s.marginal_ms - s.cheapest_ms:.0f} ms elsewhere, a moved one would not"
        )
    return f"{text}; marginal {s.marginal_ms:.0f} ms"


def route_sentence(
    demand_rps: float, weights: list[tuple[str, int]], shed_ratio: float, marginal_ms: float | None
) -> str:
    """Say in one sentence what a route does; `weights` are (engine, ppm) of what is served."""
    if not weights:
        return f"{demand_rps:.1f} RPS asked for, all refused: no engine may serve it, see the excluded ones"
    largest = sorted(weights, key=lambda w: (-w[1], w[0]))
    parts = [f"{ppm / 10_000:.1f} % to {engine}" for engine, ppm in largest[:3]]
    if len(largest) > 3:
        parts.append(f"the rest to {len(largest) - 3} more")
    if shed_ratio > 0.0:
        shed = f"{shed_ratio * demand_rps:.1f} of {demand_rps:.1f} RPS ({shed_ratio * 100:.1f} %) are shed"
        return (
            f"{shed}, demand is above capacity; of the {(1.0 - shed_ratio) * demand_rps:.1f} served {', '.join(parts)}"
        )
    text = f"{demand_rps:.1f} RPS: {', '.join(parts)}"
    if marginal_ms is None:
        return text
    return f"{text}; one more request per second would cost {marginal_ms:.0f} ms"
