"""The cost of a load that does not stand still: its mean over how the load swings about what is planned.

    L_s(u) = E[L(u (1 + s z))]      z standard normal, by Gauss-Hermite quadrature of three nodes: -sqrt 3, 0, sqrt 3

A curve that bends upwards costs more about a point than at it (Jensen), the more so the nearer the wall; so a plan
keeps room where the curve is steep, and none where it is flat. Beyond the wall a queue grows for as long as a swing
lasts and nobody reacts: u - 1 of it for `SWING_S` seconds stand (u - 1) SWING_S / 2 on average, by Little's law.
The mean of quadratic pieces is of quadratic pieces, so what follows is as exact as without. Three nodes give the mean
of polynomials to the fifth degree exactly (Abramowitz and Stegun, 25.4.46).
"""

import numpy as np

from headrace.solver.core.profile.load_cost import MS, LoadCost

_NODES = ((-(3.0**0.5), 1.0 / 6.0), (0.0, 2.0 / 3.0), (3.0**0.5, 1.0 / 6.0))
"""Where a standard normal is looked at, and how much each place counts."""
SWING_S = 2.0
"""How long a load beyond the wall lasts: a burst of a trace, not a change of demand, which the program follows."""


def spread_over(cost: LoadCost, spread: float) -> LoadCost:
    """Give the mean of a cost over a load's swings; it rises from 0 with the same slope.

    Args:
        cost: L, ms.
        spread: standard deviation of the load by the load, 0 or more; up to 0.5 no node is below 0.
    """
    factors = [(1.0 + spread * z, share) for z, share in _NODES]
    inner = {float(k) / factor for k in cost.knots[1:] for factor, _ in factors}
    knots = np.array(sorted({0.0, *(k for k in inner if k < 1.0), 1.0}))
    middle = (knots[:-1] + knots[1:]) / 2.0
    wall = np.ones(1)
    at_wall, slope = float(cost.value(wall)[0]), float(cost.slope(wall)[0]) + SWING_S / 2.0 * MS
    constant, linear, quadratic = (np.zeros_like(middle) for _ in range(3))
    for factor, share in factors:
        at = middle * factor
        i = np.clip(np.searchsorted(cost.knots, at, side="right") - 1, 0, len(cost.linear) - 1)
        within = at <= 1.0
        constant += share * np.where(within, cost.constant[i], at_wall - slope)
        linear += share * factor * np.where(within, cost.linear[i], slope)
        quadratic += share * factor * factor * np.where(within, cost.quadratic[i], 0.0)
    return LoadCost(knots, constant, linear, quadratic)
