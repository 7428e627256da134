"""Whatever was measured, a profile is convex, never falls, and does not depend on units, order or names."""

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headrace.schemas.check_fleet import check_profile
from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.profile.convex_fit import Points, fit_convex
from headrace.solver.core.profile.fit_profile import FittedProfile, fit_profiles
from headrace.solver.core.profile.load_test import LoadStage, LoadTest, closed_loop
from load_tests import LABELS

TIMES = st.floats(0.01, 10.0)
FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


@st.composite
def measured(draw: st.DrawFn) -> tuple[LoadStage, ...]:
    """Three to seven closed-loop stages of an engine that slows down, each off by up to a fifth."""
    count = draw(st.integers(3, 7))
    base, per_request = draw(TIMES), draw(st.floats(0.001, 1.0))
    stages: list[LoadStage] = []
    for i in range(count):
        n = 4.0 * 2**i
        e2e = (base + per_request * n) * draw(st.floats(0.8, 1.2))
        stages.append(closed_loop(n, draw(st.sampled_from([64.0, 256.0])), e2e * draw(st.floats(0.05, 0.5)), e2e))
    return tuple(stages)


def fit(stages: tuple[LoadStage, ...]) -> LatencyProfile:
    (outcome,) = fit_profiles([LoadTest(LABELS, stages, "")])
    assume(isinstance(outcome, FittedProfile))
    assert isinstance(outcome, FittedProfile)
    return outcome.profile


@given(st.lists(st.tuples(st.floats(0.01, 1.5), TIMES, TIMES), min_size=1, max_size=8), st.floats(1, 1000))
@FEW
def test_a_regression_is_convex_and_never_falls_whatever_the_points(
    rows: list[tuple[float, float, float]], tokens: float
) -> None:
    load, ttft, tbot = (np.array(column) for column in zip(*rows, strict=True))
    curve = fit_convex(Points(load, ttft, tbot, np.full(len(rows), tokens), np.ones(len(rows))))
    grid = np.linspace(0, 2, 201)
    for values in (curve.ttft_s(grid), curve.tbot_s(grid)):
        assert (values >= 0).all()
        assert (np.diff(values) >= -1e-9 * values.max()).all()
        assert (np.diff(values, 2) >= -1e-9 * values.max()).all()


@given(measured())
@FEW
def test_a_profile_is_convex_never_falls_and_is_one_that_may_be_published(stages: tuple[LoadStage, ...]) -> None:
    p = fit(stages)
    assert check_profile(p) == ()
    for values in (np.array(p.ttft_s), np.array(p.tbot_s)):
        slopes = np.diff(values) / np.diff(p.load_knots)
        assert (slopes >= 0).all()
        assert (np.diff(slopes) >= -1e-9 * max(1e-12, slopes.max())).all()
    assert p.measured_to_load <= 1.0
    assert p.capacity_rps <= max(s.completed_rps for s in stages)


@given(measured(), st.sampled_from([0.125, 0.5, 4.0, 64.0]), st.sampled_from([0.25, 2.0, 16.0]))
@FEW
def test_rates_and_times_in_other_units_give_the_same_curve_in_those_units(
    stages: tuple[LoadStage, ...], rate: float, time: float
) -> None:
    scaled = tuple(
        replace(
            s,
            completed_rps=s.completed_rps * rate,
            concurrency=(s.concurrency or 0.0) * rate * time,
            ttft_s=s.ttft_s * time,
            e2e_s=s.e2e_s * time,
        )
        for s in stages
    )
    one, other = fit(stages), fit(scaled)
    loads = np.linspace(0, 1, 41)
    assert np.isclose(other.capacity_rps, one.capacity_rps * rate)
    for field in ("ttft_s", "tbot_s"):
        before = np.interp(loads, one.load_knots, getattr(one, field))
        after = np.interp(loads, other.load_knots, getattr(other, field))
        assert np.allclose(after, before * time, rtol=1e-6)
    assert np.isclose(one.fit_error_median or 0.0, other.fit_error_median or 0.0, atol=1e-6)


@given(measured(), st.integers(0, 6))
@FEW
def test_the_order_of_the_stages_says_nothing(stages: tuple[LoadStage, ...], turn: int) -> None:
    assert fit((*stages[turn:], *stages[:turn])[::-1]) == fit(stages)
