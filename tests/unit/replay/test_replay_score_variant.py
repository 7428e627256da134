"""A variant's score, by hand: A asks for 10 RPS; e1 is 4 ms away, e2 14 ms; both 0.1 s idle, 0.3 s at 10 RPS."""

from dataclasses import replace

import pytest

from headrace.replay.score.length_spread import equal_lengths
from headrace.replay.score.measured import NOTHING_MEASURED
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of, end_to_end_s, moved_percent_a_minute
from headrace.replay.score.variant import VariantScorer, score_variant
from headrace.replay.score.variant_score import VariantScore
from headrace.schemas.weights import Reason
from headrace.solver.core.problem import Exclusion, Problem, Throughput
from played_ticks import START_MS, played, standing
from solver_problems import engine, problem, profile, row

LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))
ALIKE = replace(NOTHING_MEASURED, spread=equal_lengths())
PLAIN = ScoreSettings(cold_share=0.0, chance=0.0)


def two_engines(demand: float = 10.0) -> Problem:
    links: dict[tuple[str, str], float | None] = {("A", "s1"): 4.0, ("A", "s2"): 14.0}
    return problem([row("A", demand)], [engine("e1", "s1"), engine("e2", "s2")], links, (LINE,))


def score(ticks: list, settings: ScoreSettings = PLAIN) -> VariantScore:  # type: ignore[type-arg]
    return score_variant("x", ticks, settings, ALIKE)


def test_the_mean_is_network_and_profile_at_the_load_over_all_requests() -> None:
    found = score(standing(two_engines(), {"A": {"e1": 0.75, "e2": 0.25}}, 10))
    # 7.5 RPS at e1: 4 + 250 ms; 2.5 RPS at e2: 14 + 150 ms.
    assert end_to_end_s(found.sums) == pytest.approx(0.75 * 0.254 + 0.25 * 0.164, rel=1e-4)
    assert found.sums[Of.SECONDS] == 10.0
    assert found.sums[Of.OFFERED] == pytest.approx(100.0)
    assert found.sums[Of.SERVED] == pytest.approx(100.0)
    assert moved_percent_a_minute(found.sums) == 0.0


def test_what_the_weights_shed_is_not_sent() -> None:
    found = score(standing(two_engines(), {"A": {"e1": 1.0}}, 10, shed=0.4))
    assert found.sums[Of.SHED] == pytest.approx(40.0)
    assert end_to_end_s(found.sums) == pytest.approx(0.004 + 0.1 + 0.2 * 0.6, rel=1e-4)


def test_a_route_without_weights_refuses_all() -> None:
    found = score(standing(two_engines(), {"A": {}}, 10))
    assert found.sums[Of.SHED] == pytest.approx(100.0)
    assert end_to_end_s(found.sums) is None


def test_a_refused_request_is_tried_again_within_the_retry_ratio() -> None:
    found = score(standing(two_engines(20.0), {"A": {"e1": 1.0}}, 30, retry=0.1))
    # Half of 20 RPS are too much once the queue is full; 2 RPS of what is refused come again.
    assert found.sums[Of.RETRIES] / 30.0 == pytest.approx(2.0, rel=0.15)
    assert found.sums[Of.SERVED] + found.sums[Of.REFUSED] <= found.sums[Of.OFFERED] + 1e-6


def test_what_moves_is_a_share_of_what_the_tick_was_asked_for_though_records_that_stand_are_of_an_older_demand() -> (
    None
):
    both = problem([row("A", 10.0), row("B", 10.0)], [engine("e1"), engine("e2")], 2.0, (LINE,))
    weights = [{"A": {"e1": e1, "e2": 1.0 - e1}, "B": {"e2": 1.0}} for e1 in (1.0, 0.5)]
    ticks = [played(float(s), both, weights[s >= 30]) for s in range(60)]
    ticks = [
        replace(
            t,
            snapshot=replace(t.snapshot, routes=(t.snapshot.routes[0], replace(t.snapshot.routes[1], demand_rps=8.0))),
        )
        for t in ticks
    ]
    # Half of A is a quarter of all; of 18 RPS it were 28 %.
    assert moved_percent_a_minute(score(ticks).sums) == pytest.approx(25.0)


