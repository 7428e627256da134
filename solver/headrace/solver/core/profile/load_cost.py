"""The cost of loading an engine: L(u) = u (TTFT(u) + tokens TBOT(u)) in ms, u = load / capacity in 0..1.

TTFT and TBOT are linear between a profile's knots, so L is c + a u + b u^2 on each piece: value, slope and the least of
L(u) - p u are exact, without sampling. An engine of capacity C at load C u costs C L(u) ms x RPS; its slope in RPS is
dL/du whatever C is, so everything here is computed once per profile.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.schemas.fleet import LatencyProfile

Floats = npt.NDArray[np.float64]
MS = 1000.0
PROBED = "@probed"
"""Ends the id of a profile whose first load is free (`protections/probe`)."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadCost:
    """L(u) = constant + linear u + quadratic u^2, in ms, on each of p pieces between p + 1 knots from 0 to 1."""

    knots: Floats
    constant: Floats
    linear: Floats
    quadratic: Floats

    def value(self, u: Floats) -> Floats:
        """Give L(u), ms; beyond 1 the last piece goes on."""
        i = self._piece(u)
        return self.constant[i] + self.linear[i] * u + self.quadratic[i] * u * u

    def slope(self, u: Floats) -> Floats:
        """Give dL/du, ms, from the right at a knot: what one more request costs everybody together."""
        i = self._piece(u)
        return self.linear[i] + 2.0 * self.quadratic[i] * u

    def least_latency(self) -> float:
        """Give the least mean latency L(u) / u at any load, ms."""
        inner = self.knots[1:]
        return min(float((self.value(inner) / inner).min()), float(self.slope(np.zeros(1))[0]))

    def least(self, price_ms: float) -> float:
        """Give min over u in 0..1 of L(u) - price u, ms: how much an engine is worth at a price, sign turned.

        The same for L and for its convex envelope, so the bound that is made of it holds for any profile.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            turning = (price_ms - self.linear) / (2.0 * self.quadratic)
        turning = np.where(np.isfinite(turning), turning, self.knots[:-1])
        inside = np.clip(turning, self.knots[:-1], self.knots[1:])
        at = np.concatenate((inside, self.knots[:-1], self.knots[1:]))
        pieces = np.tile(np.arange(len(self.linear)), 3)
        values = self.constant[pieces] + (self.linear[pieces] - price_ms) * at + self.quadratic[pieces] * at * at
        return float(values.min())

    def least_of(self, prices_ms: Floats) -> Floats:
        """Give the same for many prices at once, (N,)."""
        price = prices_ms[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            turning = (price - self.linear) / (2.0 * self.quadratic)
        turning = np.where(np.isfinite(turning), turning, self.knots[:-1])
        least = np.full(len(prices_ms), np.inf)
        for at in (np.clip(turning, self.knots[:-1], self.knots[1:]), self.knots[:-1], self.knots[1:]):
            values = self.constant + (self.linear - price) * at + self.quadratic * at * at
            least = np.minimum(least, values.min(axis=1))
        return np.asarray(least, dtype=np.float64)

    def cut(self, at: float) -> "LoadCost":
        """Give the same with a knot there, between 0 and 1; as it is where that is one already."""
        if at <= 0.0 or at >= 1.0 or at in self.knots:
            return self
        i = int(np.searchsorted(self.knots, at))
        parts = (np.insert(values, i, values[i - 1]) for values in (self.constant, self.linear, self.quadratic))
        return LoadCost(np.insert(self.knots, i, at), *parts)

    def _piece(self, u: Floats) -> npt.NDArray[np.intp]:
        return np.clip(np.searchsorted(self.knots, u, side="right") - 1, 0, len(self.linear) - 1)


FREE = LoadCost(np.array([0.0, 1.0]), np.zeros(1), np.zeros(1), np.zeros(1))
"""An engine whose latency counts for nothing: the program then minimises the network alone, within capacity."""


def load_cost(profile: LatencyProfile) -> LoadCost:
    """Give the cost of loading an engine with this profile.

    Args:
        profile: knots may stop short of 1; the last slope then goes on to 1, unless it falls. Before the first knot it
            is constant.
    """
    knots = np.array(sorted({0.0, *(k for k in profile.load_knots if 0.0 < k < 1.0), 1.0}))
    ttft_ms, tbot_ms = latency_ms(profile, knots)
    latency = ttft_ms + profile.output_tokens * tbot_ms
    rise = np.diff(latency) / np.diff(knots)
    return LoadCost(knots, np.zeros_like(rise), latency[:-1] - rise * knots[:-1], rise)


def latency_ms(profile: LatencyProfile, u: Floats) -> tuple[Floats, Floats]:
    """Give TTFT and TBOT in ms at loads u, a queue beyond capacity not included."""
    return _curve(profile.load_knots, profile.ttft_s, u) * MS, _curve(profile.load_knots, profile.tbot_s, u) * MS


def _curve(knots: tuple[float, ...], values: tuple[float, ...], u: Floats) -> Floats:
    inside = np.interp(u, knots, values)
    if len(knots) < 2:
        return inside
    # Nobody measured there, and what falls would go on below nothing.
    slope = max((values[-1] - values[-2]) / (knots[-1] - knots[-2]), 0.0)
    return np.where(u > knots[-1], values[-1] + slope * (u - knots[-1]), inside)
