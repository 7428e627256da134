import math
from dataclasses import replace
from struct import pack

import pytest

from headrace.schemas.check_state import check_state
from headrace.schemas.ids import RouteKey
from headrace.schemas.signals import Demand
from headrace.schemas.state import DemandState, Invalid
from headrace.streams.core.demand import DemandAccumulator, arrivals, fold_demand
from headrace.streams.core.packing import HEAD
from headrace.streams.core.taken_back import Followed
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings()
ROUTE = RouteKey("c", "m", "default")


def demand(end_ms: int, offered: int, length_ms: int = 1_000, rejected: int = 0, retries: int = 0) -> Demand:
    return Demand(*ROUTE, "gw", end_ms - length_ms, end_ms, offered, rejected, retries)


def folded(*sequence: Demand, settings: StreamsSettings = SETTINGS) -> DemandState:
    accumulator = DemandAccumulator(ROUTE, settings)
    for offset, each in enumerate(sequence):
        accumulator.apply(each, offset, each.period_end_ms + 5)
    state = accumulator.state()
    assert check_state(state) == ()
    return state


def test_the_rate_is_arrivals_over_the_seconds_that_were_covered() -> None:
    state = folded(demand(1_000, 90), demand(2_000, 110), demand(5_000, 130))
    assert state.rate_rps == 110.0
    assert state.coverage == 0.3


def test_rejects_and_retries_are_parts_apart() -> None:
    state = folded(demand(1_000, 90, rejected=9, retries=4), demand(2_000, 110, rejected=1))
    assert (state.rate_rps, state.rejected_rps, state.retry_rps) == (100.0, 5.0, 2.0)


def test_a_period_over_several_panes_is_spread_by_time_and_adds_up() -> None:
    # 10 requests over (500, 3000]: a fifth, two fifths, two fifths
    state = folded(demand(3_000, 10, length_ms=2_500))
    assert state.peak_1s_rps == 4.0
    assert state.rate_rps == 4.0
    assert state.coverage == 0.25


def test_what_of_a_long_period_lies_before_the_window_is_left_out() -> None:
    state = folded(demand(60_000, 6_000, length_ms=60_000))
    assert (state.rate_rps, state.coverage) == (100.0, 1.0)


def test_no_arrivals_is_a_measured_zero_and_no_report_is_unknown() -> None:
    assert folded(demand(1_000, 0)).smoothed_rps == 0.0
    assert folded(demand(1_000, 0, length_ms=0), settings=StreamsSettings(min_coverage=0)).rate_rps is None


def test_the_gateways_of_a_cluster_are_added_up() -> None:
    state = folded(demand(1_000, 40), demand(1_000, 50))
    assert (state.rate_rps, state.smoothed_rps, state.peak_1s_rps) == (90.0, 90.0, 90.0)


def test_a_pane_that_half_of_the_gateways_reported_does_not_pull_the_smoothed_rate_down() -> None:
    full = [demand(1_000 * i, 45) for i in range(1, 9) for _ in range(2)]
    assert folded(*full, demand(9_000, 45)).smoothed_rps == 90.0
    assert folded(*full, demand(9_000, 45), demand(9_000, 45)).smoothed_rps == 90.0


def test_a_gateway_that_is_gone_counts_as_gone_once_the_next_second_came() -> None:
    full = [demand(1_000 * i, 45) for i in range(1, 9) for _ in range(2)]
    one = [demand(1_000 * i, 45) for i in range(9, 30)]
    assert folded(*full, *one).smoothed_rps == pytest.approx(45.0)


def test_the_smoothed_rate_is_the_mean_until_as_much_is_known_as_its_time_constant() -> None:
    assert folded(demand(1_000, 90), demand(2_000, 96)).smoothed_rps == pytest.approx(93.0)
    long = [demand(1_000 * i, 90) for i in range(1, 60)]
    assert folded(*long, demand(60_000, 96)).smoothed_rps == pytest.approx(90 + 6 / 30)


def test_a_step_is_taken_as_it_is_after_two_seconds() -> None:
    steady = [demand(1_000 * i, 120) for i in range(1, 11)]
    assert folded(*steady, demand(11_000, 240), demand(12_000, 240)).smoothed_rps == 240.0


def test_a_small_step_is_seen_once_it_is_more_than_chance_and_then_taken_whole() -> None:
    # 100 to 120 after a minute: four deviations are 4 sqrt(120 (1/n + 1/30)), and 20 is above that from n = 6 on
    steady = [demand(1_000 * i, 100) for i in range(1, 61)]
    more = [demand(1_000 * i, 120) for i in range(61, 67)]
    assert folded(*steady, *more[:-1]).smoothed_rps < 105.0
    assert folded(*steady, *more).smoothed_rps == pytest.approx(120.0)


