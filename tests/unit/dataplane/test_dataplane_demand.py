"""Demand counted in one-second periods. Time runs to the right; R is a route's first request.

period     0         1         2         3
ms         0      1000      2000      3000
"""

import pytest

from headrace.dataplane import demand as module
from headrace.dataplane.demand import MAX_GAP_PERIODS, DemandCounter
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


def test_a_request_from_a_clock_that_is_ahead_goes_into_the_open_period() -> None:
    made = counter()
    made.count("m", "default", 10**15)
    assert brief(made.close(1_000)) == [("m", 0, 0)]
    assert brief(made.close(2_000)) == [("m", 1_000, 1)]


def test_a_clock_that_steps_back_gives_nothing_twice() -> None:
    made = counter()
    made.count("m", "default", 1_500)
    assert len(made.close(2_000)) == 2
    assert made.close(500) == ()
    assert brief(made.close(3_000)) == [("m", 2_000, 0)]


def test_requests_before_the_first_close_keep_their_own_periods() -> None:
    made = DemandCounter("A", "gateway-1")
    made.count("m", "default", 5_500)
    made.count("m", "default", 6_500)
    assert brief(made.close(7_000)) == [("m", 5_000, 1), ("m", 6_000, 1)]


def test_a_suspended_process_did_not_measure_zero() -> None:
    made = counter()
    made.count("m", "default", 500)
    hour = 3_600
    made.count("m", "default", 1_000 * hour // 2)
    periods = [start // 1_000 for _, start, _ in brief(made.close(hour * 1_000))]
    assert periods == [0, *range(hour - MAX_GAP_PERIODS, hour)]


def test_nothing_is_lost_over_a_gap() -> None:
    made = counter()
    for at_ms in (500, 1_800_000, 3_599_999):
        made.count("m", "default", at_ms)
    assert sum(offered for _, _, offered in brief(made.close(3_600_000))) == 3


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
