"""Windows of running engines as stages of load tests: numbers by hand, and what is left out by its reason."""

from dataclasses import replace

import pytest

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.signals import Distribution, EngineSignals, EngineStatus, Health, Metric, Vantage
from headrace.schemas.state import EngineState, Invalid, LatencyState
from headrace.solver.core.profile.fit_profile import FittedProfile, fit_profiles
from headrace.solver.core.profile.windows import WindowFold
from solver_inputs import NOW_MS, engine_state, profile, spec

TOKENS = 50.0


def latency(metric: Metric, count: int, mean_s: float, smoothed_s: float | None = None) -> LatencyState:
    return LatencyState("m", metric, count, mean_s, mean_s if smoothed_s is None else smoothed_s, None, None, None)


def window(engine_id: str, at: int, rate: float, ttft_s: float, tbot_s: float, **fields: object) -> EngineState:
    """A window of 10 s that ends `at` windows after NOW_MS, of two replicas that serve `rate` RPS each."""
    count = round(20 * rate)
    means = {Metric.TTFT: ttft_s, Metric.TBOT: tbot_s, Metric.E2E: ttft_s + TOKENS * tbot_s}
    latencies = tuple(latency(metric, count, mean) for metric, mean in means.items())
    state = engine_state(engine_id, NOW_MS + 10_000 * at, replicas_ready=2, covered_ms=10_000, latencies=latencies)
    return replace(state, **fields)


def fold(profiles: dict[str, LatencyProfile] | None = None) -> WindowFold:
    specs = {name: spec(name) for name in ("e1", "e2")}
    return WindowFold(specs, {"p": profile()} if profiles is None else profiles, "a topic")


def test_a_window_is_a_stage_of_one_replica_at_the_concurrency_of_little_s_law() -> None:
    seen = fold()
    seen.offer_state(window("e1", 0, 4.0, 0.2, 0.01))
    (test,) = seen.tests()
    (stage,) = test.stages
    assert (test.labels.profile_id, test.labels.hardware, test.labels.model) == ("p", "gpu", "m")
    assert test.labels.source == "a topic: 1 windows of 1 engine"
    assert stage.completed_rps == pytest.approx(4.0)
    assert stage.output_tokens == pytest.approx(TOKENS)
    assert stage.concurrency == pytest.approx(4.0 * 0.7)
    assert stage.offered_rps is None


def test_engines_of_one_profile_are_one_load_test_and_an_unknown_engine_is_one_of_its_own() -> None:
    seen = fold()
    for name in ("e1", "e2", "stranger"):
        seen.offer_state(window(name, 0, 4.0, 0.2, 0.01))
    assert [(t.labels.profile_id, len(t.stages), t.labels.model) for t in seen.tests()] == [
        ("p", 2, "m"),
        ("stranger", 1, "unknown"),
    ]


def test_what_cannot_be_used_is_left_out_and_counted_by_its_reason() -> None:
    seen = fold()
    seen.offer_state(window("e1", 0, 4.0, 0.2, 0.01))
    seen.offer_state(replace(window("e1", 0, 4.0, 0.2, 0.01), as_of_ms=NOW_MS + 500))
    seen.offer_state(window("e1", 2, 4.0, 0.2, 0.01, invalid=Invalid.LOW_COVERAGE))
    seen.offer_state(window("e1", 3, 0.5, 0.2, 0.01))
    seen.offer_state(window("e1", 4, 4.0, 0.2, 0.01, replicas_ready=0))
    seen.offer_state(window("e1", 5, 4.0, 0.2, 0.01, latencies=(latency(Metric.TTFT, 80, 0.2, 0.3),)))
    seen.offer_state(window("e1", 6, 4.0, 0.2, 0.01, latencies=(latency(Metric.E2E, 80, 0.7),)))
    assert dict(seen.left_out) == {
        "overlaps the one before": 1,
        "not valid": 1,
        "of fewer than 20 requests": 1,
        "without a ready replica": 1,
        "of a load that changes": 1,
        "without TTFT and TBOT, or a way to tell the tokens of an answer": 1,
    }
    assert len(seen.tests()[0].stages) == 1


def test_without_an_end_to_end_time_the_tokens_are_those_of_the_profile() -> None:
    seen = fold()
    seen.offer_state(
        window("e1", 0, 4.0, 0, 0, latencies=(latency(Metric.TTFT, 80, 0.2), latency(Metric.TBOT, 80, 0.01)))
    )
    (stage,) = seen.tests()[0].stages
    assert stage.output_tokens == 100.0
    assert stage.e2e_s == pytest.approx(0.2 + 100 * 0.01)


def signals(start_ms: int, end_ms: int, vantage: Vantage = Vantage.ENGINE) -> EngineSignals:
    sums = {Metric.TTFT: 0.2, Metric.TBOT: 0.01, Metric.E2E: 0.7}
    told = tuple(Distribution("m", metric, 8, 8 * s, None, None, 0, 0, ()) for metric, s in sums.items())
    status = EngineStatus(Health.HEALTHY, 2, 2, 2, None, None, None)
    return EngineSignals("e1", "s", vantage, start_ms, end_ms, told, status)


def test_periods_of_signals_add_up_to_windows() -> None:
    seen = fold()
    for i in range(25):
        seen.offer_signals(signals(NOW_MS + 1000 * i, NOW_MS + 1000 * (i + 1)))
    seen.offer_signals(signals(NOW_MS + 25_000, NOW_MS + 26_000, Vantage.GATEWAY))
    stages = seen.tests()[0].stages
    assert [s.completed_rps for s in stages] == pytest.approx([4.0, 4.0]), "80 in 10 s of two replicas, twice"
    assert dict(seen.left_out) == {"not seen from the engine": 1}


def test_a_profile_fitted_to_windows_finds_the_engine_s_wall_and_its_curve() -> None:
    # A batch whose step takes 10 ms and 0.1 ms more for each request in it; 40 fit, and the rest wait before TTFT.
    seen = fold()
    for at, concurrency in enumerate((2, 4, 8, 12, 16, 20, 25, 30, 35, 40, 60, 80)):
        running = min(concurrency, 40)
        tbot = 0.01 + 0.0001 * running
        rate = running / (0.1 + TOKENS * tbot)
        ttft = 0.1 + (concurrency - running) / rate
        seen.offer_state(window("e1", at, rate, ttft, tbot))
    (outcome,) = fit_profiles(seen.tests())
    assert isinstance(outcome, FittedProfile)
    wall = 40 / (0.1 + TOKENS * 0.014)
    assert outcome.wall.reached
    assert outcome.profile.capacity_rps == pytest.approx(wall, rel=0.02)
    assert outcome.profile.fit_error_p90 == pytest.approx(0.0, abs=0.05)
