"""The most that a weight should change in one tick, as a price: a soft bound, so that the program stays feasible.

    far_new   = max(x - warm - max_step d, 0)       what a way gains beyond the step, at step_price_ms
    far_left  = max(core - x_keep, 0)               what it loses beyond it, likewise; core = max(warm - max_step d, 0)

In the program: x_new up to the step and x_far beyond it, dearer by the price; x_core, the first of what was there,
cheaper by the price than the rest of it. Both only on rows that sent something anywhere; pinned pairs keep to their
pins, at any step. What cannot stay (an engine that is out, or full) moves however far, since the price is less than
shedding's. `max_step` 1 switches this off, and so does a move price of 0: no columns.
"""

from dataclasses import dataclass

import numpy as np

from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.pins import pins_of


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Bounds of each pair, (P,): what it may gain within the step (inf: any), and what of it is core (0: none).

    `price_ms` is what a request pays beyond, `work` (P,) of how many units of work it is one; `any` says whether any
    pair is bounded. Where none is, each array is one value for all pairs, and takes no memory.
    """

    gain: Floats
    core: Floats
    price_ms: float
    work: Floats
    any: bool

    @property
    def price(self) -> Floats:
        """What a unit of work pays beyond its step, (P,) ms."""
        return self.price_ms / self.work

    def cost(self, flow: Floats, warm: Floats) -> float:
        """Give what a flow (P,) costs for going beyond its steps, ms x RPS."""
        if not self.any:
            return 0.0
        return self.price_ms * float((self.beyond(flow, warm) / self.work).sum())

    def beyond(self, flow: Floats, warm: Floats) -> Floats:
        """Give how much of each pair's change is beyond its step, (P,)."""
        gained = np.where(np.isfinite(self.gain), flow - warm - self.gain, 0.0)
        return np.maximum(gained, 0.0) + np.maximum(self.core - flow, 0.0)


def steps_of(layout: Layout, max_step: float, price_ms: float) -> Steps:
    """Give the steps of a layout; without any bound where `max_step` is 1 or nothing is warm."""
    if max_step >= 1.0 or price_ms <= 0.0:
        size = (len(layout.pair_row),)
        return Steps(np.broadcast_to(np.inf, size), np.broadcast_to(0.0, size), price_ms, np.ones(1), any=False)
    bounded = (layout.per_row(layout.pair_previous) > 0.0)[layout.pair_row]
    bounded[pins_of(layout).pair] = False
    served = (layout.demand - layout.row_warm_shed)[layout.pair_row]
    gain = np.where(bounded, max_step * layout.demand[layout.pair_row], np.inf)
    core = np.where(bounded, np.maximum(layout.pair_warm - max_step * served, 0.0), 0.0)
    return Steps(gain, core, price_ms, layout.row_work[layout.pair_row], any=bool(np.isfinite(gain).any()))