def test_a_state_whose_base_has_no_evidence_is_taken_up_as_six_seconds_of_it() -> None:
    old = folded(*[demand(1_000 * i, 90) for i in range(1, 13)])
    bare = DemandAccumulator.resume(old, SETTINGS)
    assert bare.base is not None
    packed = bytearray(old.panes)
    packed[HEAD.size] = 1
    del packed[HEAD.size + 19 : HEAD.size + 27]
    resumed = DemandAccumulator.resume(replace(old, panes=bytes(packed)), SETTINGS)
    assert resumed.base == Followed(bare.base.level._replace(evidence_s=6.0))
    assert resumed.state().rate_rps == 90.0


LEVELS = {
    "before any step": [100] * 60,
    "after a pause": [*[100] * 60, *[80] * 7],
    "after traffic went on": [*[100] * 60, *[80] * 5, *[127] * 5],
}
"""Seconds of which the level is written in one way, in another, and in a third."""


@pytest.mark.parametrize("offered", LEVELS.values(), ids=LEVELS)
def test_a_fold_that_is_taken_up_after_each_second_goes_on_as_if_it_had_not_been(offered: list[int]) -> None:
    whole, parts = DemandAccumulator(ROUTE, SETTINGS), DemandAccumulator(ROUTE, SETTINGS)
    for i, count in enumerate(offered):
        for fold in (whole, parts):
            fold.apply(demand(1_000 * (i + 1), count), i, 0)
        parts = DemandAccumulator.resume(parts.state(), SETTINGS)
        assert (parts.base, parts.state()) == (whole.base, whole.state())
    assert [rps for *_, rps in arrivals(whole.state())] == offered[-10:]


def test_after_a_pause_the_state_tells_the_level_from_before_it() -> None:
    pause = [demand(1_000 * (i + 1), count) for i, count in enumerate([*[100] * 60, *[80] * 5, 127, 127])]
    assert folded(*pause[:-2]).smoothed_rps == pytest.approx(80.0)
    assert folded(*pause).smoothed_rps == pytest.approx((25 * 100 + 2 * 127) / 27)


def test_a_level_that_no_fold_has_written_begins_a_new_window() -> None:
    state = folded(*[demand(1_000 * i, 90) for i in range(1, 6)])
    kind, rps, evidence = HEAD.size, HEAD.size + 1, HEAD.size + 19
    for at, written in ((kind, b"\5"), (rps, pack("<d", math.nan)), (evidence, pack("<d", 0.0))):
        strange = bytearray(state.panes)
        strange[at : at + len(written)] = written
        resumed = fold_demand(replace(state, panes=bytes(strange)), demand(6_000, 50), 5, 0, SETTINGS)
        assert (resumed.rate_rps, resumed.smoothed_rps, resumed.applied_offset) == (50.0, 50.0, 5)
        assert arrivals(replace(state, panes=bytes(strange))) == ()


def test_one_burst_at_a_nearly_idle_route_is_no_step() -> None:
    idle = [demand(1_000 * i, 0) for i in range(1, 11)]
    state = folded(*idle, demand(11_000, 3))
    assert state.smoothed_rps == pytest.approx(3 / 11)


def test_a_pane_that_is_less_than_half_covered_says_nothing_of_its_rate() -> None:
    state = folded(demand(1_000, 90), demand(1_300, 90, length_ms=300), demand(3_000, 90))
    assert state.smoothed_rps == pytest.approx(90.0)
    assert state.peak_1s_rps == 90.0


def test_a_gap_is_no_zero() -> None:
    state = folded(demand(1_000, 90), demand(9_000, 90))
    assert (state.rate_rps, state.smoothed_rps) == (90.0, 90.0)


def test_a_second_that_is_not_over_is_not_smoothed_yet() -> None:
    state = folded(demand(1_000, 90), demand(1_500, 9, length_ms=500))
    assert state.smoothed_rps == 90.0
    assert state.rate_rps == 66.0


def test_late_is_counted_and_not_applied_and_a_duplicate_changes_nothing() -> None:
    state = folded(demand(10_000, 90), demand(5_000, 400))
    assert (state.late, state.rate_rps, state.applied_offset) == (1, 90.0, 1)
    assert fold_demand(state, demand(10_000, 90), 1, 0, SETTINGS) == state


def test_low_coverage_is_said() -> None:
    assert folded(demand(1_000, 9), settings=StreamsSettings(min_coverage=0.2)).invalid is Invalid.LOW_COVERAGE


def test_panes_of_another_hand_begin_a_new_window() -> None:
    state = folded(demand(1_000, 90))
    for panes in (b"", state.panes + b"x"):
        strange = DemandState(**{name: getattr(state, name) for name in DemandState.__slots__} | {"panes": panes})
        resumed = fold_demand(strange, demand(2_000, 50), 1, 0, SETTINGS)
        assert (resumed.rate_rps, resumed.smoothed_rps, resumed.applied_offset) == (50.0, 50.0, 1)


def test_the_first_state_is_that_of_its_one_signal() -> None:
    assert fold_demand(None, demand(1_000, 90), 0, 7, SETTINGS).signal_timestamp_ms == 7
