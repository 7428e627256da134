"""Load tests to profiles: what is fitted, what is left out, what is refused."""

import numpy as np
import pytest

from headrace.infra.load_tests.csv_table import read_csv
from headrace.infra.load_tests.forms import load_tests
from headrace.schemas.check_fleet import check_profile
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.problem_file.problem_json import parse_problem
from headrace.solver.core.profile.convex_fit import Points, fit_convex, huber_nnls
from headrace.solver.core.profile.fit_profile import FittedProfile, RefusedProfile, fit_profile, fit_profiles
from headrace.solver.core.profile.load_cost import latency_ms
from headrace.solver.core.profile.load_test import MAX_STAGES, LoadStage, LoadTest, ProfileLabels, closed_loop
from headrace.solver.core.profile.pooled_shape import USUAL_POWER, Shape, filled, shape_losses, shape_of
from load_tests import LABELS, batch_engine, open_stage


def e2e_s(p: LatencyProfile, rps: float) -> float:
    ttft, tbot = latency_ms(p, np.array([rps / p.capacity_rps]))
    return float(ttft[0] + p.output_tokens * tbot[0]) / 1000


def fitted(outcome: FittedProfile | RefusedProfile) -> FittedProfile:
    assert isinstance(outcome, FittedProfile)
    return outcome


def points(load: list[float], ttft: list[float], tbot: list[float], tokens: float = 10.0) -> Points:
    n = len(load)
    return Points(np.array(load), np.array(ttft), np.array(tbot), np.full(n, tokens), np.ones(n))


def test_a_batch_engine_is_known_at_every_rate_from_five_stages() -> None:
    p = fit_profile(LABELS, batch_engine(5, 10, 30, 90, 190))
    assert p.capacity_rps == pytest.approx(9.5)
    # Measured: 2 s at 5 rps, 10 s at 9. Never measured: 20 in service take 3 s, at 6.667 rps; 60 take 7 s, at 8.571.
    assert e2e_s(p, 5.0) == pytest.approx(2.0, rel=0.005)
    assert e2e_s(p, 9.0) == pytest.approx(10.0, rel=0.005)
    assert e2e_s(p, 20 / 3) == pytest.approx(3.0, rel=0.03)
    assert e2e_s(p, 60 / 7) == pytest.approx(7.0, rel=0.03)
    # A quarter of it is TTFT, by construction.
    ttft, _ = latency_ms(p, np.array([5.0 / 9.5]))
    assert ttft == pytest.approx([500], rel=0.01)
    assert p.fit_error_p90 is not None
    assert p.fit_error_p90 < 0.01
    # At 95 % of the wall's rate a time changes twenty times as fast as a rate: far harder to tell from the others.
    assert p.left_out_error_median is not None
    assert p.left_out_error_median < 0.15


def test_the_range_that_was_measured_is_kept_as_shares_of_capacity() -> None:
    p = fit_profile(
        LABELS, [open_stage(10, 10, 0.1, 0.5), open_stage(50, 50, 0.2, 0.8), open_stage(200, 100, 3.0, 9.0)]
    )
    assert (p.capacity_rps, p.measured_from_load, p.measured_to_load) == (100.0, 0.1, 0.5)
    # (e2e - TTFT) / 10 tokens: 40 and 60 ms; the stage that only queued is in neither.
    ttft, tbot = latency_ms(p, np.array([0.1, 0.5]))
    assert ttft == pytest.approx([100, 200], rel=0.01)
    assert tbot == pytest.approx([40, 60], rel=0.01)
    assert check_profile(p) == ()
    # Two stages: nothing can be left out.
    assert (p.left_out_error_median, p.left_out_error_p90) == (None, None)


def test_noise_that_falls_is_fitted_flat() -> None:
    p = fit_profile(LABELS, [open_stage(10, 10, 0.2, 0.55), open_stage(20, 20, 0.18, 0.5)])
    assert p.ttft_s[0] <= p.ttft_s[-1] <= 0.2
    assert e2e_s(p, 10) == pytest.approx(0.525, rel=0.06)
    assert e2e_s(p, 20) == pytest.approx(0.525, rel=0.06)


def test_a_stage_that_bends_down_is_straightened() -> None:
    line = fit_convex(points([0.25, 0.5, 1.0], [0.1, 0.3, 0.4], [0.01, 0.01, 0.01]))
    ttft = line.ttft_s(np.array([0.0, 0.25, 0.5, 1.0]))
    slopes = np.diff(ttft) / np.array([0.25, 0.25, 0.5])
    assert (np.diff(slopes) >= -1e-9).all()
    assert ttft[2] < 0.3


