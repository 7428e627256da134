"""Which pins make a route refuse requests that an engine could take: what binds there is a pin, and not capacity.

    binds   the route sheds, a way has all that its pin allows, and a request more there costs less than to shed it
            (without prices: the engine is not full); not where the route fills the engine by itself, as where its
            pin allows just what the engine has
    room    what the engine could take besides, requests a second: with less than what is shed, the rest is for want
            of capacity

A route that every engine is kept from by pins to nothing is refused for them, whatever is asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.solver.core.program.layout import Layout, sums
from headrace.solver.core.program.pins import pairs_at_most, pairs_at_nothing, pins_of
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.predictions import FULL

CHEAPER_MS = 1e-6
SOME = 1e-9
"""Share of a route's demand below which what is shed is rounding."""
MAX_NAMED = 2
LEAST_TOLD_RPS = 0.05
"""What is printed as 0.1 or more."""


@dataclass(frozen=True, slots=True)
class BindingPin:
    """One pin of a route that sheds for it: the most of it, a share 0..1, who holds it, and what there is room for."""

    engine_id: str
    most: float
    sentence: str
    room_rps: float


def shed_by_pins(layout: Layout, plan: Plan) -> Mapping[int, tuple[BindingPin, ...]]:
    """Give the pins that bind, by row, as an index into the layout; rows without one are not in it."""
    pins = pins_of(layout)
    if not pins:
        return {}
    pair, nothing = pins.pair, pairs_at_nothing(layout)
    row, pool = layout.pair_row[pair], layout.pair_pool[pair]
    used, capacity = sums(layout.group_pool, plan.load, len(layout.pools))[pool], layout.pool_capacity[pool]
    cheaper = used < capacity * FULL
    if plan.prices is not None:
        way = layout.pair_network[pair] + plan.prices.pool[pool]
        # Where pin and capacity come to the same, prices may put it down to either.
        cheaper = (way < plan.prices.row[row] - CHEAPER_MS) & (plan.flow[pair] < capacity * FULL)
    sheds = (plan.shed > SOME * layout.demand)[row]
    closed = (layout.per_row((~nothing).astype(np.float64)) == 0.0)[row]
    room = np.maximum(capacity - used, 0.0) / layout.row_work[row]
    found: dict[int, tuple[BindingPin, ...]] = {}
    for i in np.flatnonzero((pairs_at_most(layout, plan)[pair] & cheaper & sheds) | closed).tolist():
        pin = layout.problem.pins[int(pins.of[i])]
        held = BindingPin(pin.engine_id, pin.most, pin.sentence, float(room[i]))
        found[int(row[i])] = (*found.get(int(row[i]), ()), held)
    return found


def held_words(pins: Sequence[BindingPin], shed_rps: float) -> str:
    """Say which pins bind, those with the most room first, and what of the RPS shed has no room besides."""
    ordered = sorted(pins, key=lambda pin: (-pin.room_rps, pin.engine_id))
    said = [f"{pin.engine_id} is held to at most {100 * pin.most:g} %: {pin.sentence}" for pin in ordered[:MAX_NAMED]]
    if len(ordered) > MAX_NAMED:
        said.append(f"and {len(ordered) - MAX_NAMED} more")
    room_rps = sum(pin.room_rps for pin in pins)
    if room_rps >= LEAST_TOLD_RPS and shed_rps - room_rps >= LEAST_TOLD_RPS:
        said.append(f"the other {shed_rps - room_rps:.1f} RPS are above capacity")
    return "; ".join(said)


def kept_words(layout: Layout, plan: Plan, binding: Mapping[int, tuple[BindingPin, ...]]) -> str:
    """Say how much is shed that engines have room for, but for pins; empty where nothing is."""
    kept = {
        row: min(float(plan.shed[row] / layout.row_work[row]), sum(pin.room_rps for pin in pins))
        for row, pins in binding.items()
    }
    rps = sum(kept.values())
    if rps < LEAST_TOLD_RPS:
        return ""
    first = max(sorted(kept), key=lambda row: kept[row])
    more = f" and {len(kept) - 1} more routes" if len(kept) > 2 else " and 1 more route" if len(kept) == 2 else ""
    return f"for pins up to {rps:.1f} RPS of {layout.rows[first].route}{more} are shed though engines have room"
