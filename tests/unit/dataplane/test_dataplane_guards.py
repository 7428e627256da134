"""Each guard by itself: what it learns from, when it speaks, and for how long."""

import math

import pytest

from headrace.dataplane.guards.contract import AttemptOutcome, Cause, Detector, Sample
from headrace.dataplane.guards.ejection import Ejection, eject, within_share
from headrace.dataplane.guards.errors import ErrorCusum
from headrace.dataplane.guards.first_token import FirstTokenCusum
from headrace.dataplane.guards.in_flight import InFlight
from headrace.dataplane.guards.panic import panics
from headrace.dataplane.guards.throttle import Tally, counted, faded, fraction
from headrace.dataplane.settings import GuardSettings

OK, ERROR = AttemptOutcome.OK, AttemptOutcome.ERROR
TIMEOUT, REJECTED, CANCELLED = AttemptOutcome.TIMEOUT, AttemptOutcome.REJECTED, AttemptOutcome.CANCELLED
ERRORS = ErrorCusum(tolerated=0.02, bad=0.25, once_in=1e6)
SLOW = FirstTokenCusum(factor=2.0, clip=4.0, requests=5)


def until_alarm(detector: Detector, samples: list[Sample]) -> int | None:
    score = 0.0
    for i, sample in enumerate(samples, start=1):
        score = detector.learn(score, sample)
        if score >= detector.threshold:
            return i
    return None


def met(*outcomes: AttemptOutcome) -> list[Sample]:
    return [Sample(outcome) for outcome in outcomes]


def first_token(ttft_s: float | None, expected_s: float | None = 0.1) -> Sample:
    return Sample(OK, ttft_s, expected_s)


def test_six_errors_in_a_row_alarm_and_timeouts_are_errors() -> None:
    # Each adds ln(0.25 / 0.02) = 2.526; the threshold is ln(1e6) = 13.816.
    assert until_alarm(ERRORS, met(*[ERROR] * 10)) == 6
    assert until_alarm(ERRORS, met(*[TIMEOUT, ERROR] * 5)) == 6


def test_an_error_in_twenty_never_alarms_and_one_in_three_does() -> None:
    # A success takes ln(0.98 / 0.75) = 0.267 off: 19 of them more than the 2.526 of one error, two of them not.
    assert until_alarm(ERRORS, met(*([ERROR] + [OK] * 19) * 500)) is None
    assert until_alarm(ERRORS, met(*([ERROR] + [OK] * 2) * 500)) == 3 * 6 + 1


def test_rejections_and_cancellations_are_no_errors_and_no_successes() -> None:
    assert ERRORS.learn(5.0, Sample(REJECTED)) == 5.0
    assert ERRORS.learn(5.0, Sample(CANCELLED)) == 5.0


def test_successes_before_do_not_buy_errors_later() -> None:
    assert until_alarm(ERRORS, met(*[OK] * 1_000, *[ERROR] * 6)) == 1_006


def test_requests_four_times_as_slow_as_expected_alarm_and_slower_ones_no_sooner() -> None:
    assert until_alarm(SLOW, [first_token(0.4)] * 20) == 5
    assert until_alarm(SLOW, [first_token(40.0)] * 20) == 5
    # Three times: ln 3 - ln 2 = 0.405 each, against 5 x 0.693.
    assert until_alarm(SLOW, [first_token(0.3)] * 20) == math.ceil(5 * math.log(2) / math.log(1.5))


def test_twice_as_slow_in_the_mean_never_alarms() -> None:
    assert until_alarm(SLOW, [first_token(0.2)] * 1_000) is None
    assert until_alarm(SLOW, [first_token(0.4), first_token(0.1)] * 1_000) is None


@pytest.mark.parametrize("ttft_s", [None, 0.0, -1.0, math.nan, math.inf])
def test_what_is_no_time_is_no_evidence(ttft_s: float | None) -> None:
    assert SLOW.learn(1.0, first_token(ttft_s)) == 1.0
    assert SLOW.learn(1.0, first_token(0.4, ttft_s)) == 1.0


def test_ejections_double_up_to_the_longest() -> None:
    settings = GuardSettings(ejection_jitter=0.0)
    before, now_ms, lasted = None, 0, []
    for _ in range(7):
        before = eject("a", Cause.ERRORS, before, now_ms, settings, "here")
        lasted.append(before.until_ms - before.at_ms)
        now_ms = before.until_ms
    assert lasted == [30_000, 60_000, 120_000, 240_000, 300_000, 300_000, 300_000]


def test_an_engine_that_stays_in_is_forgiven_step_by_step() -> None:
    settings = GuardSettings(ejection_jitter=0.0)
    before = Ejection("a", Cause.ERRORS, 0, 0, times=3)
    again = [eject("a", Cause.ERRORS, before, stayed_ms, settings, "here").times for stayed_ms in (0, 300_000, 10**7)]
    assert again == [4, 3, 1]


def test_jitter_shortens_by_a_fifth_at_most_and_differs_between_data_planes_only() -> None:
    settings = GuardSettings()
    lasted = [eject("a", Cause.ERRORS, None, 0, settings, f"plane-{i}").until_ms for i in range(200)]
    assert 24_000 <= min(lasted) < 25_000
    assert 29_000 < max(lasted) <= 30_000
    assert lasted == [eject("a", Cause.ERRORS, None, 0, settings, f"plane-{i}").until_ms for i in range(200)]


