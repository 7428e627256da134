"""Latencies as seen from the gateway, per engine and period, as records that the streams accept and keep apart."""

import math
from typing import Any

import pytest

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, shares, snapshot
from headrace.dataplane import Router
from headrace.dataplane import latencies as module
from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.dataplane.latencies import LatencyCounter
from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.check_signals import check_signal
from headrace.schemas.signals import Metric, Outcomes, Vantage


def test_a_record_per_engine_with_a_distribution_per_metric() -> None:
    counter = LatencyCounter("gateway-1")
    counter.note("b", "m", 0.25, 0.01, 1_000)
    counter.note("a", "m", 0.5, None, 1_100)
    counter.note("b", "m", 0.75, 0.03, 1_200)
    a, b = counter.close(2_000)
    assert (a.engine_id, b.engine_id) == ("a", "b")
    assert (b.source, b.vantage, b.period_start_ms, b.period_end_ms) == ("gateway-1", Vantage.GATEWAY, 1_000, 2_000)
    assert [(d.metric, d.count, d.sum_s, d.min_s, d.max_s) for d in b.distributions] == [
        (Metric.TBOT, 2, 0.04, 0.01, 0.03),
        (Metric.TTFT, 2, 1.0, 0.25, 0.75),
    ]
    assert b.status is None
    assert [check_signal(record, 2_000) for record in (a, b)] == [None, None]


def test_periods_follow_each_other_and_silence_is_not_reported() -> None:
    counter = LatencyCounter("g")
    assert counter.close(500) == ()
    counter.note("a", "m", 0.5, None, 1_000)
    assert counter.close(1_000) == ()
    (first,) = counter.close(2_000)
    assert counter.close(3_000) == ()
    counter.note("a", "m", 0.5, None, 3_500)
    (second,) = counter.close(4_000)
    assert [(r.period_start_ms, r.period_end_ms) for r in (first, second)] == [(1_000, 2_000), (3_000, 4_000)]


def test_a_long_gap_is_not_measured() -> None:
    counter = LatencyCounter("g")
    counter.note("a", "m", 0.5, None, 0)
    (record,) = counter.close(10**9)
    assert record.period_end_ms - record.period_start_ms == 60_000


def test_after_a_step_back_of_the_clock_the_next_period_is_reported_and_nothing_is_lost() -> None:
    counter = LatencyCounter("g")
    counter.note("a", "m", 0.5, None, 3_600_000)
    assert counter.close(1_000) == ()
    (record,) = counter.close(2_000)
    assert (record.period_start_ms, record.period_end_ms) == (1_000, 2_000)


@pytest.mark.parametrize("now_ms", [None, math.nan, "1", True])
def test_what_is_no_instant_begins_no_period(now_ms: Any) -> None:  # noqa: ANN401 - a gateway may pass anything on
    counter = LatencyCounter("g")
    counter.note("a", "m", 0.5, None, now_ms)
    assert counter.close(1_000) == ()
    counter.note("a", "m", 0.5, None, 1_500)
    (record,) = counter.close(2_000)
    assert (record.period_start_ms, record.distributions[0].count) == (1_500, 2)


@pytest.mark.parametrize("value", [True, 0.0, -1.0, math.nan, math.inf, 1e7, "fast"])
def test_what_is_no_latency_is_dropped_and_counted(value: object) -> None:
    counter = LatencyCounter("g")
    counter.note("a", "m", value, None, 0)
    assert counter.close(1_000) == ()
    assert counter.dropped == 1


def test_names_that_no_record_may_have_and_too_many_at_once_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 2)
    counter = LatencyCounter("g")
    for engine in ("a|b", "a", "a"):
        counter.note(engine, "m", 0.5, None, 0)
    assert [r.distributions[0].count for r in counter.close(1_000)] == [1]
    assert counter.dropped == 2


def test_the_router_notes_what_ends() -> None:
    made = Router(DataPlaneSettings(source="g"), CLUSTER)
    made.apply(snapshot(route_weights(shares(a=1, b=1))))
    decision = made.route(MODEL, key="x", now_ms=NOW_MS)
    made.end(MODEL, "default", decision, AttemptOutcome.OK, ttft_s=0.2, tbot_s=0.01, now_ms=NOW_MS)
    (record,) = made.latencies.close(NOW_MS + 1_000)
    assert (record.engine_id, len(record.distributions)) == (decision.engine_id, 2)


def test_how_attempts_ended_is_counted_by_engine_and_model_and_what_says_nothing_of_the_engine_is_not() -> None:
    counter = LatencyCounter("gateway-1")
    for outcome in AttemptOutcome:
        counter.note("a", "m", None, None, 1_000, outcome)
    counter.note("a", "n", 0.5, None, 1_000, AttemptOutcome.OK)
    counter.note("b", "m", None, None, 1_000, AttemptOutcome.REJECTED)
    (record,) = counter.close(2_000)
    # Failed: an error and a timeout. Rejected and cancelled are no outcome, and of b nothing is known.
    assert record.outcomes == (Outcomes("m", 1, 2), Outcomes("n", 1, 0))
    assert [(d.model, d.count) for d in record.distributions] == [("n", 1)]
    assert check_signal(record, 2_000) is None


def test_an_attempt_of_which_no_outcome_is_noted_says_nothing_of_outcomes() -> None:
    counter = LatencyCounter("gateway-1")
    counter.note("a", "m", 0.5, None, 1_000)
    (record,) = counter.close(2_000)
    assert record.outcomes is None


def test_a_router_tells_of_the_engines_that_could_not_be_reached() -> None:
    router = Router(DataPlaneSettings(source="g"), CLUSTER)
    router.apply(snapshot(route_weights(shares(a=1))))
    decision = router.route(MODEL, key="s", now_ms=NOW_MS)
    for outcome in (AttemptOutcome.ERROR, AttemptOutcome.OK):
        router.begin(MODEL, "default", decision, now_ms=NOW_MS)
        router.end(MODEL, "default", decision, outcome, now_ms=NOW_MS)
    (record,) = router.latencies.close(NOW_MS + 1_000)
    assert (record.engine_id, record.outcomes) == ("a", (Outcomes(MODEL, 1, 1),))
