"""How much longer or shorter than the mean a request's answer is: a factor with mean 1, as equally likely points.

    latency of a request = network + wait + TTFT + factor x tokens x TBOT

A profile holds means. Where history holds quantiles of the end-to-end time, their pooled shape gives the factors
(`spread_of`); else the factors are those of a log-normal with the spread of the Azure conversation trace, which the
result says. Pure chance of lengths: the same for every variant, so it moves no verdict, only the tails that are told.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from headrace.replay.score.latency_mass import CELLS, MIDDLES_S, Floats

POINTS = 40
AZURE_SIGMA = 0.82
"""Of log output tokens, Azure LLM inference trace 2023 (conversation): divided by its local mean."""


@dataclass(frozen=True, slots=True)
class LengthSpread:
    """Factors of equal probability, rising, mean 1; and where they are from."""

    factors: tuple[float, ...]
    source: str


def assumed_spread() -> LengthSpread:
    """Give the spread that stands where history tells none."""
    normal = NormalDist()
    factors = [math.exp(AZURE_SIGMA * normal.inv_cdf((k + 0.5) / POINTS)) for k in range(POINTS)]
    return LengthSpread(_mean_one(factors), "assumed: log-normal, spread of the Azure conversation trace")


def equal_lengths() -> LengthSpread:
    """Give no spread at all: every answer is of the mean length."""
    return LengthSpread((1.0,), "every answer of the mean length")


def spread_of_values(values: Floats, source: str) -> LengthSpread:
    """Give the spread of known lengths, such as a trace's output tokens; of none, no spread."""
    if values.size == 0 or values.mean() <= 0.0:
        return equal_lengths()
    ordered = np.sort(values)
    at = (np.arange(POINTS) + 0.5) / POINTS
    return LengthSpread(_mean_one(np.quantile(ordered, at).tolist()), source)


def spread_of_mass(mass: Floats, source: str) -> LengthSpread:
    """Give the spread of a mass of relative latencies (latency over its mean, counted as if seconds)."""
    total = mass.sum()
    if total <= 0.0:
        return assumed_spread()
    share = np.cumsum(mass) / total
    cells = np.searchsorted(share, (np.arange(POINTS) + 0.5) / POINTS)
    return LengthSpread(_mean_one(MIDDLES_S[np.minimum(cells, CELLS - 1)].tolist()), source)


def _mean_one(factors: list[float]) -> tuple[float, ...]:
    mean = sum(factors) / len(factors)
    return tuple(factor / mean for factor in factors)