def test_one_wild_stage_bends_the_rest_by_little() -> None:
    loads = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    ttft, tbot = [0.1] * 9, [0.01] * 9
    wild = [*tbot[:4], 0.03, *tbot[5:]]
    curve = fit_convex(points(loads, ttft, wild))
    assert curve.tbot_s(np.array([0.1, 0.9])) == pytest.approx([0.01, 0.01], rel=0.02)


def test_huber_counts_a_large_residual_by_its_size() -> None:
    # One unknown, told 1 four times and 2 once: least squares say 1.2, Huber (0.05) says 1 + 0.05 / 4.
    solution, loss = huber_nnls(np.ones((5, 1)), np.array([1.0, 1.0, 1.0, 1.0, 2.0]))
    assert solution == pytest.approx([1.0125], abs=1e-4)
    assert loss == pytest.approx(4 * 0.0125**2 / 2 + 0.05 * (0.9875 - 0.025), rel=1e-3)


def test_the_shape_of_a_batch_engine_is_linear_in_what_is_in_service() -> None:
    stages = batch_engine(1, 10, 100, 1000)
    load = [s.completed_rps / 10 for s in stages]
    losses = shape_losses(points(load, [s.ttft_s for s in stages], [s.tbot_s for s in stages]), 10.0)
    shape = shape_of([losses])
    assert (shape.ttft_power, shape.tbot_power, shape.curves) == (1.0, 1.0, 1)
    assert shape_of([]) == Shape(USUAL_POWER, USUAL_POWER, 0)


def test_points_of_the_shape_lie_between_the_measured_ones_and_on_either_side() -> None:
    stages = batch_engine(10, 90)
    measured = points([0.5, 0.9], [s.ttft_s for s in stages], [s.tbot_s for s in stages])
    more = filled(measured, 10.0, Shape(1.0, 1.0, 1))
    in_service = more.load * 10.0 * more.e2e_s
    assert more.e2e_s == pytest.approx(1.0 + in_service / 10.0)
    assert (in_service < 10).sum() == 4
    assert (in_service > 90).sum() == 4
    # From 10 to 90 are log2(9) = 3.17 doublings of four steps each: 13 steps, 12 points.
    assert len(in_service) == 4 + 12 + 4


def test_an_engine_with_two_stages_takes_the_shape_of_its_pool() -> None:
    def load_test(stages: tuple[LoadStage, ...], pool: str, name: str) -> LoadTest:
        return LoadTest(ProfileLabels(name, "gpu", "m", "by hand"), stages, pool)

    rich = load_test(batch_engine(1, 3, 10, 30, 90, 190), "a", "rich")
    poor = batch_engine(3, 190, rate=4.0, time=0.5)
    together = fitted(fit_profiles([rich, load_test(poor, "a", "poor")])[1])
    alone = fitted(fit_profiles([rich, load_test(poor, "b", "poor")])[1])
    assert (together.shape.tbot_power, together.shape.curves) == (1.0, 2)
    assert (alone.shape.tbot_power, alone.shape.curves) == (USUAL_POWER, 1)
    # 30 in service of the reference engine: 7.5 rps and 4 s; this one is 4 times as wide and takes half the time.
    assert e2e_s(together.profile, 30.0) == pytest.approx(2.0, rel=0.03)
    assert abs(e2e_s(alone.profile, 30.0) - 2.0) > abs(e2e_s(together.profile, 30.0) - 2.0)


def test_only_the_wanted_are_answered_for_and_the_others_still_lend_their_shape() -> None:
    tests = [LoadTest(ProfileLabels(n, "g", "m", "s"), batch_engine(1, 10, 90, 190), "pool") for n in ("a", "b", "c")]
    (only,) = fit_profiles(tests, {"b"})
    assert (fitted(only).profile.profile_id, fitted(only).shape.curves) == ("b", 3)


def test_an_answer_of_one_token_has_no_time_between_tokens() -> None:
    p = fit_profile(LABELS, [open_stage(10, 10, 0.1, 0.1, 1.0), open_stage(50, 50, 0.2, 0.2, 1.0)])
    assert e2e_s(p, 50) == pytest.approx(0.2, rel=1e-3)
    assert max(p.tbot_s) < 1e-5


def test_a_poor_fit_is_refused_with_its_worst_stages() -> None:
    falling = [closed_loop(n, 10.0, 0.1, e2e, f"row {n}") for n, e2e in ((8, 8.0), (16, 6.0), (32, 3.0), (64, 2.0))]
    (outcome,) = fit_profiles([LoadTest(LABELS, tuple(falling), "")])
    assert isinstance(outcome, RefusedProfile)
    assert outcome.reasons[0].startswith("the p90 error is ")
    assert outcome.reasons[0].endswith("at most 25%")
    assert any(reason.startswith("row 8 at 1 rps: 8 s measured, ") for reason in outcome.reasons)
    assert np.abs(outcome.errors).max() > 0.25


