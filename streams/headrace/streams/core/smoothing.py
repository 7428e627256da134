"""Time-aware smoothing: s <- s + a (x - s), a = 1 - exp(-dt / tau), dt the event time since the value before.

Bad news fast, good news slow: two time constants for what may get worse (latency), one for what may only change
(demand), and a step that bypasses the smoothing: it lags by tau, and a surge must not wait for that.

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


def is_step(smoothed_rps: float, recent_rps: float, recent_s: float, share: float, sigmas: float) -> bool:
    """Say whether a recent rate is a step: further from the smoothed one than `share` of it, and than chance explains.

    A Poisson count over `recent_s` seconds at rate r has the rate error sqrt(r / recent_s). The larger of the two rates
    is taken for r, so that a burst at a nearly idle route is no step until it is beyond its own noise.
    """
    noise_rps = math.sqrt(max(smoothed_rps, recent_rps) / recent_s)
    return abs(recent_rps - smoothed_rps) > max(share * smoothed_rps, sigmas * noise_rps)
