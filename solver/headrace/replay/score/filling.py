"""How many requests are in an engine, and at which load they keep it: its curve by Little's law, with chance around it.

    n(u) = u latency(u)                        requests in service at load u, per RPS of capacity; n(1): all slots
    u(n) = the load of n in service            1 beyond all slots
    N    ~ normal, variance spread u dn/du     what chance does to a mean of n: arrivals and lengths are no clockwork
    rate = capacity E u(N)                     wait = E max(N - n(1), 0)

The variance is that of a process with that slope and as much noise as Poisson arrivals and departures make together
(`spread` 1; a half where it is known how many arrived). All per RPS of capacity, so in seconds; E is by five points
(Gauss and Hermite), and tables are made once per profile.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from headrace.replay.score.latency_mass import Floats
from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.profile.load_cost import MS, latency_ms

GRID = 256
HALVINGS = 10
_NODES, _AREAS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS: Floats = _AREAS / _AREAS.sum()


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """A profile's tables over `load`, 0..1: seconds in service per RPS of capacity, and their variance's numerator."""

    load: Floats
    inside_s: Floats
    variance_s: Floats
    ttft_s: Floats
    tbot_s: Floats

    @property
    def slots_s(self) -> float:
        """Give n(1)."""
        return max(float(self.inside_s[-1]), 1e-9)

    def stretch(self, tokens: float) -> float:
        """Give latency at the wall with answers of another length, over that with the profile's."""
        return float(self.ttft_s[-1] + tokens * self.tbot_s[-1]) / self.slots_s

    def stretches(self, tokens: Floats) -> Floats:
        """Give the same of many."""
        found: Floats = (self.ttft_s[-1] + tokens * self.tbot_s[-1]) / self.slots_s
        return found

    def steady(self, load: Floats) -> Floats:
        """Give n(u); all slots beyond the wall."""
        return np.interp(load, self.load, self.inside_s)


@lru_cache(maxsize=4096)
def filling_of(profile: LatencyProfile) -> Filling:
    """Make a profile's tables, at its own tokens."""
    load = np.linspace(0.0, 1.0, GRID + 1)
    ttft_ms, tbot_ms = latency_ms(profile, load)
    inside = np.maximum.accumulate(load * (ttft_ms + profile.output_tokens * tbot_ms) / MS)
    return Filling(load, inside, load * np.gradient(inside, load), ttft_ms / MS, tbot_ms / MS)


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """Means of engines of one profile, (E,): load, TTFT and TBOT by the profile, s; requests inside, in seconds.

    `waiting_s` likewise of those that wait; `waits` is the probability that somebody does.
    """

    load: Floats
    ttft_s: Floats
    tbot_s: Floats
    inside_s: Floats
    waiting_s: Floats
    waits: Floats


def filled(table: Filling, content_s: Floats, seconds: float, scale: Floats, noise_s: Floats) -> Filled:
    """Give engines after a step of `seconds` into which `content_s` came, with what was inside before.

    Tables are read many times as fast where neighbours are about as full, so engines should come in that order.

    Args:
        table: their profile's.
        content_s: requests / capacity.
        seconds: 0 for the state that holds just this content.
        scale: latency of these engines / the profile's: slower, or longer answers.
        noise_s: spread / capacity, (E,): the variance of one request.
    """
    inside = content_s if seconds <= 0.0 else _left(table, content_s, seconds, scale, noise_s)
    points = _points(table, inside, scale, noise_s)
    load = _load(table, points, scale)
    read = [_WEIGHTS @ np.interp(load, table.load, values) for values in (table.ttft_s, table.tbot_s)]
    return Filled(_WEIGHTS @ load, read[0], read[1], inside, *_waiting(table, points, scale))


def queued(table: Filling, inside_s: Floats, scale: Floats, noise_s: Floats) -> tuple[Floats, Floats]:
    """Give how much of what is inside waits, and how probable it is that somebody does, (E,), as `Filled` has them."""
    return _waiting(table, _points(table, inside_s, scale, noise_s), scale)


def _waiting(table: Filling, points: Floats, scale: Floats) -> tuple[Floats, Floats]:
    waiting = np.maximum(points - table.slots_s * scale, 0.0)
    return _WEIGHTS @ waiting, _WEIGHTS @ (waiting > 0.0)


def _left(table: Filling, content_s: Floats, seconds: float, scale: Floats, noise_s: Floats) -> Floats:
    """Give what is inside after a step, where inside + seconds x rate(inside) = content."""

    def taken(inside_s: Floats) -> Floats:
        return inside_s + seconds * _rate(table, inside_s, scale, noise_s)

    low, high = np.zeros_like(content_s), content_s
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        less = taken(middle) < content_s
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    at_low, at_high = taken(low), taken(high)
    part = (content_s - at_low) / np.maximum(at_high - at_low, 1e-300)
    found: Floats = low + np.clip(part, 0.0, 1.0) * (high - low)
    return found


def _rate(table: Filling, inside_s: Floats, scale: Floats, noise_s: Floats) -> Floats:
    """Give what leaves per second, as a share of the capacity."""
    found: Floats = _WEIGHTS @ _load(table, _points(table, inside_s, scale, noise_s), scale)
    return found


def _points(table: Filling, inside_s: Floats, scale: Floats, noise_s: Floats) -> Floats:
    """Give (5, E) equally standing numbers inside."""
    # The variance is linear between the table's loads, and so between what they keep inside.
    deviation = np.sqrt(np.interp(inside_s / scale, table.inside_s, table.variance_s) * scale * noise_s)
    points: Floats = np.maximum(inside_s + _NODES[:, None] * deviation, 0.0)
    return points


def _load(table: Filling, inside_s: Floats, scale: Floats) -> Floats:
    return np.interp(inside_s / scale, table.inside_s, table.load)
