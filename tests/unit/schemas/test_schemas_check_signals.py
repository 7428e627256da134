import math
from dataclasses import replace

import pytest

from headrace.schemas.check_series import MAX_AHEAD_MS
from headrace.schemas.check_signals import MAX_DISTRIBUTIONS, Signal, check_signal
from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.signals import (
    Demand,
    Distribution,
    EngineSignals,
    EngineStatus,
    Health,
    Metric,
    NetworkProbe,
    Vantage,
)

NOW = 1_700_000_001_000
TTFT = Distribution("llama", Metric.TTFT, 3, 0.3, 0.05, 0.2, 1, -20, (1, 1))
STATUS = EngineStatus(Health.HEALTHY, 4, 4, 4, 2.0, 0.0, 0.5)
ENGINE = EngineSignals("engine-a", "engine-a/0", Vantage.ENGINE, NOW - 1000, NOW, (TTFT,), STATUS)
DEMAND = Demand("A", "llama", "default", "gateway-1", NOW - 1000, NOW, 90, 2, 1)
PROBE = NetworkProbe("A", "us-east-1", "gateway-1", NOW, 0.003)


def with_ttft(**changes: object) -> EngineSignals:
    return replace(ENGINE, distributions=(replace(TTFT, **changes),))  # type: ignore[arg-type]  # names are the test's


def with_status(**changes: object) -> EngineSignals:
    return replace(ENGINE, status=replace(STATUS, **changes))  # type: ignore[arg-type]  # names are the test's


@pytest.mark.parametrize("signal", [ENGINE, DEMAND, PROBE, replace(ENGINE, status=None), replace(PROBE, rtt_s=None)])
def test_a_sound_signal_has_no_problem(signal: Signal) -> None:
    assert check_signal(signal, NOW) is None


def test_measured_zero_and_not_measured_are_both_sound() -> None:
    assert check_signal(with_status(waiting=0.0, running=None, replicas_ready=0), NOW) is None
    assert check_signal(with_ttft(count=0, sum_s=0.0, zero_count=0, bucket_counts=()), NOW) is None


@pytest.mark.parametrize(
    ("signal", "reason", "field"),
    [
        (replace(ENGINE, engine_id="a|b"), RejectReason.BAD_IDENTIFIER, "engine_id"),
        (with_ttft(model=""), RejectReason.BAD_IDENTIFIER, "distributions[0].model"),
        (with_ttft(sum_s=math.nan), RejectReason.NOT_FINITE, "distributions[0].sum_s"),
        (with_ttft(max_s=math.inf), RejectReason.NOT_FINITE, "distributions[0].max_s"),
        (with_ttft(count=-3), RejectReason.NEGATIVE, "distributions[0].count"),
        (with_ttft(bucket_counts=(4, -1)), RejectReason.NEGATIVE, "distributions[0].bucket_counts"),
        (with_ttft(first_bucket=159), RejectReason.OUT_OF_RANGE, "distributions[0]"),
        (with_ttft(count=4), RejectReason.INCONSISTENT, "add up to 3"),
        (with_ttft(min_s=0.3), RejectReason.INCONSISTENT, "min_s"),
        (with_ttft(count=0, zero_count=0, bucket_counts=()), RejectReason.INCONSISTENT, "sum_s"),
        (replace(ENGINE, distributions=(TTFT, TTFT)), RejectReason.INCONSISTENT, "repeats TTFT"),
        (replace(ENGINE, distributions=(TTFT,) * (MAX_DISTRIBUTIONS + 1)), RejectReason.OUT_OF_RANGE, "1025 entries"),
        (with_status(kv_usage=1.2), RejectReason.OUT_OF_RANGE, "status.kv_usage"),
        (with_status(replicas_ready=-1), RejectReason.NEGATIVE, "status.replicas_ready"),
        (with_status(waiting=math.nan), RejectReason.NOT_FINITE, "status.waiting"),
        (replace(ENGINE, period_start_ms=NOW + 1), RejectReason.INCONSISTENT, "period_end_ms"),
        (replace(ENGINE, period_start_ms=NOW - 700_000), RejectReason.OUT_OF_RANGE, "the period"),
        (replace(DEMAND, offered=-1, rejected=0), RejectReason.NEGATIVE, "offered"),
        (replace(DEMAND, rejected=91), RejectReason.INCONSISTENT, "rejected"),
        (replace(DEMAND, retries=10**15), RejectReason.OUT_OF_RANGE, "retries"),
        (replace(PROBE, rtt_s=-0.1), RejectReason.NEGATIVE, "rtt_s"),
        (replace(PROBE, at_ms=-1), RejectReason.NEGATIVE, "period_start_ms"),
    ],
)
def test_what_must_not_reach_a_sum_is_refused_by_name(signal: Signal, reason: RejectReason, field: str) -> None:
    rejected = check_signal(signal, NOW)
    assert rejected is not None
    assert rejected.reason is reason
    assert field in rejected.detail


def test_a_clock_ahead_of_kafkas_is_refused_since_it_would_hold_the_watermark_hostage() -> None:
    assert check_signal(PROBE, NOW - MAX_AHEAD_MS) is None
    rejected = check_signal(PROBE, NOW - MAX_AHEAD_MS - 1)
    assert rejected is not None
    assert rejected.reason is RejectReason.TIME_IN_FUTURE


def test_all_problems_of_one_signal_are_told_at_once() -> None:
    rejected = check_signal(replace(DEMAND, cluster="", offered=-5, retries=-1), NOW)
    assert rejected is not None
    assert all(word in rejected.detail for word in ("cluster", "offered is -5", "retries is -1"))
