"""Demand counted in one-second periods. Time runs to the right; R is a route's first request.

period     0         1         2         3
ms         0      1000      2000      3000
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.dataplane import demand as module
from headrace.dataplane.demand import KEPT_APART_MS, MAX_GAP_PERIODS, DemandCounter
from headrace.schemas.check_signals import check_signal
from headrace.schemas.signals import Demand


def counter() -> DemandCounter:
    made = DemandCounter("A", "gateway-1")
    assert made.close(0) == ()
    return made


def brief(records: tuple[Demand, ...]) -> list[tuple[str, int, int]]:
    return [(r.model, r.period_start_ms, r.offered) for r in records]


def test_a_period_is_given_once_it_is_over_and_only_once() -> None:
    made = counter()
    made.count("m", "default", 10)
    made.count("m", "default", 999)
    assert made.close(999) == ()
    assert made.close(1_000) == (Demand("A", "m", "default", "gateway-1", 0, 1_000, 2, 0, 0),)
    assert made.close(1_001) == ()


def test_rejected_requests_are_offered_too_and_retries_are_neither() -> None:
    made = counter()
    made.count("m", "default", 1)
    made.count("m", "default", 2, rejected=True)
    made.count("m", "default", 3, retry=True)
    made.count("m", "default", 4, retry=True, rejected=True)
    (record,) = made.close(1_000)
    assert (record.offered, record.rejected, record.retries) == (2, 1, 2)
    assert check_signal(record, 1_000) is None


def test_a_route_once_seen_is_measured_zero_and_one_never_seen_is_missing() -> None:
    made = counter()
    made.count("m", "default", 1_500)
    assert brief(made.close(4_000)) == [("m", 0, 0), ("m", 1_000, 1), ("m", 2_000, 0), ("m", 3_000, 0)]


def test_records_come_by_period_and_route() -> None:
    made = counter()
    for model in ("z", "a"):
        made.count(model, "default", 1)
        made.count(model, "default", 1_001)
    assert brief(made.close(2_000)) == [("a", 0, 1), ("z", 0, 1), ("a", 1_000, 1), ("z", 1_000, 1)]


def test_a_request_counted_after_its_period_was_given_goes_into_the_next() -> None:
    made = counter()
    made.close(1_000)
    made.count("m", "default", 999)
    assert brief(made.close(2_000)) == [("m", 1_000, 1)]


def test_a_request_from_a_clock_that_is_a_little_ahead_keeps_its_period_and_one_far_ahead_is_dropped() -> None:
    made = counter()
    made.count("m", "default", 1_001)
    made.count("m", "default", 10**15)
    assert brief(made.close(999)) == []
    assert brief(made.close(2_000)) == [("m", 0, 0), ("m", 1_000, 1)]
    assert made.dropped == 1


def test_a_clock_that_steps_back_gives_nothing_twice() -> None:
    made = counter()
    made.count("m", "default", 1_500)
    assert len(made.close(2_000)) == 2
    made.count("m", "default", 700)
    assert made.close(500) == ()
    made.count("m", "default", 1_999)
    made.count("m", "default", 2_001)
    assert brief(made.close(3_000)) == [("m", 2_000, 1)]
    assert (made.dropped, made.steps) == (2, 1)


def seconds_with_a_step(step_s: int, after_s: int, rate: int = 100) -> tuple[DemandCounter, list[tuple[int, int]]]:
    """Count `rate` requests a second for a minute, step the clock, go on; give (second, offered) as reported."""
    made, reported = DemandCounter("A", "gateway-1"), list[tuple[int, int]]()
    for second in (*range(10_000, 10_060), *range(10_060 + step_s, 10_060 + step_s + after_s)):
        for i in range(rate):
            made.count("m", "default", 1_000 * second + 1_000 * i // rate)
        reported += [(r.period_start_ms // 1_000, r.offered) for r in made.close(1_000 * (second + 1))]
    return made, reported


@pytest.mark.parametrize("step_s", [-3_600, -600, -30, -21])
def test_a_clock_that_steps_back_is_followed_at_once_and_no_period_is_given_twice_in_a_window(step_s: int) -> None:
    made, reported = seconds_with_a_step(step_s, after_s=-step_s + 10)
    before = [(second, 100) for second in range(10_000, 10_060)]
    apart = KEPT_APART_MS // 1_000
    again = [(second, 100) for second in range(10_060 + step_s, 10_070) if not 10_060 - apart <= second < 10_060]
    assert reported == before + again
    assert (made.steps, made.dropped) == (1, 100 * apart)


@pytest.mark.parametrize("step_s", [-2, -3, -20])
def test_a_small_step_back_is_waited_out(step_s: int) -> None:
    made, reported = seconds_with_a_step(step_s, after_s=30)
    assert reported == [(second, 100) for second in range(10_000, 10_090 + step_s)]
    assert made.dropped == 100 * -step_s


def test_a_clock_that_leaps_ahead_and_comes_back_is_followed_both_ways() -> None:
    made, reported = counter(), list[tuple[int, int]]()
    for second in (*range(10), 3_610, *range(11, 100)):
        made.count("m", "default", 1_000 * second + 1)
        reported += [(r.period_start_ms // 1_000, r.offered) for r in made.close(1_000 * (second + 1))]
    # Second 10 was begun and not measured: its first close was already by the clock ahead.
    assert reported == [(s, 1) for s in range(10)] + [(10, 0), (3_610, 1)] + [(s, 1) for s in range(11, 100)]
    assert (made.steps, made.dropped) == (2, 0)


def test_a_step_that_the_caller_knows_of_is_not_filled_with_zeros() -> None:
    made = counter()
    made.count("m", "default", 500)
    made.count("m", "default", 30_500)
    assert brief(made.close(31_000, stepped=True)) == [("m", 0, 1), ("m", 30_000, 1)]


steps = st.integers(-100_000, 100_000).filter(lambda step_ms: abs(step_ms) > 2_000)
histories = st.lists(st.tuples(steps, st.integers(1, 12)), min_size=1, max_size=6)


@given(histories, st.integers(0, 999))
def test_whatever_the_clock_does_no_period_holds_more_than_its_own_and_all_is_accounted_for(
    stepped: list[tuple[int, int]], offset_ms: int
) -> None:
    made, now_ms, counted, given = counter(), 1_000_000 + offset_ms, 0, list[Demand]()
    for step_ms, then_s in stepped:
        now_ms += step_ms
        for _ in range(then_s * 10):
            made.count("m", "default", now_ms)
            now_ms += 100
            counted += 1
            if counted % 10 == 0:
                given += made.close(now_ms)
    given += made.close(now_ms + 3_000)
    # 10 a second; steps of more than a period; two stretches may meet in one period, and neither fills it.
    assert max(record.offered for record in given) <= 20
    assert sum(record.offered for record in given) + made.dropped == counted


@pytest.mark.parametrize("now_ms", [None, float("nan"), float("inf"), True, "1", [], object()])
def test_what_is_no_instant_is_dropped_and_closes_go_on(now_ms: Any) -> None:  # noqa: ANN401 - the point
    made = DemandCounter("A", "gateway-1")
    made.count("m", "default", now_ms)
    made.count("m", "default", 1)
    assert brief(made.close(1_000)) == [("m", 0, 1)]
    assert made.dropped == 1


def test_requests_before_the_first_close_keep_their_own_periods() -> None:
    made = DemandCounter("A", "gateway-1")
    made.count("m", "default", 5_500)
    made.count("m", "default", 6_500)
    assert brief(made.close(7_000)) == [("m", 5_000, 1), ("m", 6_000, 1)]


def test_a_suspended_process_did_not_measure_zero() -> None:
    made = counter()
    made.count("m", "default", 500)
    made.count("m", "default", 3_598_500)
    periods = [start // 1_000 for _, start, _ in brief(made.close(3_600_000))]
    assert periods == [0, 3_598, 3_599]


def test_what_was_counted_in_a_gap_is_dropped_and_not_put_into_another_period() -> None:
    made = counter()
    for at_ms in (500, 1_800_000, 3_599_999):
        made.count("m", "default", at_ms)
    assert brief(made.close(3_600_000)) == [("m", 0, 1), ("m", 3_599_000, 1)]
    assert (made.dropped, made.steps) == (1, 1)


def test_a_late_close_gives_every_period_with_its_own() -> None:
    made = counter()
    for second in range(MAX_GAP_PERIODS):
        made.count("m", "default", 1_000 * second)
    assert [offered for _, _, offered in brief(made.close(1_000 * MAX_GAP_PERIODS))] == [1] * MAX_GAP_PERIODS
    assert made.steps == 0


def test_a_silent_route_is_forgotten_in_the_end() -> None:
    made = counter()
    made.count("m", "default", 1)
    seen = [len(made.close(1_000 * second)) for second in range(1, module.FORGET_AFTER_PERIODS + 3)]
    assert seen == [1] * (module.FORGET_AFTER_PERIODS + 1) + [0]


def test_what_cannot_be_a_route_is_dropped_and_counted() -> None:
    made = counter()
    for model in ("", "a|b", "\ud800", None, ["m"], "x" * 201):
        made.count(model, "default", 1)  # type: ignore[arg-type] - a gateway may pass anything on
    assert made.close(1_000) == ()
    assert made.dropped == 6


def test_invented_model_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROUTES", 3)
    made = counter()
    for i in range(5):
        made.count(f"model-{i}", "default", 1)
    assert len(made.close(1_000)) == 3
    assert made.dropped == 2


def test_requests_that_nobody_closes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 3)
    made = counter()
    for _ in range(5):
        made.count("m", "default", 1)
    assert brief(made.close(1_000)) == [("m", 0, 3)]
    assert made.dropped == 2
