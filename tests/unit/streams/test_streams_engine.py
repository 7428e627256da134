import math
from dataclasses import replace

import pytest

from headrace.schemas.check_state import check_state
from headrace.schemas.codec import encode
from headrace.schemas.histogram import RELATIVE_ERROR, pack
from headrace.schemas.signals import Distribution, EngineSignals, EngineStatus, Health, Metric, Vantage
from headrace.schemas.state import EngineState, Invalid
from headrace.streams.core.engine import EngineAccumulator, fold_engine
from headrace.streams.core.window import Outcome
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings()
BOUND = RELATIVE_ERROR + 1e-9
READY = EngineStatus(Health.HEALTHY, 2, 2, 2, 5.0, 0.0, 0.25)


def ttft(*values: float, model: str = "m") -> Distribution:
    zeros, first, counts = pack(values)
    return Distribution(
        model, Metric.TTFT, len(values), math.fsum(values), min(values, default=None), max(values, default=None),
        zeros, first, counts,
    )  # fmt: skip


def signals(
    end_ms: int,
    *distributions: Distribution,
    status: EngineStatus | None = READY,
    length_ms: int = 1_000,
    vantage: Vantage = Vantage.ENGINE,
    source: str = "s",
) -> EngineSignals:
    return EngineSignals("e1", source, vantage, end_ms - length_ms, end_ms, distributions, status)


def folded(*sequence: EngineSignals, settings: StreamsSettings = SETTINGS) -> EngineState:
    accumulator = EngineAccumulator("e1", settings)
    for offset, each in enumerate(sequence):
        accumulator.apply(each, offset, each.period_end_ms + 5)
    state = accumulator.state()
    assert check_state(state) == ()
    return state


def test_the_mean_is_the_sum_over_the_count_of_the_window_whatever_the_buckets() -> None:
    state = folded(signals(1_000, ttft(0.1, 0.2)), signals(2_000, ttft(0.6)))
    (latency,) = state.latencies
    assert (latency.model, latency.metric, latency.count) == ("m", Metric.TTFT, 3)
    assert latency.mean_s == pytest.approx(0.3)


def test_the_eleventh_pane_pushes_the_first_out_of_the_window() -> None:
    sequence = [signals(1_000, ttft(9.0))] + [signals(1_000 * i, ttft(0.5)) for i in range(2, 12)]
    (latency,) = folded(*sequence).latencies
    assert (latency.count, latency.mean_s) == (10, 0.5)
    assert latency.p99_s == 0.5


def test_percentiles_are_within_the_layouts_error_and_inside_what_was_measured() -> None:
    values = [0.01 * i for i in range(1, 101)]
    (latency,) = folded(signals(1_000, ttft(*values))).latencies
    assert latency.p50_s == pytest.approx(0.50, rel=BOUND)
    assert latency.p95_s == pytest.approx(0.95, rel=BOUND)
    assert latency.p99_s is not None
    assert latency.p99_s <= 1.0


def test_no_traffic_is_a_count_of_zero_with_the_latency_unknown_and_the_engine_fine() -> None:
    state = folded(signals(1_000, ttft()))
    (latency,) = state.latencies
    assert latency.count == 0
    assert latency.mean_s is latency.smoothed_s is latency.p50_s is None
    assert (state.health, state.invalid, state.coverage) == (Health.HEALTHY, Invalid.NO, 0.1)


def test_a_smoothed_latency_stays_when_traffic_ends() -> None:
    sequence = [signals(1_000, ttft(0.4))] + [signals(1_000 * i, ttft()) for i in range(2, 20)]
    (latency,) = folded(*sequence).latencies
    assert (latency.count, latency.mean_s, latency.smoothed_s) == (0, None, 0.4)


def test_measured_zeros_are_zero_and_not_missing() -> None:
    (latency,) = folded(signals(1_000, ttft(0.0, 0.0))).latencies
    assert (latency.count, latency.mean_s, latency.p50_s) == (2, 0.0, 0.0)


