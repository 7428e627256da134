"""Records of routed requests: what a sound one is, and a session's hash as a signed number and back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.routed import RoutedOutcome, RoutedRequest, RoutedRequests, check_routed, signed

ONE = RoutedRequest(1_000, -5, "a", "SLOT", False, 1, 2, 0.5, RoutedOutcome.OK, 0.1, 0.9)  # noqa: FBT003 - a row
SOUND = RoutedRequests("A", "m", "default", "gateway-1", 2_000, 0.25, (ONE,))


def test_a_sound_record_has_no_problem_and_the_key_of_its_route() -> None:
    assert check_routed(SOUND) == ()
    assert SOUND.key == b"A|m|default"


def test_every_problem_is_told_with_its_value_and_bound() -> None:
    bad = replace(ONE, engine_id="a|b", sent_ms=-1, propensity=1.5, ttft_s=-0.1, e2e_s=float("nan"))
    told = check_routed(replace(SOUND, cluster="", share=0.0, requests=(ONE, bad)))
    assert [problem.split(" is ")[0] for problem in told] == [
        "cluster",
        "share",
        "requests[1].engine_id",
        "requests[1].sent_ms",
        "requests[1].propensity",
        "requests[1].ttft_s",
        "requests[1].e2e_s",
    ]


@given(st.integers(0, 2**64 - 1))
def test_a_point_comes_back_from_its_signed_number(point: int) -> None:
    number = signed(point)
    assert -(2**63) <= number < 2**63
    assert replace(ONE, session=number).point == point


@pytest.mark.parametrize("more", [{"propensity": None}, {"ttft_s": None, "e2e_s": None}, {"session": None}])
def test_what_was_not_measured_is_no_problem(more: dict[str, None]) -> None:
    assert check_routed(replace(SOUND, requests=(replace(ONE, **more),))) == ()
