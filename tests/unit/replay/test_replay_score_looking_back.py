"""What came after a tick tells what was while it stood: what arrived, how long answers were, who was left out."""

from dataclasses import replace

import numpy as np
import pytest

from headrace.replay.core.told import Arrived, Lengths, Teller, Told, pooled
from headrace.replay.score.calibration import calibrate
from headrace.replay.score.length_spread import equal_lengths
from headrace.replay.score.looking_back import LookingBack
from headrace.replay.score.measured import NOTHING_MEASURED, MeasuredFleet, Shown, measured_fleet
from headrace.replay.score.placement import Numbers, Placement, Placer
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of
from headrace.replay.score.suspected import Met, Suspected
from headrace.replay.score.variant import score_variant
from headrace.schemas.ids import RouteKey
from headrace.schemas.signals import Demand, Health, Metric
from headrace.schemas.state import DemandState, EngineState, Invalid, LatencyState
from headrace.solver.core.inputs.state_view import StateView
from headrace.streams.core.demand import arrivals, fold_demand
from headrace.streams.settings import StreamsSettings
from played_ticks import START_MS, played, route, snapshot
from solver_problems import engine, problem, profile, row

LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))
ALIKE = replace(NOTHING_MEASURED, spread=equal_lengths())
PLAIN = ScoreSettings(cold_share=0.0, chance=0.0)
ROUTE = RouteKey("A", "m", "default")


def demanded(*counts: int) -> DemandState:
    state: DemandState | None = None
    for second, count in enumerate(counts):
        begin_ms = START_MS + 1000 * second
        told = Demand("A", "m", "default", "g", begin_ms, begin_ms + 1000, count, 0, 0)
        state = fold_demand(state, told, second, begin_ms + 1000, StreamsSettings())
    assert state is not None
    return state


# --- what states tell -----------------------------------------------------------------------------------------------


def test_a_state_of_demand_tells_what_arrived_in_each_of_its_panes() -> None:
    seconds = [(START_MS + 1000 * s, START_MS + 1000 * (s + 1)) for s in range(3)]
    assert arrivals(demanded(5, 50, 7)) == tuple((*at, rps) for at, rps in zip(seconds, (5.0, 50.0, 7.0), strict=True))


def test_panes_that_are_not_there_or_not_ours_tell_nothing() -> None:
    assert arrivals(replace(demanded(5), panes=b"")) == ()
    assert arrivals(replace(demanded(5), panes=b"\x09" + demanded(5).panes[1:])) == ()


def view(demand: DemandState | None, *engines: EngineState) -> StateView:
    demands = {} if demand is None else {demand.key: demand}
    return StateView({}, {}, {state.key: state for state in engines}, demands, {})


def shown(second: int, ttft_s: float, whole_s: float, count: int = 100) -> EngineState:
    means = ((Metric.TTFT, ttft_s), (Metric.TBOT, 0.01), (Metric.E2E, whole_s))
    latencies = tuple(LatencyState("m", metric, count, s, s, s, s, s) for metric, s in means)
    return EngineState(
        "e", START_MS + 1000 * second, 0, 0, Health.HEALTHY, 1, 1, 1, 1.0, 0.0, None, latencies, 1.0, (), Invalid.NO,
        0, 0, b"", covered_ms=10_000,
    )  # fmt: skip


def told_of(teller: Teller, seen: StateView) -> Told:
    return teller.tell(seen.demands, pooled(seen.engines))


def test_a_state_is_told_once() -> None:
    teller, state = Teller(), demanded(5)
    assert told_of(teller, view(state)).arrived == (Arrived(ROUTE, arrivals(state)),)
    assert told_of(teller, view(state)).arrived == ()


def test_tokens_are_what_follows_the_first_one_over_the_time_between_two() -> None:
    (lengths,) = told_of(Teller(), view(None, shown(10, 0.1, 0.6))).lengths
    assert lengths.tokens == pytest.approx(50.0)
    # The middle of the window, less the half second for which they were decoded.
    assert lengths.at_ms == START_MS + 5_000 - 500


def test_a_queue_that_grows_is_not_taken_for_shorter_answers() -> None:
    teller = Teller()
    # The wait grows by 0.1 s a second, and each answer takes 2 s after its first token: 200 tokens.
    found = [told_of(teller, view(None, shown(10 + s, 0.1 * s, 0.1 * (s - 2) + 2.0))).lengths for s in range(12)]
    assert [round(lengths.tokens) for (lengths,) in found[4:]] == [200] * 8


def test_too_few_answers_tell_no_length() -> None:
    assert told_of(Teller(), view(None, shown(10, 0.1, 0.6, count=19))).lengths == ()


# --- what scoring makes of it ---------------------------------------------------------------------------------------


def test_demand_of_a_stretch_is_that_of_the_panes_in_it_and_the_plan_s_where_none_is_told() -> None:
    back = LookingBack()
    back.see(Told((Arrived(ROUTE, ((0, 1000, 4.0), (1000, 2000, 8.0))),)))
    planned = np.array([3.0, 9.0])
    other = RouteKey("B", "m", "default")
    assert back.demand([ROUTE, other], planned, 500, 1500).tolist() == [6.0, 9.0]
    assert back.demand([ROUTE, other], planned, 1500, 2500).tolist() == [8.0, 9.0]
    assert back.demand([ROUTE, other], planned, 2500, 3500).tolist() == [3.0, 9.0]


def test_the_later_word_on_a_pane_counts() -> None:
    back = LookingBack()
    back.see(Told((Arrived(ROUTE, ((0, 1000, 4.0),)),)))
    back.see(Told((Arrived(ROUTE, ((0, 1000, 5.0),)),)))
    assert back.demand([ROUTE], np.zeros(1), 0, 1000).tolist() == [5.0]


