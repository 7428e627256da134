"""Time-aware smoothing: s <- s + a (x - s), a = 1 - exp(-dt / tau), dt the event time since the value before.

Bad news fast, good news slow: two time constants for what may get worse. Demand may only change: see `level`.

What is missing is no value: a gap makes the next value weigh more (dt is longer), and the smoothed value stays.

Source: the exponentially weighted average of an irregular series, Eckner 2012, "Algorithms for Unevenly Spaced Time
Series: Moving Averages and Other Rolling Operators"; asymmetric as in Finagle's peak EWMA.
"""

import math
from typing import NamedTuple


class Smoothed(NamedTuple):
    """A smoothed value, and the event time of the last value that went into it."""

    value: float
    at_ms: int


def smooth(before: Smoothed | None, value: float, at_ms: int, tau_up_ms: float, tau_down_ms: float) -> Smoothed:
    """Move a smoothed value towards `value`; the first value is taken as it is.

    A value that is not newer than the one before (dt <= 0) changes nothing.
    """
    if before is None:
        return Smoothed(value, at_ms)
    dt_ms = at_ms - before.at_ms
    if dt_ms <= 0:
        return before
    tau_ms = tau_up_ms if value > before.value else tau_down_ms
    return Smoothed(before.value - math.expm1(-dt_ms / tau_ms) * (value - before.value), at_ms)
