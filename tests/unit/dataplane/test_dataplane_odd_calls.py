"""Calls with arguments of other types, and clocks that leap: nothing is raised, nobody is out for ever."""

from typing import Any

import numpy as np
import pytest

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, shares, snapshot
from headrace.dataplane import AttemptOutcome, Decision, DecisionReason, Outcome, Router
from headrace.dataplane.avoidance import OUT_OF_ORDER_MS
from headrace.dataplane.installation import NotInstalled, NotInstalledReason
from headrace.dataplane.retry_budget import Retry
from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import Snapshot

YEAR_MS = 365 * 86_400_000
ODD: tuple[Any, ...] = (None, 1, 1.5, True, b"x", [], {}, object(), float("nan"), 10**400, np.int64(7), "\ud800", "")
NO_INSTANT: tuple[Any, ...] = (None, "now", True, float("nan"), float("inf"), 10**400, -(10**400), [], object())
TO_A = Decision(Outcome.ROUTED, "a", None, DecisionReason.SLOT)


def router() -> Router:
    made = Router(DataPlaneSettings(), CLUSTER)
    made.apply(snapshot(route_weights(shares(a=1, b=1, c=1, d=1, e=1))))
    return made


def engines(made: Router, now_ms: int) -> set[str | None]:
    return {made.route(MODEL, key=str(i), now_ms=now_ms).engine_id for i in range(200)}


def tell(made: Router, outcome: AttemptOutcome, times: int, now_ms: int) -> None:
    for _ in range(times):
        made.end(MODEL, "default", TO_A, outcome, now_ms=now_ms)


@pytest.mark.parametrize("odd", ODD)
def test_what_is_asked_about_names_of_other_types_is_not_known(odd: Any) -> None:  # noqa: ANN401 - any is the point
    made = router()
    assert (made.weights(odd), made.weights(MODEL, odd)) == ({}, {})
    assert not made.is_down(odd)
    assert made.in_flight(MODEL, "default", odd) == made.in_flight(odd, odd, "a") == made.retries_saved(odd) == 0


@pytest.mark.parametrize("odd", NO_INSTANT)
def test_what_is_asked_about_no_instant_is_told_so_by_the_one_typed_error(odd: Any) -> None:  # noqa: ANN401
    made = router()
    for ask in (made.ejections, made.throttled, made.staleness):
        with pytest.raises(InvalidInputError, match=r"now_ms is .*; milliseconds since the epoch"):
            ask(odd)


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_snapshot_is_left_aside_with_a_sentence(odd: Any) -> None:  # noqa: ANN401
    made = router()
    before = made.installation
    for wrong in (odd, Snapshot(odd, ()), Snapshot(snapshot(version=9).commit, (odd,))):
        left = made.apply(wrong)
        assert isinstance(left, NotInstalled)
        assert left.reason is NotInstalledReason.INVALID
    assert made.installation is before


@pytest.mark.parametrize("odd", ODD)
def test_nothing_on_a_requests_way_raises_whatever_it_is_given(odd: Any) -> None:  # noqa: ANN401
    made = router()
    for decision in (
        made.route(odd, now_ms=NOW_MS),
        made.route(MODEL, odd, now_ms=NOW_MS),
        made.route(MODEL, key=odd, now_ms=NOW_MS),
        made.route(MODEL, exclude=odd, now_ms=NOW_MS),
        made.route(MODEL, hint=odd, tier=odd, established=odd, now_ms=NOW_MS),
        made.route(MODEL, now_ms=odd),
    ):
        assert isinstance(decision, Decision)
        made.begin(odd, odd, decision, now_ms=odd)
        made.report(odd, odd, decision, outcome=odd, ttft_s=odd, now_ms=odd)
        made.end(odd, odd, decision, odd, ttft_s=odd, tbot_s=odd, now_ms=odd)
    made.begin(MODEL, "default", odd, now_ms=NOW_MS)
    made.end(MODEL, "default", odd, odd, now_ms=NOW_MS)
    made.report(MODEL, "default", odd, now_ms=NOW_MS)
    made.set_health(odd, up=odd)
    assert isinstance(made.may_retry(odd, odd, odd), Retry)
    assert engines(made, NOW_MS) == set("abcde")


def test_an_ejection_dated_a_year_ahead_is_void_when_the_clock_is_right_again() -> None:
    made = router()
    tell(made, AttemptOutcome.ERROR, 6, NOW_MS + YEAR_MS)
    assert "a" not in engines(made, NOW_MS + YEAR_MS)
    assert made.ejections(NOW_MS) == ()
    assert "a" in engines(made, NOW_MS)
    tell(made, AttemptOutcome.ERROR, 6, NOW_MS)  # and the guards still learn
    assert "a" not in engines(made, NOW_MS)


def test_an_ejection_outlives_a_small_step_back_by_its_own_length_at_most() -> None:
    made = router()
    tell(made, AttemptOutcome.ERROR, 6, NOW_MS)
    (ejection,) = made.ejections(NOW_MS)
    length_ms = ejection.until_ms - ejection.at_ms
    assert "a" not in engines(made, NOW_MS - length_ms)
    assert "a" in engines(made, NOW_MS - length_ms - 2 * OUT_OF_ORDER_MS)


def test_a_leap_ahead_and_back_leaves_an_ejection_as_it_was() -> None:
    made = router()
    tell(made, AttemptOutcome.ERROR, 6, NOW_MS)
    assert "a" in engines(made, NOW_MS + YEAR_MS)
    tell(made, AttemptOutcome.ERROR, 6, NOW_MS + YEAR_MS)
    (ejection,) = made.ejections(NOW_MS + YEAR_MS)
    assert ejection.until_ms <= NOW_MS + YEAR_MS + 300_000
    assert "a" in engines(made, NOW_MS)


def test_a_throttle_counted_a_year_ahead_fades_by_the_clock_that_is_right_again() -> None:
    made = router()
    tell(made, AttemptOutcome.REJECTED, 200, NOW_MS + YEAR_MS)
    assert made.throttled(NOW_MS + YEAR_MS)["a"] > 0.9
    tell(made, AttemptOutcome.OK, 1, NOW_MS)  # the few sessions that still ask date it anew
    assert made.throttled(NOW_MS)["a"] > 0.8
    assert made.throttled(NOW_MS + 600_000).get("a", 0.0) < 0.01
    assert "a" in engines(made, NOW_MS + 600_000)


def test_the_retry_budget_and_the_crowd_know_no_clock() -> None:
    made = router()
    for now_ms in (NOW_MS, NOW_MS + YEAR_MS, NOW_MS - YEAR_MS):
        made.begin(MODEL, "default", TO_A, now_ms=now_ms)
    assert (made.in_flight(MODEL, "default", "a"), made.retries_saved(MODEL)) == (3, 10)
    assert made.may_retry(MODEL, "default", ("a",))
    assert made.retries_saved(MODEL) == 9
