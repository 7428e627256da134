"""Prices of all pools at once, nearly right: where the program of a large fleet is worth looking at closely.

Ascent of the smoothed dual (`smooth_dual`), at falling temperatures. At each, some steps in which every pool moves its
own price by what it is asked for too much over how quickly that falls (Jacobi, damped): that settles which of a site's
and a row's pools are cheaper. Then one step in which all prices move together (Newton, its equations solved by
conjugate gradients): that settles how dear whole models are, which the first kind of step would take hundreds for. A
matter of numpy over 10^5 ways, some milliseconds a step; prices come out right to some milliseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.solver.core.program.hubs import Hubs
from headrace.solver.core.program.layout import Floats, Ints, Layout
from headrace.solver.core.program.smooth_dual import Parts, Slope, excess_at, parts_of_network, slope_at


@dataclass(frozen=True, slots=True)
class Stage:
    """So many steps of each price alone, then one of all together.

    `smoothing` is how far a chord's slope is smeared, relative to it: a supply in stairs, or prices would never settle.
    """

    temperature_ms: float
    smoothing: float
    alone: int


FIRST = Stage(30.0, 0.15, 0)
"""Repeated until it is settled: in overload prices are far above what any engine's load explains."""
SETTLED = 0.02
"""Share of all demand asked of the wrong pools, when those first steps are done."""
MOST_FIRST = 2
"""What they leave undone the stages do for less: at this temperature nearly every way counts."""
NEAREST: tuple[Stage, ...] = (Stage(1.0, 0.01, 2),)
NEARER: tuple[Stage, ...] = (Stage(2.0, 0.05, 4), Stage(1.0, 0.01, 5))
FARTHER: tuple[Stage, ...] = (Stage(15.0, 0.15, 1), Stage(8.0, 0.15, 1), Stage(4.0, 0.1, 2), *NEARER)
KNOWN, LOST = 0.02, 0.05
"""With less than the first share of all demand asked of the wrong pools, as in a quiet tick, prices are `NEAREST`; up
to the second, as where some engines died, `NEARER`; and beyond it as good as unknown."""
SHORT = 60_000
"""Ways of a stretch at most. What is longer hangs together, and each of its programs costs ten times what steps do."""
DAMPING = 0.8
FAR = 12.0
"""Ways dearer than a row's cheapest by this many temperatures carry nothing that counts."""
SLACK = 20.0
"""They are still looked at where they are within this many ms more: prices are on their way."""
SOLVED = 0.05
"""The equations of a step together are solved to this share of where they began: they are approximate themselves."""
ROUNDING = 1e-14
"""Share of what a change would bend by itself below which the bend of all together is none."""
MOST_ROUNDS = 100
LENGTHS = (1.0, 0.3, 0.09)


def prices_before(layout: Layout) -> Floats:
    """Give each pool's price in the newest of the previous records that name one, (G,); NaN where none does."""
    stood, price = layout.stood, np.full(len(layout.pools), np.nan)
    version: Ints = layout.records.routes["version"]
    told = np.flatnonzero(np.isfinite(stood.price_ms) & (stood.engine >= 0))
    # The last of equals wins, and all of one version agree.
    told = told[np.argsort(version[stood.row[told]], kind="stable")]
    price[layout.engine_pool[stood.engine[told]]] = stood.price_ms[told] / layout.row_work[stood.row[told]]
    return price


def guess_prices(hubs: Hubs, before: Floats, pause: Callable[[], None] = lambda: None) -> Floats:
    """Give a price for each pool, ms, (G,); `before` are last tick's, NaN where there is none.

    `pause` is called between steps, of which each takes a moment.
    """
    known = np.isfinite(before)
    level = np.full(len(before), _level(hubs))
    usual = np.minimum(level, float(np.median(before[known]))) if known.any() else level
    return _ascend(hubs, np.where(known, before, usual), level, pause)


def _level(hubs: Hubs) -> float:
    """Give the price at which all chords together hold all demand."""
    _, _, _, chords, _, _, _ = hubs.bounds
    slope, width = (values[chords : chords + hubs.sizes[5]] for values in (hubs.arcs.cost, hubs.arcs.upper))
    if not len(slope):
        return 0.0
    order = np.argsort(slope, kind="stable")
    held = np.cumsum(width[order])
    at = int(np.searchsorted(held, min(float(hubs.arcs.supply.sum()), 0.98 * float(held[-1]))))
    return float(slope[order][min(at, len(slope) - 1)])


def _ascend(hubs: Hubs, prices: Floats, level: Floats, pause: Callable[[], None]) -> Floats:
    whole, last = parts_of_network(hubs), NEARER[0].temperature_ms
    pause()
    parts = whole.near(prices, FAR * last + SLACK)
    off = _off(parts, prices, NEARER[0]) / float(parts.demand.sum())
    is_known = off <= KNOWN and len(whole.way_row) <= SHORT
    stages = NEAREST if is_known else NEARER if off <= LOST else FARTHER
    if stages is FARTHER:
        parts, last = whole, np.inf
        prices = min((prices, level), key=lambda start: _off(parts, start, FIRST))
        for _ in range(MOST_FIRST):
            prices = _moved_together(parts, prices, FIRST)
            pause()
            if _off(parts, prices, FIRST) <= SETTLED * float(parts.demand.sum()):
                break
    for stage in stages:
        t = stage.temperature_ms
        if t < last:
            pause()
            parts, last = parts.near(prices, FAR * t + SLACK), t
        for _ in range(stage.alone):
            pause()
            slope = slope_at(parts, prices, t, stage.smoothing, bend=False)
            prices = prices + np.clip(DAMPING * slope.excess / slope.steep, -3.0 * t, 3.0 * t)
        pause()
        prices = _moved_together(parts, prices, stage)
    return prices


def _off(parts: Parts, prices: Floats, stage: Stage) -> float:
    """Give how much is asked of pools above and below what they hold, RPS."""
    return float(np.sum(np.abs(excess_at(parts, prices, stage.temperature_ms, stage.smoothing))))


def _moved_together(parts: Parts, prices: Floats, stage: Stage) -> Floats:
    """Take Newton's step, shortened where supply in stairs would throw it too far; none where no length is better."""
    t = stage.temperature_ms
    slope = slope_at(parts, prices, t, stage.smoothing, bend=True)
    longest = 8.0 * t + (np.abs(prices) if stage is FIRST else 0.0)
    step, off = np.clip(_together(slope), -longest, longest), float(np.sum(np.abs(slope.excess)))
    for length in LENGTHS:
        further = prices + length * step
        if _off(parts, further, stage) <= off:
            return further
    return prices


def _together(slope: Slope) -> Floats:
    """Solve bend x step = excess by conjugate gradients, preconditioned by each pool's own; (G,) ms.

    Sums are numpy's own, in one order whatever the threads: a BLAS may divide a long dot product among them.
    """
    step, left = np.zeros_like(slope.excess), slope.excess
    scaled = left / slope.steep
    direction, size = scaled, float(np.sum(left * scaled))
    enough = SOLVED**2 * size
    for _ in range(MOST_ROUNDS):
        if size <= enough:
            break
        bent = slope.times(direction)
        along = float(np.sum(direction * bent))
        # A bend of nothing but rounding has no step; dividing by it would end beyond all numbers.
        if along <= ROUNDING * float(np.sum(slope.own * direction * direction)):
            break
        step, left = step + (size / along) * direction, left - (size / along) * bent
        scaled = left / slope.steep
        size, before = float(np.sum(left * scaled)), size
        direction = scaled + (size / before) * direction
    return step
