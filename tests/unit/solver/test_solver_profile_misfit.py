"""Times that fall as load grows, or rise ever less, are told with where it shows, fitted or refused; others are not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.solver.core.profile.convex_fit import Points
from headrace.solver.core.profile.fit_profile import FittedProfile, RefusedProfile, fit_profiles
from headrace.solver.core.profile.load_test import LoadTest
from headrace.solver.core.profile.misfit import LEAST, misfit_words, misfits
from load_tests import LABELS, open_stage

LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)
RISING = (0.02, 0.021, 0.023, 0.027, 0.04)
NEAREST = "the nearest curve that rises ever more, as the fitted one does, is"
ASKED = "off on average: are these the loads of these rows?"


def points(ttft_s: tuple[float, ...], tbot_s: tuple[float, ...] = RISING, tokens: float = 100.0) -> Points:
    n = len(ttft_s)
    return Points(np.array(LOADS[:n]), np.array(ttft_s), np.array(tbot_s[:n]), np.full(n, tokens), np.ones(n))


def test_a_part_that_falls_with_load_is_told_by_the_two_stages_between_which_it_falls_most() -> None:
    made = points((0.4, 0.3, 0.25, 0.22, 0.2))
    (found,) = misfits(made)
    assert (found.part, found.falls, found.at) == ("TTFT", True, ((0.1, 0.4), (0.9, 0.2)))
    # The best that rises is level, near 0.25 s: off by 37, 17, 0, 14 and 25 %.
    assert found.size == pytest.approx(0.19, abs=0.02)
    (said,) = misfit_words(made, 20.0)
    assert said == f"TTFT falls as load grows, from 400 ms at 2 rps to 200 ms at 18 rps; {NEAREST} 19% {ASKED}"


def test_a_part_that_rises_ever_less_is_told_by_the_stage_highest_above_the_line_of_two_others() -> None:
    made = points((0.1, 0.3, 0.36, 0.38, 0.4))
    (found,) = misfits(made)
    assert (found.part, found.falls) == ("TTFT", False)
    # Of the line from 100 to 400 ms, 175 ms at 0.3: 300 are 71 % above it.
    assert found.at == ((0.3, 0.3), (0.1, 0.1), (0.9, 0.4))
    (said,) = misfit_words(made, 20.0)
    rises = "TTFT rises ever less: 300 ms at 6 rps is 71% above the line from 100 ms at 2 rps to 400 ms at 18 rps"
    assert said == f"{rises}; {NEAREST} {found.size:.0%} {ASKED}"


def test_each_part_is_judged_by_itself_though_the_sum_of_both_rises() -> None:
    tbot = (0.02, 0.03, 0.05, 0.09, 0.2)
    assert [found.part for found in misfits(points((0.4, 0.3, 0.25, 0.22, 0.2), tbot))] == ["TTFT"]
    assert [found.part for found in misfits(points(RISING, (0.2, 0.1, 0.08, 0.07, 0.06)))] == ["TBOT"]


@pytest.mark.parametrize(
    "ttft",
    [(0.1, 0.11, 0.13, 0.2, 0.6), (0.1, 0.1, 0.1, 0.1, 0.1), (0.1, 0.094, 0.108, 0.2, 0.58), (0.2, 0.19)],
    ids=["convex", "level", "noise of a few percent", "two stages, hardly apart"],
)
def test_what_an_engine_does_and_noise_are_no_news(ttft: tuple[float, ...]) -> None:
    assert tuple(misfits(points(ttft))) == ()


def test_of_one_token_there_is_no_time_between_tokens_to_judge() -> None:
    assert tuple(misfits(points(RISING, (2e-6, 1e-6, 1e-6, 1e-6, 1e-6), tokens=1.0))) == ()


@given(st.lists(st.floats(0.01, 10.0), min_size=2, max_size=5), st.floats(0.001, 1000.0))
def test_the_order_of_stages_and_the_unit_of_times_say_nothing(times: list[float], unit: float) -> None:
    made = points(tuple(times))
    back = np.arange(len(times))[::-1]
    turned = Points(*(column[back] for column in (made.load, made.ttft_s, made.tbot_s, made.tokens, made.weight)))
    found = [(each.part, each.falls) for each in misfits(made) if each.size > 1.01 * LEAST]
    assert [(each.part, each.falls) for each in misfits(turned) if each.size > 1.01 * LEAST] == found
    scaled = points(tuple(unit * time for time in times), tuple(unit * time for time in RISING))
    assert [(each.part, each.falls) for each in misfits(scaled) if each.size > 1.01 * LEAST] == found


def test_a_test_that_fits_and_one_that_is_refused_both_say_it() -> None:
    rates = (2, 6, 10, 14, 18)
    ttft = (0.4, 0.3, 0.25, 0.22, 0.2)
    fits = tuple(
        open_stage(r, r, t, t + 10 * b) for r, t, b in zip(rates, ttft, (0.3, 0.31, 0.33, 0.37, 0.5), strict=True)
    )
    falls = tuple(open_stage(r, r, t, 10 * t) for r, t in zip(rates, (0.8, 0.4, 0.2, 0.1, 0.05), strict=True))
    one, other = fit_profiles((LoadTest(LABELS, fits, "a"), LoadTest(LABELS, falls, "b")))
    assert isinstance(one, FittedProfile)
    assert isinstance(other, RefusedProfile)
    assert [reason.split(",")[0] for reason in other.reasons[-2:]] == [
        "TTFT falls as load grows",
        "TBOT falls as load grows",
    ]
