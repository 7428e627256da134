"""What operators' records must be: every problem at once, each with its value, bound and field."""

from dataclasses import replace

import pytest

from headrace.schemas.check_fleet import check_engine, check_profile
from headrace.schemas.fleet import EngineSpec, LatencyProfile

SPEC = EngineSpec("e1", "site-a", ("m",), ("json",), ("eu",), "p", 100.0, None, drain=False)
PROFILE = LatencyProfile(
    "p", "gpu", "m", 50.0, 100.0, (0.0, 0.5, 1.0), (0.1, 0.2, 0.8), (0.01, 0.01, 0.03), 0.1, 0.9, None, None, "by hand"
)


def test_a_sound_engine_and_a_sound_profile_have_no_problems() -> None:
    assert check_engine(SPEC) == ()
    assert check_engine(replace(SPEC, capacity_rps_per_replica=None, models=())) == ()
    assert check_profile(PROFILE) == ()


def test_every_problem_of_an_engine_is_named_at_once() -> None:
    problems = check_engine(replace(SPEC, site="site a", models=("m", "m|n"), capacity_rps_per_replica=float("nan")))
    assert [problem.split(" is ")[0] for problem in problems] == ["site", "models[1]", "capacity_rps_per_replica"]
    assert problems[2] == "capacity_rps_per_replica is nan; above 0 and at most 1e+09"


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        (replace(PROFILE, capacity_rps=0.0), "capacity_rps is 0.0; above 0 and at most 1e+09"),
        (replace(PROFILE, output_tokens=-1.0), "output_tokens is -1.0; 0 to 1e+09"),
        (replace(PROFILE, load_knots=(0.0, 0.5, 0.5)), "load_knots do not rise from 0 to 1"),
        (replace(PROFILE, load_knots=(0.1, 0.5, 1.0)), "load_knots do not rise from 0 to 1"),
        (
            replace(PROFILE, load_knots=(0.0, 5e-324, 1.0)),
            "load_knots have two that are 4.94066e-324 apart; at least 1e-09",
        ),
        (replace(PROFILE, ttft_s=(0.1, float("inf"), 0.8)), "ttft_s[1] is inf; 0 to 1e+06"),
        (replace(PROFILE, tbot_s=(0.01, 0.02)), "tbot_s has 2 entries; one for each of 3 load_knots"),
        (replace(PROFILE, measured_to_load=-0.1), "measured_to_load is -0.1; 0 to 1e+09"),
    ],
)
def test_a_curve_that_cannot_be_priced_is_refused_by_name(profile: LatencyProfile, sentence: str) -> None:
    assert check_profile(profile) == (sentence,)


def test_a_curve_of_one_knot_is_no_curve() -> None:
    problems = check_profile(replace(PROFILE, load_knots=(0.0,), ttft_s=(0.1,), tbot_s=(0.01,)))
    assert problems == ("load_knots has 1 entries; 2 to 4096",)


def test_lists_have_a_bound() -> None:
    problems = check_engine(replace(SPEC, models=tuple(f"m{i}" for i in range(1025))))
    assert problems == ("models has 1025 entries; at most 1024",)