def test_the_first_ejections_count_up_to_the_share_and_the_rest_have_no_effect() -> None:
    ppm = {"a": 200_000, "b": 200_000, "c": 100_000, "d": 500_000}
    order = [Ejection(engine, Cause.ERRORS, at_ms, 10**6, 1) for at_ms, engine in enumerate("dabc")]
    # d alone is above 30 %; a fits; b would make 40 %; c makes 30 %.
    assert within_share(order, ppm, 0.3) == {"a", "c"}
    assert within_share(order[::-1], ppm, 0.3) == {"a", "c"}
    assert within_share(order, ppm, 0.0) == frozenset()
    assert within_share(order, {"z": 1_000_000}, 1.0) == frozenset()


def test_panic_is_more_than_half_of_the_weight_out_and_needs_an_ejection() -> None:
    ppm = {"a": 300_000, "b": 200_000, "c": 500_000}
    assert not panics(ppm, {"b"}, {"a"}, 0.5)
    assert panics(ppm, {"c"}, {"a"}, 0.5)
    assert not panics(ppm, {"a", "b", "c"}, (), 0.5)


def test_an_engine_that_takes_half_is_left_alone_and_one_that_takes_nothing_is_hardly_asked() -> None:
    assert fraction(Tally(1_000, 500, 0), 0, 2.0, 60_000) == 0.0
    # (1000 - 2 x 250) / 1010
    assert fraction(Tally(1_000, 250, 0), 0, 2.0, 60_000) == pytest.approx(500 / 1010)
    assert fraction(Tally(1_000, 0, 0), 0, 2.0, 60_000) == 0.98
    # A single rejection: 1 / 11.
    assert fraction(counted(None, REJECTED, 0, 60_000), 0, 2.0, 60_000) == pytest.approx(1 / 11)


def test_rejections_fade_and_a_clock_that_goes_back_changes_nothing() -> None:
    tally = Tally(1_000, 0, 60_000)
    assert faded(tally, 120_000, 60_000).requests == pytest.approx(1_000 / math.e)
    assert faded(tally, 0, 60_000) == tally
    assert fraction(tally, 600_000, 2.0, 60_000) < 0.013
    assert counted(tally, OK, 0, 60_000) == Tally(1_001, 1, 60_000)


def test_errors_and_cancellations_are_accepts_and_what_is_kept_back_is_not() -> None:
    tally = None
    for outcome in (OK, ERROR, CANCELLED, REJECTED, None):
        tally = counted(tally, outcome, 0, 60_000)
    assert tally == Tally(5, 3, 0)


def in_flight(ppm: dict[str, int], **settings: float) -> InFlight:
    made = InFlight(
        GuardSettings(
            **(
                {"in_flight_new": 1.0, "in_flight_established": 1.5, "in_flight_most": 2.0, "in_flight_min": 1}
                | settings
            )
        )
    )
    made.weigh(ppm)
    return made


def test_a_small_engines_share_is_not_rounded_up_to_half_as_much_again() -> None:
    made = InFlight(GuardSettings())  # 1.25 and at most 1.3 times, 4 at least
    made.weigh({"small": 50_000, "rest": 950_000})
    for _ in range(61):
        made.begin("rest")
    for _ in range(4):
        made.begin("small")
    # Its share of 66 is 3.3: 1.25 times that is 4.1, or 5 in whole requests; 1.3 times is 4.29, so it stops at 4.
    assert made.crowded == {"small"}


def test_an_engine_with_more_than_its_share_lets_new_ones_go_first() -> None:
    made = in_flight({"a": 500_000, "b": 500_000})
    for _ in range(4):
        made.begin("a")
        made.begin("b")
    # 4 + 1 is the share of a in 8 + 1: ceil(4.5) = 5.
    assert (made.crowded_for_new, made.crowded) == (frozenset(), frozenset())
    made.begin("a")
    # 5 + 1 is above ceil(10 / 2) = 5, not above ceil(1.5 x 5) = 8.
    assert (made.crowded_for_new, made.crowded) == ({"a"}, frozenset())
    for _ in range(9):
        made.begin("a")
    # 14 + 1 is not above ceil(1.5 x 19 / 2) = 15; 15 + 1 is above ceil(1.5 x 20 / 2) = 15.
    assert made.crowded == frozenset()
    made.begin("a")
    assert made.crowded == {"a"}
    assert made.count("a") == 15


def test_a_crowd_is_over_when_the_others_have_as_many() -> None:
    made = in_flight({"a": 500_000, "b": 500_000})
    for _ in range(3):
        made.begin("a")
    assert made.crowded == {"a"}
    for _ in range(3):
        made.begin("b")
    assert made.crowded_for_new == frozenset()


def test_few_requests_are_no_crowd() -> None:
    made = InFlight(GuardSettings(in_flight_min=4))
    made.weigh({"a": 500_000, "b": 500_000})
    crowded = []
    for _ in range(4):
        made.begin("a")
        crowded.append(bool(made.crowded_for_new))
    assert crowded == [False, False, False, True]


def test_ending_what_has_not_begun_counts_nothing() -> None:
    made = in_flight({"a": 1_000_000})
    assert not made.end("a")
    made.begin("a")
    assert made.end("a")
    assert not made.end("a")
    assert made.count("a") == 0
    assert made.count("never heard of") == 0


def test_an_engine_without_a_weight_is_forgotten_once_nothing_is_under_way() -> None:
    made = in_flight({"a": 500_000, "b": 500_000})
    made.begin("b")
    made.weigh({"a": 1_000_000})
    assert made.count("b") == 1
    assert made.crowded_for_new == frozenset()
    made.end("b")
    made.weigh({"a": 1_000_000})
    assert made.count("b") == 0
