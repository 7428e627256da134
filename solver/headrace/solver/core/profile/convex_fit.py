"""Robust regression of TTFT and TBOT on the load, convex and never falling by construction.

    TTFT(u) = b0 + sum b[k] max(0, u - knot[k])      TBOT(u) = c0 + sum c[k] max(0, u - knot[k])      b, c >= 0

Both are found together, least in the relative residuals of TTFT + tokens TBOT (weight 1), TTFT and TBOT (a fifth each),
since what a request waits is the sum. Non-negative least squares, reweighted by Huber's rule: a residual r beyond 5 %
counts like |r|, not like its square, so that one bad stage bends nothing. Every residual is relative and every knot a
measured load: rates or times in other units give the same curve in those units.

Sources: Lawson and Hanson, Solving Least Squares Problems (1974), ch. 23 (scipy.optimize.nnls); Huber, Robust
Statistics (1981).
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls  # type: ignore[import-untyped]  # scipy ships no types

Floats = npt.NDArray[np.float64]

HUBER = 0.05
"""Relative residual from which on a point counts less."""
REWEIGHTINGS = 10
PART_WEIGHT = 0.2
"""Weight of TTFT and of TBOT alone beside their sum."""
KNOTS_APART = 0.005
"""Knots nearer than this share of capacity are one knot: a hinge between two equal loads is noise."""
TINY = 1e-6
"""Least TTFT and TBOT x tokens, as a share of the end-to-end time: an answer of one token has no time between two."""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """n measurements: load (share of capacity), TTFT and TBOT (s), output tokens, and how much each counts."""

    load: Floats
    ttft_s: Floats
    tbot_s: Floats
    tokens: Floats
    weight: Floats

    @property
    def e2e_s(self) -> Floats:
        """End-to-end time of each, seconds."""
        return self.ttft_s + self.tokens * self.tbot_s

    def without(self, hidden: int | list[int]) -> "Points":
        """Give the points but one, or but some."""
        columns = (self.load, self.ttft_s, self.tbot_s, self.tokens, self.weight)
        return Points(*(np.delete(column, hidden) for column in columns))

    def joined(self, other: "Points") -> "Points":
        """Give these points and then the others."""
        return Points(
            np.concatenate((self.load, other.load)),
            np.concatenate((self.ttft_s, other.ttft_s)),
            np.concatenate((self.tbot_s, other.tbot_s)),
            np.concatenate((self.tokens, other.tokens)),
            np.concatenate((self.weight, other.weight)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ConvexFit:
    """Corners of both curves, the first at load 0; the last slope goes on."""

    knots: Floats
    ttft_base: float
    ttft_slopes: Floats
    tbot_base: float
    tbot_slopes: Floats

    def ttft_s(self, load: Floats) -> Floats:
        """Give TTFT at loads of 0 and more, s."""
        return self.ttft_base + _hinges(load, self.knots) @ self.ttft_slopes

    def tbot_s(self, load: Floats) -> Floats:
        """Give TBOT at loads of 0 and more, s."""
        return self.tbot_base + _hinges(load, self.knots) @ self.tbot_slopes

    def corners(self) -> Floats:
        """Give the knots at which either curve bends."""
        return self.knots[(self.ttft_slopes > 0.0) | (self.tbot_slopes > 0.0)]


def fit_convex(points: Points) -> ConvexFit:
    """Fit at least one point; all numbers finite, times above 0."""
    # As many unknowns as points: a hinge at the first load as well would leave the curve before it free.
    knots = _apart(np.concatenate(([0.0], np.sort(points.load)[1:-1])))
    hinges = np.column_stack((np.ones(len(points.load)), _hinges(points.load, knots)))
    none = np.zeros_like(hinges)
    # Columns in units of typical times, so that a TBOT of milliseconds weighs like a TTFT of seconds.
    ttft_unit, tbot_unit = float(np.median(points.ttft_s)), float(np.median(points.tbot_s))
    ttft, tbot = hinges * ttft_unit, hinges * tbot_unit
    rows = np.vstack(
        (np.hstack((ttft, points.tokens[:, None] * tbot)), np.hstack((ttft, none)), np.hstack((none, tbot)))
    )
    measured = np.concatenate((points.e2e_s, points.ttft_s, points.tbot_s))
    part = PART_WEIGHT * points.weight
    weights = np.concatenate((points.weight, part, part)) / measured
    solution, _ = huber_nnls(rows * weights[:, None], measured * weights)
    width = hinges.shape[1]
    b, c = solution[:width] * ttft_unit, solution[width:] * tbot_unit
    return ConvexFit(knots, float(b[0]), b[1:], float(c[0]), c[1:])


def huber_nnls(rows: Floats, target: Floats) -> tuple[Floats, float]:
    """Minimise the sum of Huber's losses of rows x - target over x >= 0: (x, the loss)."""
    factor = np.ones(len(target))
    solution = np.zeros(rows.shape[1])
    residual = np.abs(target)
    for _ in range(REWEIGHTINGS):
        root = np.sqrt(factor)
        solution = cast("Floats", nnls(rows * root[:, None], target * root)[0])
        residual = np.abs(rows @ solution - target)
        before, factor = factor, HUBER / np.maximum(residual, HUBER)
        if np.allclose(factor, before, rtol=0.0, atol=1e-6):
            break
    loss = np.where(residual <= HUBER, residual * residual / 2.0, HUBER * (residual - HUBER / 2.0))
    return solution, float(loss.sum())


def _hinges(load: Floats, knots: Floats) -> Floats:
    return np.maximum(load[:, None] - knots[None, :], 0.0)


def _apart(knots: Floats) -> Floats:
    kept = [float(knots[0])]
    for knot in knots[1:].tolist():
        if knot - kept[-1] > KNOTS_APART:
            kept.append(knot)
    return np.array(kept)
