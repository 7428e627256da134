"""Load tests -> latency profiles, each with how well it fits, or the reasons why it does not.

    stages of one load are averaged (averaged.py)
    capacity = the wall (wall.py)                        load = completed rate / capacity, of the stages before it
    TTFT, TBOT <- convex regression (convex_fit.py) on those stages and on points of the pool's shape (pooled_shape.py)
    error      = |fitted - measured| / measured end-to-end time at the measured rate: median and p90 over the stages
    left out   = the same for each stage with the fit, and its pool's shape, made without it

Refused, not published: a fit whose p90 error is above 25 %. Such stages do not lie on one convex curve: other work
beside them, several configurations in one file, a client that was the bottleneck. Errors left out refuse nothing: three
stages may lie on a curve that two of them do not tell.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.profile.averaged import averaged
from headrace.solver.core.profile.convex_fit import TINY, ConvexFit, Points, fit_convex
from headrace.solver.core.profile.load_test import LoadStage, LoadTest, ProfileLabels, stage_problems
from headrace.solver.core.profile.misfit import misfit_words
from headrace.solver.core.profile.pooled_shape import Shape, filled, shape_losses, shape_of
from headrace.solver.core.profile.wall import Wall, find_wall

Floats = npt.NDArray[np.float64]

POOR_FIT = 0.25
"""Relative error above which a profile would mislead more than it informs."""
NONE = np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class FittedProfile:
    """A profile that can be published, and what it was made from.

    `errors` and `left_out` hold one relative error per steady stage, fitted / measured - 1; `left_out` is empty below
    three stages. `wall.reached` False: the capacity is only the highest rate seen.
    """

    profile: LatencyProfile
    wall: Wall
    shape: Shape
    errors: Floats
    left_out: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RefusedProfile:
    """A load test that gives no profile, and every reason. Its errors, empty where nothing was fitted."""

    labels: ProfileLabels
    reasons: tuple[str, ...]
    errors: Floats
    left_out: Floats


def fit_profile(labels: ProfileLabels, stages: Sequence[LoadStage]) -> LatencyProfile:
    """Fit one profile to the stages of one engine, in any order, by the shape of a pool of its own.

    Raises:
        InvalidInputError: with every reason why `fit_profiles` refuses it.
    """
    (outcome,) = fit_profiles((LoadTest(labels, tuple(stages), ""),))
    if isinstance(outcome, RefusedProfile):
        raise InvalidInputError(f"profile {labels.profile_id}", outcome.reasons)
    return outcome.profile


def fit_profiles(
    tests: Sequence[LoadTest], wanted: Collection[str] | None = None
) -> tuple[FittedProfile | RefusedProfile, ...]:
    """Fit every test, in order; those of one pool share its shape. A test that cannot be used is refused by itself.

    `wanted` names the profile ids to answer for, where the others are there for the sake of the pools only.
    """
    curves = [_curve(test) for test in tests]
    losses = [() if isinstance(c, RefusedProfile) else (shape_losses(c.points, c.wall.capacity_rps),) for c in curves]
    outcomes: list[FittedProfile | RefusedProfile] = []
    for i, curve in enumerate(curves):
        if wanted is not None and curve.labels.profile_id not in wanted:
            continue
        if isinstance(curve, RefusedProfile):
            outcomes.append(curve)
            continue
        others = [loss for j, own in enumerate(losses) for loss in own if j != i and tests[j].pool == tests[i].pool]
        outcomes.append(_fit(curve, others))
    return tuple(outcomes)


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    labels: ProfileLabels
    wall: Wall
    points: Points


def _curve(test: LoadTest) -> _Curve | RefusedProfile:
    problems = list(stage_problems(test.stages))
    if not problems:
        wall = find_wall(averaged(test.stages))
        rates = {stage.completed_rps for stage in wall.steady}
        if len(rates) >= 2:
            return _Curve(test.labels, wall, steady_points(wall))
        problems.append(f"{len(rates)} distinct rates below saturation, of {len(test.stages)} stages; at least 2")
    return RefusedProfile(test.labels, tuple(problems), NONE, NONE)


def steady_points(wall: Wall) -> Points:
    """Give the stages before a wall as points of load."""
    stages = wall.steady
    tokens = np.array([s.output_tokens for s in stages])
    e2e = np.array([s.e2e_s for s in stages])
    ttft = np.maximum(np.array([s.ttft_s for s in stages]), TINY * e2e)
    tbot = np.maximum(np.array([s.tbot_s for s in stages]), TINY * e2e / tokens)
    load = np.array([s.completed_rps for s in stages]) / wall.capacity_rps
    return Points(load, ttft, tbot, tokens, np.ones(len(stages)))


def _fit(curve: _Curve, others: Sequence[Floats]) -> FittedProfile | RefusedProfile:
    points, capacity_rps = curve.points, curve.wall.capacity_rps
    shape = shape_of([*others, shape_losses(points, capacity_rps)])
    fit = regress(points, capacity_rps, shape)
    errors = relative_errors(fit, points)
    left_out = _left_out(points, capacity_rps, others) if len(points.load) > 2 else NONE
    reasons = _reasons(curve.wall.steady, errors)
    if reasons:
        reasons = (*reasons, *misfit_words(points, capacity_rps))
        return RefusedProfile(curve.labels, reasons, errors, left_out)
    return FittedProfile(_record(curve, fit, errors, left_out), curve.wall, shape, errors, left_out)


def regress(points: Points, capacity_rps: float, shape: Shape) -> ConvexFit:
    """Fit points of load, following a pool's shape between and beyond them."""
    return fit_convex(points.joined(filled(points, capacity_rps, shape)))


