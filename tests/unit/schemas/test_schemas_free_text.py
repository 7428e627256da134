"""Free text of operators' records: bounded, sendable, and an address is one line."""

import dataclasses
import math

import pytest

from headrace.schemas.check_fleet import check_engine, check_profile
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.free_text import MAX_TEXT, line_problem, text_problem

HALF = "\ud800"
ENGINE = EngineSpec("engine-a", "eu", ("m",), (), (), "p", None, None, drain=False)
PROFILE = LatencyProfile("p", "", "", 10.0, 100.0, (0.0, 1.0), (0.1, 0.2), (0.01, 0.02), 0.0, 1.0, None, None, "")


def test_text_in_any_script_is_free_text() -> None:
    assert text_problem("source", "Prüfstand 12,\n測定 \U0001f600") is None
    assert line_problem("address", "http://engine-ä:8000") is None


def test_half_a_surrogate_pair_is_told_with_name_and_value() -> None:
    told = r"source is 'a\ud800'; '\ud800' at character 1 is half a character and cannot be sent"
    assert text_problem("source", "a" + HALF) == told


def test_text_is_bounded() -> None:
    assert text_problem("source", "x" * MAX_TEXT) is None
    assert text_problem("source", "x" * (MAX_TEXT + 1)) == "source has 2001 characters; at most 2000"


@pytest.mark.parametrize("address", ["a\nb", "a\x00", HALF, "x" * (MAX_TEXT + 1)])
def test_an_address_that_is_no_line_of_text_is_a_problem_of_the_engine(address: str) -> None:
    (problem,) = check_engine(dataclasses.replace(ENGINE, address=address))
    assert problem.startswith("address ")
    problem.encode()


@pytest.mark.parametrize("field", ["hardware", "model", "source"])
def test_a_profiles_texts_must_be_sendable(field: str) -> None:
    (problem,) = check_profile(dataclasses.replace(PROFILE, **{field: HALF}))
    assert problem.startswith(f"{field} is ")


@pytest.mark.parametrize("field", ["fit_error_median", "fit_error_p90", "left_out_error_median", "left_out_error_p90"])
@pytest.mark.parametrize("value", [math.inf, math.nan, -0.1])
def test_a_fits_errors_are_finite_and_not_negative(field: str, value: float) -> None:
    (problem,) = check_profile(dataclasses.replace(PROFILE, **{field: value}))
    assert problem.startswith(f"{field} is {value}")