def test_lengths_are_read_between_two_tellings() -> None:
    back = LookingBack()
    back.see(Told((), (Lengths("m", 1000, 10.0),)))
    back.see(Told((), (Lengths("m", 3000, 30.0),)))
    assert back.tokens(0, {"n": 7.0}) == {"n": 7.0, "m": 10.0}
    assert back.tokens(2000, {}) == {"m": 20.0}
    assert back.tokens(9000, {}) == {"m": 30.0}


def test_a_surge_that_the_plan_did_not_know_of_yet_makes_its_queue_when_it_came() -> None:
    """10 RPS were planned for throughout; 30 came in seconds 10 to 15, and the tick of second 20 tells so."""
    p = problem([row("A", 9.0)], [engine("e1")], 0.0, (LINE,))
    ticks = [played(float(s), p, {"A": {"e1": 1.0}}) for s in range(40)]
    panes = tuple((START_MS + 1000 * s, START_MS + 1000 * (s + 1), 30.0) for s in range(10, 15))
    told = [replace(t, told=Told((Arrived(ROUTE, panes),))) if s == 20 else t for s, t in enumerate(ticks)]
    rules = replace(PLAIN, queue_per_slot=100.0)
    blind, seeing = (score_variant("x", each, rules, ALIKE) for each in (ticks, told))
    assert blind.sums[Of.OVERLOADED] == 0.0
    # 20 RPS too many for 5 s: 100 waited, and 1 RPS of room drains a few of them until the end.
    assert seeing.sums[Of.OVERLOADED] == pytest.approx(30.0, abs=1.0)
    assert seeing.sums[Of.OFFERED] == pytest.approx(blind.sums[Of.OFFERED] + 5 * 21.0)


def test_calibration_looks_at_the_time_that_was_measured() -> None:
    """Idle for 50 s, busy for 50: what was measured of the second half is held against the second half."""
    ticks = [
        played(float(s), problem([row("A", 1.0 if s < 50 else 9.0)], [engine("e1")], 0.0, (LINE,)), {"A": {"e1": 1.0}})
        for s in range(100)
    ]
    score = score_variant("x", ticks, PLAIN, ALIKE)
    late = MeasuredFleet(
        Shown(1000, 0.28, 0.28), {}, equal_lengths(), {}, from_ms=START_MS + 52_000, to_ms=START_MS + 100_000
    )
    whole = replace(late, from_ms=0, to_ms=0)
    assert calibrate(score, late).rows[0].mean_off == pytest.approx(0.0, abs=0.01)
    assert calibrate(score, whole).rows[0].mean_off == pytest.approx((0.1 * 0.12 + 0.9 * 0.28) / 0.28 - 1.0, abs=0.01)


def test_windows_from_before_the_range_are_not_measured() -> None:
    states = [shown(second, 0.1, 0.6) for second in (5, 12, 20)]
    found = measured_fleet(states, START_MS)
    assert found.fleet.count == 100
    assert (found.from_ms, found.to_ms) == (START_MS + 2_000, START_MS + 12_000)


# --- who is left out ------------------------------------------------------------------------------------------------


def placed(shares: dict[str, float], ttft_s: float | None = 0.1) -> Placement:
    record = route("A", shares)
    record = replace(record, targets=tuple(replace(target, ttft_s=ttft_s) for target in record.targets))
    p = problem([row("A", 10.0)], [engine(e) for e in sorted(shares)], 0.0, (LINE,))
    return Placer(Numbers()).place(p, snapshot((record,), 0))


def left_out(placement: Placement, ttft_s: list[float], seconds: int, rps: float = 10.0) -> list[bool]:
    suspected, times = Suspected(), np.array(ttft_s)
    nobody = np.zeros(len(times))
    for _ in range(seconds):
        met = Met(times, nobody, nobody, times + 0.5)
        suspected.learn(placement, np.full(len(times), rps), met, 1.0)
    found: list[bool] = suspected.left_out(placement).tolist()
    return found


def test_an_engine_whose_first_tokens_come_late_is_left_out_if_its_share_is_small() -> None:
    # Four times what was expected: twenty requests are enough, and they have to end first.
    assert left_out(placed({"a": 0.8, "b": 0.2}), [0.1, 0.4], 2) == [False, False]
    assert left_out(placed({"a": 0.8, "b": 0.2}), [0.1, 0.4], 5) == [False, True]
    assert left_out(placed({"a": 0.2, "b": 0.8}), [0.1, 0.4], 5) == [False, False]


def test_twice_the_expected_is_no_evidence_and_neither_is_what_nobody_expected() -> None:
    assert left_out(placed({"a": 0.8, "b": 0.2}), [0.1, 0.19], 60) == [False, False]
    assert left_out(placed({"a": 0.8, "b": 0.2}, ttft_s=None), [0.1, 0.9], 60) == [False, False]


def test_an_engine_that_was_left_out_comes_back() -> None:
    placement, suspected = placed({"a": 0.8, "b": 0.2}), Suspected()
    late, calm, nobody = np.array([0.1, 0.4]), np.array([0.1, 0.1]), np.zeros(2)
    found = list[bool]()
    for second in range(60):
        times = late if second < 5 else calm
        suspected.learn(placement, np.full(2, 10.0), Met(times, nobody, nobody, times), 1.0)
        found.append(bool(suspected.left_out(placement)[1]))
    assert 24 <= sum(found) <= 30
    assert not found[-1]
