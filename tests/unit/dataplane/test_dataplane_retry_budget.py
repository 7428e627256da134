"""Retries: a share of the traffic, one per request, none where the fleet is full."""

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, shares, snapshot
from headrace.dataplane import Router
from headrace.dataplane.retry_budget import Retry, RetryBudget
from headrace.dataplane.settings import DataPlaneSettings


def router(retry_ratio: float, burst: int = 0) -> Router:
    made = Router(DataPlaneSettings(retry_burst=burst), CLUSTER)
    made.apply(snapshot(route_weights(shares(a=1, b=1), retry_ratio=retry_ratio)))
    return made


def test_every_tenth_attempt_earns_one_retry_at_a_ratio_of_a_tenth() -> None:
    budget = RetryBudget(burst=100)
    while budget.spend(0.1):
        pass
    for _ in range(95):
        budget.earn(0.1)
    granted = 0
    while budget.spend(0.1):
        granted += 1
    assert granted == 9


def test_a_quiet_route_may_retry_its_first_failure_and_no_more_than_the_burst_is_saved() -> None:
    budget = RetryBudget(burst=2)
    for _ in range(1_000):
        budget.earn(0.5)
    assert [budget.spend(0.5) for _ in range(3)] == [Retry.GRANTED, Retry.GRANTED, Retry.BUDGET_SPENT]


def test_no_retry_where_the_fleet_is_full_whatever_was_saved() -> None:
    made = router(retry_ratio=0.0, burst=10)
    assert made.may_retry(MODEL, "default", ("a",)) is Retry.BUDGET_SPENT


def test_first_attempts_that_were_routed_earn_the_budget() -> None:
    made = router(retry_ratio=0.5, burst=1)
    assert made.may_retry(MODEL, "default", ("a",)) is Retry.GRANTED
    decision = made.route(MODEL, now_ms=NOW_MS)
    refused = made.route("other", now_ms=NOW_MS)
    made.report(MODEL, "default", decision, retry=True, now_ms=NOW_MS)
    made.report(MODEL, "default", refused, now_ms=NOW_MS)
    made.report(MODEL, "default", decision, now_ms=NOW_MS)
    assert made.may_retry(MODEL, "default", ("a",)) is Retry.BUDGET_SPENT
    made.report(MODEL, "default", decision, now_ms=NOW_MS)
    assert made.may_retry(MODEL, "default", ("a",)) is Retry.GRANTED


def test_the_budget_outlives_a_new_snapshot() -> None:
    made = router(retry_ratio=0.5, burst=1)
    assert made.may_retry(MODEL, "default", ("a",))
    made.apply(snapshot(route_weights(shares(a=3, b=1), version=2)))
    assert made.may_retry(MODEL, "default", ("a",)) is Retry.BUDGET_SPENT


def test_there_is_no_second_retry() -> None:
    assert router(0.1, burst=10).may_retry(MODEL, "default", ("a", "b")) is Retry.ALREADY_RETRIED


def test_nothing_says_that_an_unknown_route_could_bear_a_retry() -> None:
    assert router(0.1, burst=10).may_retry("other", "default", ("a",)) is Retry.UNKNOWN_ROUTE
    before_any_snapshot = Router(DataPlaneSettings(), CLUSTER)
    assert before_any_snapshot.may_retry(MODEL, "default", ("a",)) is Retry.UNKNOWN_ROUTE
    before_any_snapshot.report(MODEL, "default", before_any_snapshot.route(MODEL, now_ms=NOW_MS), now_ms=NOW_MS)


def test_only_a_granted_retry_is_true_in_a_condition() -> None:
    assert [answer for answer in Retry if answer] == [Retry.GRANTED]