def test_a_fit_refuses_what_it_cannot_use_and_says_all_of_it() -> None:
    wrong = [open_stage(10, float("nan"), 0.1, 0.5), open_stage(10, 10, 0.5, 0.1), closed_loop(-1, 10, 0.1, 0.0)]
    with pytest.raises(InvalidInputError) as caught:
        fit_profile(LABELS, [*wrong, LoadStage(None, 1.0, 10.0, 0.1, 0.2)])
    assert caught.value.problems == (
        "stages[0]: completed_rps is nan; a finite number above 0",
        "stages[1]: e2e_s is 0.1, below its ttft_s 0.5",
        "stages[2]: concurrency is -1; a finite number above 0",
        "stages[2]: e2e_s is 0.0; a finite number above 0",
        "stages[3]: offered_rps or concurrency, one of them",
    )


def test_a_fit_refuses_what_no_fleet_would_take() -> None:
    with pytest.raises(InvalidInputError) as caught:
        fit_profile(
            LABELS,
            [
                open_stage(1e300, 1e300, 1e300, 1e300),
                open_stage(1.0, 1e-300, 0.1, 0.2),
                LoadStage(1.0, 1.0, 1e-9, 0.1, 1000.1),
            ],
        )
    assert caught.value.problems == (
        "stages[0]: completed_rps is 1e+300; 1e-12 to 1e+09",
        "stages[0]: offered_rps is 1e+300; 1e-12 to 1e+09",
        "stages[0]: ttft_s is 1e+300; 1e-12 to 1e+06",
        "stages[0]: e2e_s is 1e+300; 1e-12 to 1e+06",
        "stages[1]: completed_rps is 1e-300; 1e-12 to 1e+09",
        "stages[2]: (e2e_s - ttft_s) / output_tokens is 1e+12; at most 1e+06",
    )


def test_a_test_with_fewer_than_two_rates_below_saturation_is_refused_and_no_other_with_it() -> None:
    bad = LoadTest(LABELS, (open_stage(10, 10, 0.1, 0.5), open_stage(100, 50, 3.0, 9.0)), "pool")
    good = LoadTest(LABELS, batch_engine(1, 10, 90), "pool")
    refused, kept = fit_profiles([bad, good])
    assert isinstance(refused, RefusedProfile)
    assert refused.reasons == ("1 distinct rates below saturation, of 2 stages; at least 2",)
    assert fitted(kept).shape.curves == 1


def test_a_test_of_too_many_stages_is_refused() -> None:
    (outcome,) = fit_profiles([LoadTest(LABELS, (open_stage(1, 1, 0.1, 0.2),) * (MAX_STAGES + 1), "")])
    assert isinstance(outcome, RefusedProfile)
    assert outcome.reasons == (f"{MAX_STAGES + 1} stages; at most {MAX_STAGES}",)


def test_the_measured_h100_has_its_wall_where_it_completed_no_more_and_its_batch_is_full_there() -> None:
    tests = load_tests(read_csv("inference_perf_h100_llama8b"), {})
    (outcome,) = fit_profiles([test for test in tests if test.name == "vllm"])
    p = fitted(outcome).profile
    assert p.capacity_rps == 101.46
    assert len(fitted(outcome).wall.saturated) == 3
    assert p.fit_error_p90 is not None
    assert p.fit_error_p90 < 0.002
    # The engine was limited to 128 requests in service, which the fit was not told.
    assert p.capacity_rps * e2e_s(p, p.capacity_rps) == pytest.approx(128, rel=0.1)


def test_the_shipped_problem_has_the_latencies_of_the_fit_where_they_were_measured() -> None:
    from importlib import resources

    shipped = resources.files("headrace.infra.problems") / "three-regions.json"
    given = parse_problem(shipped.read_bytes()).problem.profiles["llama-3.1-8b-h100-vllm"]
    tests = load_tests(read_csv("inference_perf_h100_llama8b"), {})
    (outcome,) = fit_profiles([test for test in tests if test.name == "vllm"])
    for rps in (1.017, 31.156, 61.242, 91.357):
        assert e2e_s(given, rps) == pytest.approx(e2e_s(fitted(outcome).profile, rps), rel=0.01)


def test_the_measured_curves_of_one_pool_are_met_within_the_bounds_we_promise() -> None:
    tests = [t for t in load_tests(read_csv("silicon_curves_agg"), {}) if t.pool.startswith("h200_sxm|openai/gpt-oss")]
    assert len(tests) > 5
    outcomes = fit_profiles(tests)
    errors = np.abs(np.concatenate([outcome.errors for outcome in outcomes]))
    left_out = np.abs(np.concatenate([outcome.left_out for outcome in outcomes]))
    assert np.median(errors) <= 0.03
    assert np.quantile(errors, 0.9) <= 0.10
    assert np.median(left_out) <= 0.08
    assert np.quantile(left_out, 0.9) <= 0.25