def test_moving_half_of_the_traffic_once_in_a_minute_is_fifty_percent_a_minute_and_cools_half_of_the_sessions() -> None:
    ticks = standing(two_engines(), {"A": {"e1": 1.0}}, 60)
    ticks[30:] = [played(float(s), two_engines(), {"A": {"e1": 0.5, "e2": 0.5}}) for s in range(30, 60)]
    found = score(ticks, replace(PLAIN, turn_s=1.0))
    assert moved_percent_a_minute(found.sums) == pytest.approx(50.0)
    # Half of the sessions alive, 10 RPS x a turn of 1 s, lose one hit each.
    assert found.sums[Of.COLD] == pytest.approx(5.0, rel=0.01)
    assert found.sums[Of.REVERSALS] == 0.0


def test_going_back_and_forth_is_counted_as_reversals() -> None:
    ticks = [played(float(s), two_engines(), {"A": {"e1": (s // 10) % 2, "e2": 1 - (s // 10) % 2}}) for s in range(60)]
    # Five changes, of which four undo the one before, at two engines each.
    assert score(ticks).sums[Of.REVERSALS] == 8.0


def test_a_gap_is_not_scored_and_is_told() -> None:
    ticks = [played(0.0, two_engines(), {"A": {"e1": 1.0}}), played(1000.0, two_engines(), {"A": {"e1": 1.0}})]
    found = score(ticks)
    assert found.sums[Of.SECONDS] == pytest.approx(2.0)
    assert found.sums[Of.MISSING] == pytest.approx(999.0)


def test_ticks_that_do_not_come_in_order_are_refused() -> None:
    scorer = VariantScorer("x")
    scorer.add(played(1.0, two_engines(), {"A": {"e1": 1.0}}))
    with pytest.raises(ValueError, match="the tick before"):
        scorer.add(played(1.0, two_engines(), {"A": {"e1": 1.0}}))


def test_no_tick_gives_a_score_of_nothing() -> None:
    found = score([])
    assert (found.ticks, end_to_end_s(found.sums)) == (0, None)


def test_an_engine_found_silent_later_was_dead_since_its_last_signal_and_its_share_goes_to_the_others() -> None:
    def at(second: int) -> Problem:
        spoke_ms = START_MS + 1000 * min(second, 10)
        alive = two_engines(4.0)
        e1 = replace(alive.engines[0], throughput=Throughput(spoke_ms, 1.0, 0.0, 1.0, 1.0, 10.0))
        if second >= 25:
            e1 = replace(e1, throughput=None, exclusion=Exclusion(Reason.STALE, "silent"))
        return replace(alive, engines=(e1, alive.engines[1]))

    weights = {"A": {"e1": 0.5, "e2": 0.5}}
    found = score([played(float(s), at(s), weights) for s in range(40)])
    # e1 spoke last at second 10, and is gone from 11.5 on: 12 seconds of 2 RPS at e1, everything else at e2.
    assert found.engine_sums[0].tolist() == pytest.approx([24.0, 136.0])
    assert found.sums[Of.SHED] == 0.0


def test_a_run_of_any_length_keeps_a_bounded_number_of_bins_and_loses_nothing() -> None:
    short = replace(PLAIN, max_bins=16)
    found = score(standing(two_engines(), {"A": {"e1": 1.0}}, 200), short)
    assert len(found.bins) <= 16
    assert found.bin_ms == 16_000
    assert sum(float(each.sums[Of.OFFERED]) for _, each in found.bins) == pytest.approx(2000.0)
    assert len(found.witnesses) <= 32


def test_groups_add_up_to_the_whole() -> None:
    p = problem([row("A", 4.0), row("B", 2.0)], [engine("e1")], 1.0, (LINE,))
    found = score(standing(p, {"A": {"e1": 1.0}, "B": {"e1": 1.0}}, 10))
    clusters = found.groups["cluster"]
    assert [float(clusters[c].sums[Of.SERVED]) for c in ("A", "B")] == pytest.approx([40.0, 20.0])
    for kind in ("cluster", "model", "request_class"):
        assert sum(float(g.sums[Of.ENGINE]) for g in found.groups[kind].values()) == pytest.approx(
            float(found.sums[Of.ENGINE])
        )


def test_records_that_are_equal_but_not_the_same_object_score_the_same() -> None:
    one = standing(two_engines(), {"A": {"e1": 0.5, "e2": 0.5}}, 5)
    shared = [replace(t, snapshot=replace(t.snapshot, routes=one[0].snapshot.routes)) for t in one]
    assert score(one).sums.tolist() == score(shared).sums.tolist()
