"""Why a target has its weight: one reason code, and one sentence with the numbers.

NO_DEMAND     nothing is asked for; the weight is for the first request that comes
AT_CAPACITY   the engine is full: what it has is all it can take
COSTLIER      0 now: another way is cheaper
KEPT_WARM     for a new session another engine is cheaper; this one keeps what it had for the sake of its caches
SPILL         a nearer engine exists and costs the same or more by now, or may take no more, so this one takes part of
              its traffic
CHEAPEST      no engine that the route may use is nearer
PINNED        an operator holds its share within bounds, whatever it costs
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.schemas.weights import Reason
from headrace.solver.core.program.layout import Floats, Ints, Layout
from headrace.solver.core.program.pins import pairs_at_most
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.predictions import FULL

MARGIN_MS = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """Targets in numbers, (T,): milliseconds but for weights, loads and their routes' demand.

    `warm_ppm` is the share that may stay where it was. `price_ms` is that of the engine, `marginal_ms` with the
    network; None without prices. `pinned` says who holds a share to what; empty where nobody does.
    """

    weight_ppm: Ints
    warm_ppm: Ints
    demand_rps: Floats
    network_ms: Floats
    engine_ms: Floats
    load: Floats
    price_ms: Floats | None
    marginal_ms: Floats | None
    nearest_ms: Floats
    cheapest_ms: Floats
    pinned: Sequence[str]


def nearest_and_cheapest(layout: Layout, plan: Plan) -> tuple[Floats, Floats]:
    """Give each row's shortest round trip, and its least price for a new session (NaN without prices), (R,) ms.

    Both are of a request. A way that has all that its pin allows is open to no new session; where no way is, the least
    price is infinite.
    """
    nearest = layout.least_per_row(layout.pair_network)
    if plan.prices is None:
        return nearest * layout.row_work, np.full(len(layout.rows), np.nan)
    price = layout.pair_network + plan.prices.pool[layout.pair_pool]
    if layout.problem.pins:
        price = np.where(pairs_at_most(layout, plan), np.inf, price)
    cheapest = layout.least_per_row(price)
    return nearest * layout.row_work, cheapest * layout.row_work


def reasons_of(s: Standings) -> list[Reason]:
    """Give the reason code of each target: the first that applies."""
    dearer = np.zeros(len(s.load), dtype=np.bool_)
    if s.marginal_ms is not None:
        dearer = (s.marginal_ms > s.cheapest_ms + MARGIN_MS) & (s.warm_ppm > 0)
    applies = (
        (Reason.PINNED, np.array([bool(words) for words in s.pinned], dtype=np.bool_)),
        (Reason.NO_DEMAND, s.demand_rps <= 0.0),
        (Reason.AT_CAPACITY, s.load >= FULL),
        (Reason.COSTLIER, s.weight_ppm == 0),
        (Reason.KEPT_WARM, dearer),
        (Reason.SPILL, s.network_ms > s.nearest_ms + MARGIN_MS),
    )
    codes = [reason for reason, _ in applies] + [Reason.CHEAPEST]
    found: list[int] = np.select([where for _, where in applies], range(len(applies)), len(applies)).tolist()
    return [codes[i] for i in found]


def sentence_of(
    reason: Reason, at: tuple[float, float, float], marginal_ms: float | None, saved_ms: float | None, pinned: str
) -> str:
    """Say the reason with its numbers.

    Args:
        reason: of the target.
        at: round trip and engine latency, ms, and load, 0..1.
        marginal_ms: price of a new session there; None where the policy knows no prices.
        saved_ms: how much less the cheapest way costs it.
        pinned: who holds its share, or that of a cheaper engine, to what.
    """
    network_ms, engine_ms, load = at
    text = f"{reason}: {network_ms:.1f} ms network + {engine_ms:.0f} ms engine at {load * 100:.0f} % load"
    if pinned:
        text = f"{text}; {pinned}"
    if marginal_ms is None:
        return text
    if reason is Reason.KEPT_WARM:
        return f"{text}; a new session would save {saved_ms:.0f} ms elsewhere, a moved one would not"
    return f"{text}; marginal {marginal_ms:.0f} ms"


def route_sentence(
    demand_rps: float, weights: list[tuple[str, int]], shed_ratio: float, marginal_ms: float | None, held: str = ""
) -> str:
    """Say in one sentence what a route does.

    Args:
        demand_rps: what it asks for.
        weights: (engine, ppm) of what is served.
        shed_ratio: the share that is refused.
        marginal_ms: price of one request more; None where the policy knows no prices.
        held: the pins for which it sheds, in words; empty where that is for want of capacity.
    """
    if not weights:
        why = held or "no engine may serve it, see the excluded ones"
        return f"{demand_rps:.1f} RPS asked for, all refused: {why}"
    largest = sorted(weights, key=lambda w: (-w[1], w[0]))
    parts = [f"{ppm / 10_000:.1f} % to {engine}" for engine, ppm in largest[:3]]
    if len(largest) > 3:
        parts.append(f"the rest to {len(largest) - 3} more")
    if shed_ratio > 0.0:
        shed = f"{shed_ratio * demand_rps:.1f} of {demand_rps:.1f} RPS ({shed_ratio * 100:.1f} %) are shed"
        why = held or "demand is above capacity"
        if shed_ratio >= 1.0:
            return f"{shed}, {why}"
        return f"{shed}, {why}; of the {(1.0 - shed_ratio) * demand_rps:.1f} served {', '.join(parts)}"
    text = f"{demand_rps:.1f} RPS: {', '.join(parts)}"
    if marginal_ms is None:
        return text
    return f"{text}; one more request per second would cost {marginal_ms:.0f} ms"
