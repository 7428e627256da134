"""The shape of latency against load that engines of one hardware, model and configuration share.

    time(n) = a + c n^p         n requests in service (rate x e2e, by Little's law), a and c >= 0

The powers p of TTFT and of TBOT are the pool's, found on a grid as least in the sum of its curves' losses; a and c are
each engine's own, so the shape is scaled in rate and in time. p = 1 is the hyperbola a / (1 - u) of a batch whose step
grows by the same time for each request in it. A weak pull towards 0.8 decides where data do not: two points fit any.

Between its measurements an engine follows its pool's shape, bent in log n to pass through them, and beyond them the
shape alone: `filled` gives points of it, of little weight, for the convex regression to follow where nothing was
measured. Points that stand for nothing measured are what `measured_to_load` flags.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headrace.solver.core.profile.convex_fit import Points, huber_nnls

Floats = npt.NDArray[np.float64]

POWERS = np.array([0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.6, 2.0])
USUAL_POWER = 0.8
PULL = 0.02
"""Loss of a power that is e times the usual one: that of one point that is off by 0.42."""
FILL_WEIGHT = 0.15
FILL_STEP = math.log(2.0) / 4.0
"""Between measured points, the most from one point to the next in log n: four steps where n doubles."""
FILL_BEYOND = 4
"""Points on either side of all that was measured."""
ROUNDING = 1e-9
BEYOND = (2.0, 1.0)
"""How far the shape is followed below and above what was measured, in log n."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The powers of TTFT and TBOT, and how many curves they were found from."""

    ttft_power: float
    tbot_power: float
    curves: int


def shape_losses(points: Points, capacity_rps: float) -> Floats:
    """Give the loss of each of the P powers for TTFT and for TBOT, (2, P): what a curve says on its pool's shape."""
    in_service = points.load * capacity_rps * points.e2e_s
    return np.array([[_scaled(in_service, y, p)[1] for p in POWERS.tolist()] for y in (points.ttft_s, points.tbot_s)])


def shape_of(losses: Sequence[Floats]) -> Shape:
    """Give the shape that a pool of curves agrees on; without any, the usual one."""
    total = np.sum(losses, axis=0) if losses else np.zeros((2, len(POWERS)))
    total = total + PULL * np.log(POWERS / USUAL_POWER) ** 2
    ttft, tbot = POWERS[np.argmin(total, axis=1)].tolist()
    return Shape(ttft, tbot, len(losses))


def filled(points: Points, capacity_rps: float, shape: Shape) -> Points:
    """Give points of the pool's shape, scaled to this engine, between its measurements and on either side of them."""
    in_service = points.load * capacity_rps * points.e2e_s
    order = np.argsort(in_service, kind="stable")
    ends: list[float] = np.log(in_service[order]).tolist()
    below, above = BEYOND
    parts: list[Floats] = [np.linspace(ends[0] - below, ends[0], FILL_BEYOND + 1)[:-1]]
    # A gap's points weigh as much together, however wide it is, as the three of a doubling.
    weights = [np.full(FILL_BEYOND, FILL_WEIGHT)]
    for start, end in pairwise(ends):
        between = math.ceil((end - start) / FILL_STEP - ROUNDING)
        inner = max(0, between - 1)
        parts.append(np.linspace(start, end, inner + 2)[1:-1])
        weights.append(np.full(inner, FILL_WEIGHT * math.sqrt(3.0 / max(3, inner))))
    parts.append(np.linspace(ends[-1], ends[-1] + above, FILL_BEYOND + 1)[1:])
    weights.append(np.full(FILL_BEYOND, FILL_WEIGHT))
    at = np.exp(np.concatenate(parts))
    ttft_s = _through(in_service[order], points.ttft_s[order], shape.ttft_power, at)
    tbot_s = _through(in_service[order], points.tbot_s[order], shape.tbot_power, at)
    tokens = np.full(len(at), float(points.tokens.mean()))
    load = at / (ttft_s + tokens * tbot_s) / capacity_rps
    return Points(load, ttft_s, tbot_s, tokens, np.concatenate(weights))


def _scaled(in_service: Floats, times: Floats, power: float) -> tuple[tuple[float, float], float]:
    """Scale the shape to an engine: ((a, c per (n / highest n)^p), loss)."""
    basis = np.column_stack((np.ones(len(times)), (in_service / in_service.max()) ** power))
    (a, c), loss = huber_nnls(basis / times[:, None], np.ones(len(times)))
    return (float(a), float(c)), loss


def _through(in_service: Floats, times: Floats, power: float, at: Floats) -> Floats:
    (a, c), _ = _scaled(in_service, times, power)
    highest = in_service.max()

    def model(n: Floats) -> Floats:
        time: Floats = a + c * (n / highest) ** power
        return time

    bent = np.interp(np.log(at), np.log(in_service), np.log(times / model(in_service)))
    return model(at) * np.exp(bent)
