"""An operator's pins as bounds on columns: no row is added to the program, and it stays feasible.

    L = least x demand <= x_keep + x_new <= most x demand = U      each route of the cluster that may use the engine
    x_keep in [min(L, warm), min(U, warm)]     x_new in [max(L - warm, 0), max(U - warm, 0)]

`x_keep` is never dearer than `x_new`, so the two bounds say exactly what the one on their sum does. A pinned engine is
a pool of its own (`layout`). A pin asks for no more than there is: the least of all pins of an engine is scaled down to
its capacity, that of all pins of a route to its demand. A pin of an engine that is out, or of none of the cluster's
routes, waits. Shares are of what is asked for: where a route sheds, of what is served they are more.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import PPM
from headrace.solver.core.program.layout import Floats, Ints, Layout, sums
from headrace.solver.core.program.plan import Plan

ROOM = 2.0 / PPM
"""Weights are whole ppm: what is off a bound by no more than rounding keeps to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Pins:
    """The pairs that are pinned, (K,), rising; `of` is each one's place in the problem's pins.

    `least` and `most` are shares of the row's demand, 0..1, as far as they can be held. `asked` is the sum of what the
    pins of the row ask for at least, above 1 where they are scaled to it.
    """

    pair: Ints
    least: Floats
    most: Floats
    of: Ints
    asked: Floats

    def __bool__(self) -> bool:
        """Say whether any pair is pinned."""
        return len(self.pair) > 0


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBounds:
    """Bounds of x_keep and x_new of each pair, (P,) RPS; those of a pair without x_keep are the sums of both.

    To be read only: without pins they are what is warm, and one value for all pairs.
    """

    keep_lower: Floats
    keep_upper: Floats
    new_lower: Floats
    new_upper: Floats


def pins_of(layout: Layout) -> Pins:
    """Find the pairs that the problem's pins are about; none where there are no pins."""
    if not layout.problem.pins:
        none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        return Pins(none, nothing, nothing, none, nothing)
    pool_of = {e.engine_id: int(g) for e, g in zip(layout.engines, layout.engine_pool, strict=True) if g >= 0}
    found: list[tuple[int, float, float, int]] = []
    for i, pin in enumerate(layout.problem.pins):
        pairs: list[int] = np.flatnonzero(layout.pair_pool == pool_of.get(pin.engine_id, -1)).tolist()
        own = (pair for pair in pairs if layout.rows[layout.pair_row[pair]].route.cluster == pin.cluster)
        found.extend((pair, pin.least, pin.most, i) for pair in own)
    found.sort()
    pair = np.array([f[0] for f in found], dtype=np.int64)
    least = np.array([f[1] for f in found], dtype=np.float64)
    most = np.array([f[2] for f in found], dtype=np.float64)
    row, pool = layout.pair_row[pair], layout.pair_pool[pair]
    of_row = sums(row, least, len(layout.rows))[row]
    of_pool = sums(pool, least * layout.demand[row], len(layout.pools))[pool]
    scale = np.minimum(_to_fit(of_row, np.ones(len(pair))), _to_fit(of_pool, layout.pool_capacity[pool]))
    return Pins(pair, least * scale, most, np.array([f[3] for f in found], dtype=np.int64), of_row)


def _to_fit(asked: Floats, there: Floats) -> Floats:
    return np.divide(there, asked, out=np.ones_like(asked), where=asked > there)


def column_bounds(layout: Layout) -> ColumnBounds:
    """Give the bounds of every pair's columns; without pins x_keep is what is warm, and x_new has no upper bound."""
    warm, size, pins = layout.pair_warm, (len(layout.pair_row),), pins_of(layout)
    nothing, anything = np.broadcast_to(0.0, size), np.broadcast_to(np.inf, size)
    if not pins:
        return ColumnBounds(nothing, warm, nothing, anything)
    bounds = ColumnBounds(nothing.copy(), warm.copy(), nothing.copy(), anything.copy())
    demand, here = layout.demand[layout.pair_row[pins.pair]], warm[pins.pair]
    least, most = pins.least * demand, pins.most * demand
    bounds.keep_lower[pins.pair] = np.minimum(least, here)
    bounds.keep_upper[pins.pair] = np.minimum(most, here)
    bounds.new_lower[pins.pair] = np.maximum(least - here, 0.0)
    bounds.new_upper[pins.pair] = np.maximum(most - here, 0.0)
    return bounds


def pairs_at_most(layout: Layout, plan: Plan) -> npt.NDArray[np.bool_]:
    """Say of each pair whether it has all that its pin allows, in the plan or in the answer that its prices are of."""
    full = np.zeros(len(layout.pair_row), dtype=np.bool_)
    pins = pins_of(layout)
    if not pins:
        return full
    flow = plan.flow if plan.answer is None else np.maximum(plan.flow, plan.answer.flow)
    demand = layout.demand[layout.pair_row[pins.pair]]
    full[pins.pair] = (demand > 0.0) & (flow[pins.pair] >= (pins.most - ROOM) * demand)
    return full


def pairs_at_nothing(layout: Layout) -> npt.NDArray[np.bool_]:
    """Say of each pair whether its pin allows it nothing, whatever is asked for, (P,)."""
    closed = np.zeros(len(layout.pair_row), dtype=np.bool_)
    pins = pins_of(layout)
    closed[pins.pair] = pins.most <= ROOM
    return closed


def rows_off_pins(layout: Layout, flow: Floats) -> npt.NDArray[np.bool_]:
    """Say of each row whether a flow (P,) RPS is outside its pins by more than rounding, (R,)."""
    off = np.zeros(len(layout.rows), dtype=np.bool_)
    pins = pins_of(layout)
    row = layout.pair_row[pins.pair]
    demand = layout.demand[row]
    below, above = (pins.least - ROOM) * demand, (pins.most + ROOM) * demand
    outside = (flow[pins.pair] < below) | (flow[pins.pair] > above)
    off[row[outside]] = True
    return off
