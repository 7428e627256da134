"""Comparisons: intervals, calibration, off-policy estimates, and what the verdict says."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from headrace.replay.report.document import Origin, document
from headrace.replay.score.calibration import Agreement, calibrate
from headrace.replay.score.comparison import Comparison, Word, compare
from headrace.replay.score.interval import Interval
from headrace.replay.score.latency_mass import mass_of, quantile_s
from headrace.replay.score.length_spread import equal_lengths
from headrace.replay.score.measured import NOTHING_MEASURED, MeasuredFleet, Shown, measured_fleet
from headrace.replay.score.off_policy import LoggedChoice, OffPolicyEstimate, OffPolicyRefused, off_policy
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of
from headrace.replay.score.variant import score_variant
from headrace.replay.score.variant_score import VariantScore
from headrace.replay.score.verdict import best_of, verdict
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.signals import Health, Metric
from headrace.schemas.state import EngineState, Invalid, LatencyState
from played_ticks import played
from solver_problems import engine, problem, profile, row

LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))
ALIKE = replace(NOTHING_MEASURED, spread=equal_lengths())
RULES = ScoreSettings(cold_share=0.0, chance=0.0)


def swinging(name: str, share: float, seconds: int = 200) -> VariantScore:
    """Demand swings between 4 and 12 RPS every 20 s; e1 gets a share, e2 the rest."""

    def at(second: int) -> object:
        p = problem([row("A", 4.0 if second % 40 < 20 else 12.0)], [engine("e1"), engine("e2")], 2.0, (LINE,))
        return played(float(second), p, {"A": {"e1": share, "e2": 1.0 - share}})

    return score_variant(name, (at(s) for s in range(seconds)), RULES, ALIKE)  # type: ignore[misc]


@cache
def compared(seconds: int = 200) -> Comparison:
    return compare("recorded", [swinging("even", 0.5, seconds), swinging("recorded", 0.8, seconds)], RULES)


def test_the_recorded_one_comes_first_and_what_is_better_beyond_chance_is_called_better() -> None:
    found = compared()
    assert [c.score.name for c in found.variants] == ["recorded", "even"]
    mean = found.variants[1].told("mean_ms")
    assert mean.word is Word.BETTER
    assert mean.difference_interval is not None
    assert mean.difference_interval.high < 0.0
    assert found.blocks == (20, 10.0)


def test_paired_blocks_leave_out_what_both_variants_shared() -> None:
    """Demand swings by a factor of three, and with it each one's latency; the difference between them is sure."""
    found = compared()
    own, between = found.variants[1].told("mean_ms").interval, found.variants[1].told("mean_ms").difference_interval
    assert own is not None
    assert between is not None
    assert not between.low <= 0.0 <= between.high


def test_the_same_run_gives_the_same_interval_and_a_short_one_gives_none() -> None:
    one, two = compared().variants[1].told("p95_ms"), compared.__wrapped__().variants[1].told("p95_ms")
    assert one.interval == two.interval
    short = compared(30)
    assert short.variants[1].told("mean_ms").interval is None
    assert short.variants[1].told("mean_ms").word is Word.UNCLEAR
    assert best_of(short) is short.variants[0]
    told = "Too short to say which policy is better (3 blocks of 10 s; at least 8 are needed, which are 80 s). So far: "
    assert verdict(short)[0].startswith(told)


def test_a_variant_that_was_played_over_another_time_is_never_best() -> None:
    found = compare("recorded", [swinging("recorded", 0.8, 200), swinging("even", 0.5, 100)], RULES)
    assert best_of(found) is found.variants[0]
    assert "it was played over 100 s, and not over the same 200 s" in verdict(found)[0]


def test_two_of_one_name_or_none_of_the_recorded_s_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="each once"):
        compare("recorded", [swinging("even", 0.5, 10)])


def test_a_variant_that_refuses_more_is_not_called_best_however_fast() -> None:
    def steady(name: str, shed: float) -> VariantScore:
        p = problem([row("A", 9.0)], [engine("e1")], 2.0, (LINE,))
        return score_variant(
            name, (played(float(s), p, {"A": {"e1": 1.0}}, shed=shed) for s in range(100)), RULES, ALIKE
        )

    found = compare("recorded", [steady("recorded", 0.0), steady("picky", 0.5)], RULES)
    first, price, _ = verdict(found)
    assert first.startswith("No variant would have done better than recorded")
    assert price.startswith("recorded moves ")


