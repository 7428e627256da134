"""What an engine finished lately: over whole periods, and only where all of them are there."""

import pytest

from headrace.schemas.signals import Distribution, EngineSignals, Metric, Vantage
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.settings import StreamsSettings

START_MS = 1_700_000_000_000


def signals(end_ms: int, count: int, period_ms: int, metric: Metric = Metric.E2E) -> EngineSignals:
    distribution = Distribution("m", metric, count, 0.5 * count, None, None, 0, 0, ())
    end = START_MS + end_ms
    return EngineSignals("e1", "e1/pod", Vantage.ENGINE, end - period_ms, end, (distribution,), None)


def finished(counts: dict[int, int], period_ms: int, metric: Metric = Metric.E2E) -> float | None:
    fold = EngineAccumulator("e1", StreamsSettings())
    for offset, (end_ms, count) in enumerate(counts.items()):
        fold.apply(signals(end_ms, count, period_ms, metric), offset, START_MS + end_ms)
    return fold.state().finished_rps


def test_it_is_what_the_last_three_seconds_finished() -> None:
    assert finished({1000 * (i + 1): c for i, c in enumerate([90, 90, 90, 30, 33, 36])}, 1000) == pytest.approx(33.0)


@pytest.mark.parametrize("phase_ms", [0, 1, 300, 999])
@pytest.mark.parametrize("period_ms", [500, 1000, 2000, 4000])
def test_a_steady_rate_is_told_whatever_the_period_and_wherever_it_ends(period_ms: int, phase_ms: int) -> None:
    steady = {i * period_ms + phase_ms: period_ms // 10 for i in range(1, 1 + 12_000 // period_ms)}
    assert finished(steady, period_ms) == pytest.approx(100.0)


def test_a_period_longer_than_the_window_is_divided_by_all_of_it() -> None:
    assert finished({15_000: 1500, 30_000: 3000}, 15_000) == pytest.approx(200.0)


def test_a_missing_report_is_not_an_engine_that_finished_nothing() -> None:
    assert finished({1000: 90, 2000: 90, 3000: 90, 5000: 90}, 1000) is None


def test_an_engine_without_traffic_finished_nothing_and_one_that_never_measured_it_says_nothing() -> None:
    assert finished({1000: 90, 2000: 0, 3000: 0, 4000: 0}, 1000) == 0.0
    assert finished({i * 1000: 50 for i in range(1, 5)}, 1000, Metric.TBOT) is None


def test_first_tokens_stand_in_for_whole_requests() -> None:
    assert finished({i * 1000: 50 for i in range(1, 5)}, 1000, Metric.TTFT) == pytest.approx(50.0)