def test_zeros_beside_positive_values_count_towards_the_lower_percentiles() -> None:
    (latency,) = folded(signals(1_000, ttft(0.0, 0.0, 0.0, 8.0))).latencies
    assert latency.p50_s == 0.0
    assert latency.p99_s == pytest.approx(8.0, rel=BOUND)


def test_without_buckets_the_mean_is_known_and_the_percentiles_are_not() -> None:
    bare = Distribution("m", Metric.E2E, 4, 2.0, None, None, 0, 0, ())
    (latency,) = folded(signals(1_000, bare)).latencies
    assert (latency.count, latency.mean_s, latency.p50_s) == (4, 0.5, None)


def test_bad_news_shows_within_two_seconds_and_good_news_slowly() -> None:
    slow = folded(signals(1_000, ttft(0.1)), signals(2_000, ttft(1.1)))
    assert slow.latencies[0].smoothed_s == pytest.approx(0.1 + 1.0 * (1 - math.exp(-0.5)))
    fast = folded(signals(1_000, ttft(1.1)), signals(2_000, ttft(0.1)))
    assert fast.latencies[0].smoothed_s == pytest.approx(1.1 - 1.0 * (1 - math.exp(-0.1)))


def test_two_sources_of_one_second_give_the_same_in_either_order() -> None:
    one, other = signals(2_000, ttft(0.1), source="a"), signals(2_000, ttft(0.5, 0.9), source="b")
    first = signals(1_000, ttft(0.2))
    a, b = folded(first, one, other).latencies[0], folded(first, other, one).latencies[0]
    assert a == b
    assert a.count == 4


def test_late_beyond_the_grace_is_counted_and_not_applied() -> None:
    state = folded(signals(10_000, ttft(0.1)), signals(7_000, ttft(5.0)))
    assert (state.late, state.latencies[0].count, state.last_signal_ms, state.applied_offset) == (1, 1, 10_000, 1)


def test_within_the_grace_an_older_period_is_applied_and_the_watermark_stays() -> None:
    state = folded(signals(10_000, ttft(0.1)), signals(8_000, ttft(0.3)))
    assert (state.late, state.latencies[0].count, state.last_signal_ms, state.as_of_ms) == (0, 2, 10_000, 10_000)


def test_a_duplicate_by_offset_changes_nothing() -> None:
    accumulator = EngineAccumulator("e1", SETTINGS)
    assert accumulator.apply(signals(1_000, ttft(0.1)), 7, 0) is Outcome.APPLIED
    before = accumulator.state()
    assert accumulator.apply(signals(1_000, ttft(0.1)), 7, 0) is Outcome.DUPLICATE
    assert accumulator.apply(signals(2_000, ttft(0.9)), 3, 0) is Outcome.DUPLICATE
    assert accumulator.state() == before


def test_coverage_is_the_share_of_the_window_that_periods_covered() -> None:
    assert folded(signals(1_000), signals(2_000), signals(5_000)).coverage == pytest.approx(0.3)
    assert folded(signals(10_000, length_ms=10_000)).coverage == 1.0


def test_the_open_panes_future_does_not_lower_the_coverage() -> None:
    quarter_seconds = [signals(250 * i, length_ms=250) for i in range(1, 60)]
    assert folded(*quarter_seconds).coverage == 1.0


def test_low_coverage_makes_a_state_invalid_and_says_so() -> None:
    strict = StreamsSettings(min_coverage=0.5)
    assert folded(signals(1_000), settings=strict).invalid is Invalid.LOW_COVERAGE
    assert folded(signals(5_000, length_ms=5_000), settings=strict).invalid is Invalid.NO