def relative_errors(fit: ConvexFit, points: Points) -> Floats:
    """Give fitted / measured - 1 of each point's end-to-end time."""
    return (fit.ttft_s(points.load) + points.tokens * fit.tbot_s(points.load)) / points.e2e_s - 1.0


def _left_out(points: Points, capacity_rps: float, others: Sequence[Floats]) -> Floats:
    errors = np.zeros(len(points.load))
    for i in range(len(errors)):
        rest = points.without(i)
        shape = shape_of([*others, shape_losses(rest, capacity_rps)])
        errors[i] = relative_errors(regress(rest, capacity_rps, shape), points)[i]
    return errors


def _reasons(stages: Sequence[LoadStage], errors: Floats) -> tuple[str, ...]:
    size = np.abs(errors)
    p90 = float(np.quantile(size, 0.9))
    if p90 <= POOR_FIT:
        return ()
    worst = np.argsort(-size, kind="stable")[:3].tolist()
    return (
        f"the p90 error is {p90:.0%}; at most {POOR_FIT:.0%}",
        *(
            f"{stages[i].place or 'a stage'} at {stages[i].completed_rps:g} rps: {stages[i].e2e_s:.4g} s measured, "
            f"{stages[i].e2e_s * (1.0 + errors[i]):.4g} s fitted"
            for i in worst
        ),
    )


def _record(curve: _Curve, fit: ConvexFit, errors: Floats, left_out: Floats) -> LatencyProfile:
    corners = fit.corners()
    knots = np.array([0.0, *corners[(corners > 0.0) & (corners < 1.0)].tolist(), 1.0])
    size, out = np.abs(errors), np.abs(left_out)
    return LatencyProfile(
        profile_id=curve.labels.profile_id,
        hardware=curve.labels.hardware,
        model=curve.labels.model,
        capacity_rps=curve.wall.capacity_rps,
        output_tokens=float(curve.points.tokens.mean()),
        load_knots=tuple(knots.tolist()),
        ttft_s=tuple(fit.ttft_s(knots).tolist()),
        tbot_s=tuple(fit.tbot_s(knots).tolist()),
        measured_from_load=float(curve.points.load.min()),
        measured_to_load=float(curve.points.load.max()),
        fit_error_median=float(np.median(size)),
        fit_error_p90=float(np.quantile(size, 0.9)),
        source=curve.labels.source,
        left_out_error_median=float(np.median(out)) if len(out) else None,
        left_out_error_p90=float(np.quantile(out, 0.9)) if len(out) else None,
    )