def test_a_difference_below_what_can_be_told_apart_makes_nobody_best() -> None:
    """0.8 against 0.7999 of the traffic: less than half a percent of the mean, however sure of it chance is."""
    near = compare("recorded", [swinging("recorded", 0.8), swinging("near", 0.799)], RULES)
    mean = near.variants[1].told("mean_ms")
    assert mean.difference is not None
    assert mean.difference < 0.0
    assert best_of(near) is near.variants[0]
    first = verdict(near)[0]
    assert first.startswith("No difference between near (")
    assert "below 0.5 % nothing is told apart" in first
    assert verdict(near)[1].startswith("recorded moves ")
    assert verdict(compared())[1].startswith("even moves ")
    assert best_of(compared()).score.name == "even"


def test_a_difference_within_chance_makes_nobody_best() -> None:
    found = compared()
    told = tuple(
        replace(t, difference_interval=Interval(-9.0, 3.0)) if t.number.name == "mean_ms" else t
        for t in found.variants[1].numbers
    )
    unsure = replace(found, variants=(found.variants[0], replace(found.variants[1], numbers=told)))
    assert best_of(unsure) is unsure.variants[0]
    assert "not told apart from chance: -9.0 to +3.0 ms" in verdict(unsure)[0]


def test_an_order_that_turns_with_profiles_that_are_off_makes_nobody_best_unless_it_turns_by_refusing() -> None:
    found = compared()
    recorded, even = found.variants
    swapped = replace(even, score=replace(even.score, slower=recorded.score.slower))
    other = replace(recorded, score=replace(recorded.score, slower=even.score.slower))
    turned = replace(found, variants=(other, swapped))
    assert best_of(turned) is other
    assert "the other way round if profiles are 20 % slower or faster" in verdict(turned)[0]
    sums = even.score.slower.sums.copy()
    sums[Of.SHED] += 0.3 * sums[Of.OFFERED]
    refusing = replace(other, score=replace(other.score, slower=replace(even.score.slower, sums=sums)))
    assert best_of(replace(found, variants=(refusing, swapped))) is swapped


def test_less_unserved_at_a_mean_that_is_the_same_is_best_by_what_it_serves() -> None:
    def steady(name: str, share: float, shed: float) -> VariantScore:
        p = problem([row("A", 9.0)], [engine("e1"), engine("e2")], 2.0, (LINE,))
        ticks = (played(float(s), p, {"A": {"e1": share, "e2": 1.0 - share}}, shed=shed) for s in range(100))
        return score_variant(name, ticks, RULES, ALIKE)

    flat = compare("recorded", [steady("recorded", 0.78, 0.2), steady("lp", 0.5, 0.0)], RULES)
    first = verdict(flat)[0]
    assert best_of(flat).score.name == "lp", first
    assert "0.00 % of requests unserved against 20.00 %" in first


def test_a_mean_is_rounded_alike_in_the_verdict_and_in_the_table() -> None:
    found = compared()
    for raw in (1096.4996, 1096.52, 1097.48, 12345.6):
        told = tuple(replace(t, value=raw) if t.number.name == "mean_ms" else t for t in found.variants[0].numbers)
        alone = replace(found, variants=(replace(found.variants[0], numbers=told),))
        whole = document(alone, Origin("t", "by hand", closed_loop=False))
        shown = f"{whole['variants'][0]['numbers']['mean_ms']['value']:,.0f}"
        assert f"is expected at {shown} ms end to end" in whole["verdict"][0]


def test_slower_profiles_are_slower_and_the_order_of_variants_is_said() -> None:
    found = compared()
    for each in found.variants:
        assert each.slower_ms is not None
        assert each.faster_ms is not None
        assert each.faster_ms < (each.told("mean_ms").value or 0.0) < each.slower_ms
    assert found.order_holds
    assert "the order of the variants stays the same" in verdict(found)[2]


def test_quantiles_of_smooth_latencies_are_read_within_the_cell_so_that_one_percent_is_no_step_of_two() -> None:
    values = np.exp(np.linspace(-3.0, 3.0, 60_001))
    for factor in (1.0, 1.005, 1.01, 1.015, 1.02):
        found = quantile_s(mass_of(factor * values, np.ones(len(values))), 0.9)
        assert found == pytest.approx(np.exp(2.4) * factor, rel=0.001)


# --- calibration ----------------------------------------------------------------------------------------------------


def shown(mean_s: float, p95_s: float, count: int = 1000) -> MeasuredFleet:
    return replace(ALIKE, fleet=Shown(count, mean_s, p95_s), engines={"e1": Shown(count, mean_s, p95_s)})