def test_an_older_status_does_not_replace_a_newer_one() -> None:
    down = EngineStatus(Health.UNHEALTHY, 2, 0, 0, None, None, None)
    state = folded(signals(10_000, status=down), signals(9_000, status=READY))
    assert (state.health, state.replicas_ready, state.running) == (Health.UNHEALTHY, 0, None)


def test_a_status_that_is_held_over_is_named_as_filled_in() -> None:
    state = folded(signals(1_000, status=READY), signals(2_000, ttft(0.1), status=None))
    assert (state.health, state.filled) == (Health.HEALTHY, ("STATUS_HELD",))
    assert folded(signals(1_000, status=READY)).filled == ()
    assert folded(signals(1_000, status=None)).health is Health.UNKNOWN


def test_what_a_gateway_saw_is_kept_apart_and_does_not_keep_a_silent_engine_fresh() -> None:
    state = folded(signals(1_000, ttft(0.1)), signals(9_000, ttft(3.0), vantage=Vantage.GATEWAY))
    assert (state.last_signal_ms, state.latencies[0].count, state.applied_offset) == (1_000, 1, 1)


def test_an_engine_of_which_only_a_gateway_spoke_has_no_signal_yet() -> None:
    gateway = signals(9_000, ttft(3.0), vantage=Vantage.GATEWAY)
    state = folded(gateway)
    assert (state.invalid, state.as_of_ms, state.latencies, state.applied_offset) == (
        Invalid.NO_SIGNAL_YET, 0, (), 0,
    )  # fmt: skip
    again = fold_engine(state, gateway, 0, 0, SETTINGS)
    assert again == state
    assert fold_engine(state, signals(2_000, ttft(0.1)), 1, 0, SETTINGS).last_signal_ms == 2_000


def test_models_and_metrics_come_sorted_whatever_came_first() -> None:
    state = folded(signals(1_000, ttft(0.1, model="z"), ttft(0.1, model="a")))
    assert [latency.model for latency in state.latencies] == ["a", "z"]


def test_series_beyond_the_bound_are_dropped_and_the_state_says_so() -> None:
    many = [signals(1_000 * i, *(ttft(0.1, model=f"m{i}-{j}") for j in range(1_000))) for i in (1, 2)]
    state = folded(*many)
    assert len(state.latencies) == 1_024
    assert state.filled == ("SERIES_DROPPED",)
    resumed = fold_engine(state, signals(3_000), 2, 0, SETTINGS)
    assert resumed.filled == ("SERIES_DROPPED",)


def test_a_series_without_an_entry_in_the_window_gives_its_place_to_a_new_one() -> None:
    first = signals(1_000, *(ttft(0.1, model=f"old-{j}") for j in range(1_024)))
    other = signals(2_000, ttft(0.2, model="old-7"), ttft(0.3, model="new"))
    crowded = folded(first, other)
    assert crowded.filled == ("SERIES_DROPPED",)
    assert "new" not in {latency.model for latency in crowded.latencies}
    later = replace(other, period_start_ms=12_000, period_end_ms=13_000)
    for state in (folded(first, other, signals(12_000), later), _one_by_one(first, other, signals(12_000), later)):
        assert (len(state.latencies), state.filled) == (1_024, ())
        smoothed = {latency.model: latency.smoothed_s for latency in state.latencies}
        assert smoothed["new"] == 0.3
        assert "old-0" not in smoothed
        assert smoothed["old-7"] is not None


def test_a_state_is_bounded_its_oldest_histograms_go_first_and_it_says_so() -> None:
    wide = (10**9,) * 320
    many = [
        signals(1_000 * second, *(
            Distribution(f"lora-{i}", metric, 10**9 * 320, 1.0, None, None, 0, -160, wide)
            for i in range(256) for metric in (Metric.TTFT, Metric.TBOT, Metric.E2E, Metric.QUEUE)
        ))
        for second in range(1, 13)
    ]  # fmt: skip
    state = folded(*many)
    assert len(encode(state)) < 4 * 1024 * 1024
    assert state.filled == ("HISTOGRAMS_DROPPED",)
    assert {latency.count for latency in state.latencies} == {10 * 10**9 * 320}
    assert encode(state) == encode(_one_by_one(*many))
    after = folded(*many, *(signals(1_000 * second, ttft(0.1)) for second in range(13, 24)))
    assert after.filled == ()


