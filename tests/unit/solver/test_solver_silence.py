"""Who is silent, and against whom: in each engine's own periods, and never for a pipe that is late for everybody."""

from dataclasses import replace

import pytest

from headrace.schemas.records import Record
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState, LatencyState
from headrace.schemas.weights import Reason
from headrace.solver.core.inputs.assemble import assemble, lost_telemetry
from headrace.solver.core.inputs.measure import measure, throughput
from headrace.solver.core.inputs.pooled_window import pooled_window
from headrace.solver.core.inputs.state_view import StateFold
from headrace.solver.core.problem import Measured, Problem, Throughput
from headrace.solver.settings import SolverSettings
from solver_inputs import NOW_MS, TOPICS, demand_state, engine_state, profile, raw, spec

SETTINGS = SolverSettings()


def problem_of(*records: Record) -> Problem:
    fold = StateFold(TOPICS)
    for record in records:
        assert fold.offer(raw(record)) is None
    return assemble(fold.view(), SETTINGS, NOW_MS)


def pair(silence_ms: int, period_ms: int | None = 1_000, lag_ms: int = 0) -> Problem:
    """Two engines; the second has been silent for that much longer than the first, whose word is `lag_ms` old."""
    return problem_of(
        spec("e1"),
        spec("e2"),
        profile(),
        engine_state("e1", NOW_MS - lag_ms, period_ms=period_ms),
        engine_state("e2", NOW_MS - lag_ms - silence_ms, period_ms=period_ms),
    )


@pytest.mark.parametrize(("silence_ms", "factor"), [(3_000, 1.0), (4_500, 0.5), (5_700, 0.1)])
def test_an_engine_that_reports_every_second_fades_from_three_missed_reports_to_six(
    silence_ms: int, factor: float
) -> None:
    assert [e.factor for e in pair(silence_ms).engines] == [1.0, pytest.approx(factor)]


def test_and_is_out_after_six() -> None:
    e1, e2 = pair(6_000).engines
    assert (e1.exclusion, e2.exclusion and e2.exclusion.reason) == (None, Reason.STALE)
    assert e2.exclusion is not None
    assert e2.exclusion.sentence == "silent for 6.0 s; out from 6.0 s, it reports every 1.0 s"


def test_an_engine_that_is_scraped_every_fifteen_seconds_has_the_fixed_bounds() -> None:
    assert [e.factor for e in pair(5_000, period_ms=15_000).engines] == [1.0, 1.0]
    assert [e.factor for e in pair(10_000, period_ms=15_000).engines] == [1.0, 0.5]


@pytest.mark.parametrize("period_ms", [None, 0])
def test_without_a_period_the_fixed_bounds_stand(period_ms: int | None) -> None:
    assert [e.factor for e in pair(10_000, period_ms).engines] == [1.0, 0.5]


def test_a_pipe_that_is_twenty_seconds_late_makes_nobody_silent() -> None:
    late = pair(0, lag_ms=20_000)
    assert [e.factor for e in late.engines] == [1.0, 1.0]
    assert lost_telemetry(late) is None
    assert late.lag_ms == 20_000
    assert pair(6_000, lag_ms=20_000).engines[1].exclusion is not None


def test_when_all_fall_silent_at_once_nobody_fades_until_their_telemetry_counts_as_lost() -> None:
    assert [e.factor for e in pair(0, lag_ms=29_999).engines] == [1.0, 1.0]
    assert (
        lost_telemetry(pair(0, lag_ms=30_000))
        == "telemetry lost: none of 2 engines is heard of, the last weights stand"
    )


def test_demand_is_as_late_as_the_pipe_and_not_gone_for_it() -> None:
    late = problem_of(spec("e1"), engine_state("e1", NOW_MS - 20_000), demand_state("A", 9.0, NOW_MS - 20_000))
    assert [(r.demand_rps, r.demand_held) for r in late.rows] == [(9.0, False)]
    gone = problem_of(spec("e1"), engine_state("e1"), demand_state("A", 9.0, NOW_MS - 15_000))
    assert [(r.demand_rps, r.demand_held) for r in gone.rows] == [(9.0, True)]


def latency(metric: Metric, count: int, mean_s: float | None, smoothed_s: float | None = None) -> LatencyState:
    return LatencyState("m", metric, count, mean_s, mean_s if smoothed_s is None else smoothed_s, None, None, None)


def state(*latencies: LatencyState, **fields: object) -> EngineState:
    return engine_state("e1", **{"latencies": latencies, "covered_ms": 10_000, **fields})


def measured(told: EngineState, **of_profile: object) -> Measured | None:
    return measure(told, pooled_window(told.latencies), profile(**of_profile))


def through(told: EngineState) -> Throughput | None:
    return throughput(told, pooled_window(told.latencies))


def test_an_engine_is_measured_at_the_length_of_answers_of_its_profile() -> None:
    found = measured(
        state(
            latency(Metric.E2E, 200, 9.0),
            latency(Metric.TBOT, 200, 0.02, 0.03),
            latency(Metric.TTFT, 200, 0.5, 0.6),
            running=7.0,
            waiting=2.0,
        ),
        output_tokens=100.0,
    )
    # 200 in 10 s; 0.5 + 100 x 0.02 s, smoothed 0.6 + 100 x 0.03 s.
    assert found == Measured(20.0, pytest.approx(2.5), pytest.approx(3.6), 200, 9.0, 2.0)


def test_without_its_parts_the_whole_is_taken_as_it_is() -> None:
    found = measured(state(latency(Metric.E2E, 50, 1.5), running=None))
    assert found == Measured(5.0, 1.5, 1.5, 50, None, as_they_came=True)


def test_what_goes_through_an_engine_is_counted_and_what_is_inside_it_told() -> None:
    told = state(latency(Metric.E2E, 200, 9.0), latency(Metric.TTFT, 220, 0.5), running=7.0, waiting=2.0)
    found = through(replace(told, finished_rps=18.0))
    assert found is not None
    assert (found.running, found.waiting, found.recent_rps) == (7.0, 2.0, 18.0)
    assert (found.window_rps, found.window_s, found.signal_ms) == (20.0, 10.0, told.last_signal_ms)
    assert through(replace(told, waiting=None)) is None


def test_an_engine_that_finishes_nothing_has_a_throughput_of_zero() -> None:
    found = through(replace(state(running=7.0, waiting=200.0), finished_rps=0.0))
    assert found is not None
    assert (found.recent_rps, found.window_rps) == (0.0, 0.0)


def test_models_are_weighted_by_their_requests() -> None:
    other = LatencyState("n", Metric.E2E, 150, 3.0, 3.0, None, None, None)
    found = measured(state(latency(Metric.E2E, 50, 1.0), other))
    assert found is not None
    assert found.latency_s == pytest.approx(2.5)


@pytest.mark.parametrize(
    "unknown",
    [
        state(),
        state(latency(Metric.E2E, 0, None)),
        state(latency(Metric.E2E, 50, 1.0), covered_ms=None),
        state(latency(Metric.TTFT, 50, 1.0)),
    ],
    ids=["nothing", "no traffic", "cover unknown", "no whole"],
)
def test_what_is_not_measured_is_not_guessed(unknown: EngineState) -> None:
    assert measured(unknown) is None


def test_an_excluded_engine_is_not_measured() -> None:
    busy = engine_state("e1", replicas_ready=0, latencies=(latency(Metric.E2E, 50, 1.0),), covered_ms=10_000)
    (engine,) = problem_of(spec("e1"), profile(), busy).engines
    assert engine.measured is None