@cache
def steady_score() -> VariantScore:
    p = problem([row("A", 5.0)], [engine("e1")], 2.0, (LINE,))
    return score_variant("x", (played(float(s), p, {"A": {"e1": 1.0}}) for s in range(100)), RULES, ALIKE)


def test_a_score_within_ten_and_twenty_percent_agrees_and_beyond_it_says_so() -> None:
    # The model says 0.2 s for everybody.
    assert calibrate(steady_score(), shown(0.205, 0.21)).agreement is Agreement.AGREES
    off = calibrate(steady_score(), shown(0.3, 0.31))
    assert off.agreement is Agreement.DISAGREES
    assert "does NOT agree" in off.sentence
    assert "mean -33.3%" in off.sentence
    assert calibrate(steady_score(), shown(0.2, 0.3)).agreement is Agreement.DISAGREES
    assert calibrate(steady_score(), shown(0.2, 0.2, count=5)).agreement is Agreement.NOT_MEASURED


def state(as_of_s: int, count: int, mean_s: float, covered_s: int = 10) -> EngineState:
    whole = LatencyState("m", Metric.E2E, count, mean_s, mean_s, mean_s, 2 * mean_s, 3 * mean_s)
    ttft = LatencyState("m", Metric.TTFT, count, 0.1, 0.1, 0.1, 0.1, 0.1)
    tbot = LatencyState("m", Metric.TBOT, count, 0.01, 0.01, 0.01, 0.01, 0.01)
    return EngineState(
        "e", 1000 * as_of_s, 0, 0, Health.HEALTHY, 1, 1, 1, 1.0, 0.0, None, (whole, ttft, tbot), 1.0, (), Invalid.NO,
        0, 0, b"", covered_ms=1000 * covered_s,
    )  # fmt: skip


def test_windows_that_overlap_are_counted_once_and_means_are_weighted_by_requests() -> None:
    found = measured_fleet([state(10, 100, 0.5), state(11, 900, 9.0), state(20, 300, 0.9)])
    assert found.fleet.count == 400
    assert found.fleet.mean_s == pytest.approx(0.8)
    # 0.7 s of decoding at 10 ms a token.
    assert found.output_tokens["m"] == pytest.approx(70.0)


def test_the_spread_of_lengths_is_history_s_where_there_is_enough_of_it() -> None:
    assert measured_fleet([state(10, 50, 0.5)]).spread.source.startswith("assumed")
    found = measured_fleet([state(10 * i, 100, 0.5) for i in range(1, 5)]).spread
    assert found.source.startswith("history")
    assert sum(found.factors) / len(found.factors) == pytest.approx(1.0)


# --- off-policy -----------------------------------------------------------------------------------------------------


def logged(n: int) -> list[LoggedChoice]:
    """Half to a (100 ms), half to b (200 ms), each with probability 1/2."""
    return [LoggedChoice(i, "r", "ab"[i % 2], 0.5, 100.0 * (1 + i % 2)) for i in range(n)]


def test_importance_weights_give_the_mean_of_the_other_policy() -> None:
    found = off_policy(logged(1000), lambda _at, _route: {"a": 0.9, "b": 0.1}, RULES)
    assert isinstance(found, OffPolicyEstimate)
    assert (found.ips_ms, found.snips_ms, found.dr_ms) == pytest.approx((110.0, 110.0, 110.0))
    # Weights 1.8 and 0.2: 1000^2 / (500 x 3.24 + 500 x 0.04)
    assert found.effective == pytest.approx(1000.0**2 / 1640.0)


def test_too_small_an_effective_sample_is_refused_with_its_size() -> None:
    found = off_policy(logged(100), lambda _at, _route: {"a": 1.0}, RULES)
    assert isinstance(found, OffPolicyRefused)
    assert "effective sample size 50 of 100" in found.reason


def test_a_policy_that_sends_where_none_was_ever_sent_is_refused() -> None:
    found = off_policy(logged(1000), lambda _at, _route: {"a": 0.5, "new": 0.5}, RULES)
    assert isinstance(found, OffPolicyRefused)
    assert "50% of its traffic" in found.reason


def test_without_propensities_there_is_no_estimate() -> None:
    found = off_policy([LoggedChoice(0, "r", "a", 0.0, 1.0)], lambda _at, _route: {"a": 1.0}, RULES)
    assert isinstance(found, OffPolicyRefused)