def test_entries_without_histograms_are_bounded_too_and_the_oldest_go_first() -> None:
    long = StreamsSettings(window_ms=120_000)
    one = signals(1_000, *(ttft(model=f"m{j}") for j in range(1_000)))
    thin = [
        replace(each, distributions=tuple(replace(d, count=1, sum_s=0.5) for d in each.distributions))
        for each in (replace(one, period_start_ms=1_000 * i, period_end_ms=1_000 * i + 1_000) for i in range(60))
    ]
    state = folded(*thin, settings=long)
    assert len(encode(state)) < 4 * 1024 * 1024
    assert state.filled == ("SERIES_DROPPED",)
    assert {latency.mean_s for latency in state.latencies} == {0.5}


def _one_by_one(*sequence: EngineSignals) -> EngineState:
    state = None
    for offset, each in enumerate(sequence):
        state = fold_engine(state, each, offset, each.period_end_ms + 5, SETTINGS)
    assert state is not None
    return state


def test_large_counts_survive_packing() -> None:
    huge = Distribution("m", Metric.TTFT, 3 * 10**11 + 70_300, 1e6, None, None, 0, -8, (3 * 10**11, 70_000, 300))
    state = folded(signals(1_000, huge))
    again = fold_engine(state, signals(2_000), 1, 0, SETTINGS)
    assert again.latencies[0].count == 3 * 10**11 + 70_300
    assert again.latencies[0].p50_s == state.latencies[0].p50_s


def test_panes_of_another_version_or_length_begin_a_new_window_and_keep_the_guard_against_duplicates() -> None:
    state = folded(signals(5_000, ttft(0.1)))
    for panes in (b"", b"\xff" + state.panes[1:], state.panes + b"x", state.panes[:-1]):
        strange = EngineState(**{name: getattr(state, name) for name in EngineState.__slots__} | {"panes": panes})
        assert fold_engine(strange, signals(6_000, ttft(0.3)), 0, 0, SETTINGS).applied_offset == 0
        resumed = fold_engine(strange, signals(6_000, ttft(0.3)), 1, 0, SETTINGS)
        assert (resumed.latencies[0].count, resumed.latencies[0].mean_s, resumed.late) == (1, 0.3, 0)
        assert fold_engine(strange, signals(2_000, ttft(0.3)), 1, 0, SETTINGS).late == 1
    finer = fold_engine(state, signals(6_000, ttft(0.3)), 1, 0, StreamsSettings(pane_ms=500))
    assert finer.latencies[0].count == 1


def test_a_narrower_window_takes_effect_with_the_next_signal() -> None:
    state = folded(*(signals(1_000 * i, ttft(0.1)) for i in range(1, 11)))
    narrow = fold_engine(state, signals(11_000, ttft(0.1)), 10, 0, StreamsSettings(window_ms=5_000))
    assert narrow.latencies[0].count == 5
    assert narrow.coverage == 1.0


def test_a_long_period_counts_where_it_ends_and_covers_what_it_spans() -> None:
    state = folded(signals(60_000, ttft(0.2), length_ms=60_000))
    assert (state.coverage, state.latencies[0].count) == (1.0, 1)


@pytest.mark.parametrize("length_ms", [0, 1])
def test_a_period_of_no_length_counts_and_covers_nothing_to_speak_of(length_ms: int) -> None:
    state = folded(signals(1_000, ttft(0.2), length_ms=length_ms), settings=StreamsSettings(min_coverage=0.0))
    assert (state.coverage, state.latencies[0].count) == (length_ms / 10_000, 1)
