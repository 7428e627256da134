"""Sums over a stretch of time, in one array: stretches are merged by adding; means, rates and shares are quotients."""

from enum import IntEnum

import numpy as np

from headrace.replay.score.latency_mass import Floats


class Of(IntEnum):
    """What each place of the array adds up. Requests unless said otherwise; latencies are seconds x requests."""

    SECONDS = 0
    """Scored time."""
    OFFERED = 1
    """First attempts."""
    SERVED = 2
    SHED = 3
    """Refused by the weights: their shed ratio, or no engine at all."""
    REFUSED = 4
    """Refused by engines and not retried."""
    RETRIES = 5
    COLD = 6
    """Served where their conversation was not before, for a change of weights."""
    NETWORK = 7
    ENGINE = 8
    """Wait, TTFT and decoding."""
    TTFT = 9
    """With network and wait: what a user sees."""
    TBOT = 10
    UNMEASURED = 11
    """Served at a load outside what was measured."""
    BEYOND = 12
    """Of the engine latency, what lies outside the measured range of load."""
    MOVED = 13
    """Share of all traffic; each change of weights adds its own."""
    REVERSALS = 14
    OVERLOADED = 15
    """Engine seconds with somebody waiting beyond the wall."""
    LOAD = 16
    """Mean load x seconds."""
    IMBALANCE = 17
    """Largest load of an engine / mean load x seconds."""
    MISSING = 18
    """Seconds that were not scored, for a gap in history."""


def no_sums() -> Floats:
    """Give zeros, one for each member of `Of`."""
    return np.zeros(len(Of))


def per(sums: Floats, what: Of, of: Of) -> float | None:
    """Give a quotient of two sums; None where the second is 0."""
    return float(sums[what] / sums[of]) if sums[of] > 0.0 else None


def end_to_end_s(sums: Floats) -> float | None:
    """Give the mean end-to-end latency, network and engine, of served requests."""
    if sums[Of.SERVED] <= 0.0:
        return None
    return float((sums[Of.NETWORK] + sums[Of.ENGINE]) / sums[Of.SERVED])


def moved_percent_a_minute(sums: Floats) -> float:
    """Give the traffic moved, % of all per minute: the metric of `movement.moved_per_minute`."""
    return float(100.0 * sums[Of.MOVED] / (sums[Of.SECONDS] / 60.0)) if sums[Of.SECONDS] > 0.0 else 0.0


def unserved_percent(sums: Floats) -> float:
    """Give the requests that were shed or refused, % of all; 0 where there were none."""
    offered = float(sums[Of.OFFERED])
    return 100.0 * float(sums[Of.SHED] + sums[Of.REFUSED]) / offered if offered > 0.0 else 0.0
