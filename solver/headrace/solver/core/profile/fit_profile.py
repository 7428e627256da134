"""Measured stages -> a latency profile: isotonic regression, then the lower convex envelope, of TTFT and TBOT.

    wall     = highest completed rate of any stage, saturated ones included       (RPS: the capacity)
    load     = completed rate / wall, of the stages that are not saturated
    TBOT     = (e2e - TTFT) / output tokens, so that TTFT + output tokens x TBOT is the end-to-end time as measured
    TTFT, TBOT <- pool adjacent violators (never falling) <- lower convex hull (latency rises ever faster with load)

A stage is saturated where it completed less than 95 % of what was offered: its latency is that of a growing queue, and
says more about how long the test ran than about the engine. Below the first load the curves are constant; from the last
load to the wall they go on with the last slope, which `measured_to_load` flags as extrapolated.

TBOT is taken from end-to-end times and not from a tool's own inter-token field, because a tool that counts network
chunks instead of tokens halves it (the H100 set of inference-perf: p50 of 0.04 ms beside a p90 of 9 ms).

Sources: Barlow et al., Statistical Inference under Order Restrictions (1972), for isotonic regression; Andrew's
monotone chain (1979) for the hull.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import LatencyProfile

SATURATED_BELOW = 0.95
"""A stage that completed less than this share of what it was offered is a growing queue."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LoadStage:
    """Means over one stage of an open-loop load test of one replica."""

    offered_rps: float
    completed_rps: float
    output_tokens: float
    ttft_s: float
    e2e_s: float

    @property
    def saturated(self) -> bool:
        """Whether more came in than was served."""
        return self.completed_rps < SATURATED_BELOW * self.offered_rps


@dataclass(frozen=True, slots=True)
class ProfileLabels:
    """What a profile is called and where it comes from."""

    profile_id: str
    hardware: str
    model: str
    source: str


def fit_profile(labels: ProfileLabels, stages: Sequence[LoadStage]) -> LatencyProfile:
    """Fit a profile to load stages, in any order.

    Raises:
        InvalidInputError: a number is not finite or not positive, or fewer than two stages are below saturation.
    """
    problems = [
        f"stages[{i}].{name} is {value}; a finite number above 0"
        for i, stage in enumerate(stages)
        for name in ("offered_rps", "completed_rps", "output_tokens", "ttft_s", "e2e_s")
        if not (math.isfinite(value := getattr(stage, name)) and value > 0)
    ]
    problems += [
        f"stages[{i}].e2e_s is {stage.e2e_s}, below its ttft_s {stage.ttft_s}"
        for i, stage in enumerate(stages)
        if stage.e2e_s < stage.ttft_s
    ]
    steady = sorted((s for s in stages if not s.saturated), key=lambda s: s.completed_rps)
    if len({s.completed_rps for s in steady}) < 2:
        problems.append(f"stages: {len(steady)} are below saturation at distinct rates; at least 2")
    if problems:
        raise InvalidInputError(f"profile {labels.profile_id}", tuple(problems))
    return _fit(labels, steady, max(s.completed_rps for s in stages))


def _fit(labels: ProfileLabels, steady: Sequence[LoadStage], wall_rps: float) -> LatencyProfile:
    loads = np.array([s.completed_rps for s in steady]) / wall_rps
    tokens = math.fsum(s.output_tokens for s in steady) / len(steady)
    ttft = np.array([s.ttft_s for s in steady])
    e2e = np.array([s.e2e_s for s in steady])
    knots = np.unique(np.concatenate(([0.0], loads, [1.0])))
    ttft_fit = _curve(loads, ttft, knots)
    tbot_fit = _curve(loads, (e2e - ttft) / tokens, knots)
    fitted = np.interp(loads, knots, ttft_fit + tokens * tbot_fit)
    errors = np.abs(fitted - e2e) / e2e
    return LatencyProfile(
        profile_id=labels.profile_id,
        hardware=labels.hardware,
        model=labels.model,
        capacity_rps=wall_rps,
        output_tokens=tokens,
        load_knots=tuple(knots.tolist()),
        ttft_s=tuple(ttft_fit.tolist()),
        tbot_s=tuple(tbot_fit.tolist()),
        measured_from_load=float(loads[0]),
        measured_to_load=float(loads[-1]),
        fit_error_median=float(np.median(errors)),
        fit_error_p90=float(np.quantile(errors, 0.9)),
        source=labels.source,
    )


def _curve(loads: Floats, values: Floats, knots: Floats) -> Floats:
    hull_x, hull_y = lower_hull(loads, isotonic(values))
    slope = 0.0 if len(hull_x) < 2 else float((hull_y[-1] - hull_y[-2]) / (hull_x[-1] - hull_x[-2]))
    inside = np.interp(knots, hull_x, hull_y)
    return np.where(knots > hull_x[-1], hull_y[-1] + slope * (knots - hull_x[-1]), inside)


def isotonic(values: Floats) -> Floats:
    """Give the never-falling sequence nearest to `values` in least squares (pool adjacent violators)."""
    means: list[float] = []
    counts: list[int] = []
    for value in values.tolist():
        means.append(value)
        counts.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            count = counts[-2] + counts[-1]
            means[-2:] = [(means[-2] * counts[-2] + means[-1] * counts[-1]) / count]
            counts[-2:] = [count]
    return np.repeat(np.array(means), counts)


def lower_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Give the corners of the lower convex hull of points sorted by x; of equal x the lowest counts."""
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        if hull and hull[-1][0] == point[0]:
            if hull[-1][1] <= point[1]:
                continue
            hull.pop()
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return np.array([p[0] for p in hull]), np.array([p[1] for p in hull])


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Say whether b lies on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])
