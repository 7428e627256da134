"""More requests than the weights know of: when that is said, and which sessions go where for it."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, TICK_MS, route_weights, snapshot, target
from headrace.dataplane import watch
from headrace.dataplane.avoidance import Avoidance, avoidance
from headrace.dataplane.decision import Decision, DecisionReason
from headrace.dataplane.detour import LeftOut, detour
from headrace.dataplane.failover import Failover, Floats
from headrace.dataplane.guards.surge import Surge
from headrace.dataplane.other_way import OtherWay
from headrace.dataplane.overflow import Overflow, spilled
from headrace.dataplane.route_table import RouteTable, build_table
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings, GuardSettings
from headrace.dataplane.slot_table import Ints
from headrace.schemas.weights import PPM, FallbackTarget, Reason, RouteWeights

DEMAND = 80.0
SESSIONS = 4_000
LAG_MS = 20_000


def arrive(surge: Surge, rps: float, from_ms: int, seconds: float) -> int:
    """Let evenly spaced requests come; give when they end."""
    end_ms = from_ms + round(1000 * seconds)
    for number in range(round(rps * seconds)):
        surge.arrive(from_ms + round(1000 * number / rps))
    return end_ms


def followed(surge: Surge, rps: float, from_ms: int, seconds: int, demand: float, lag_ms: int = LAG_MS) -> int:
    """The same, with a snapshot a second that knows of a demand up to `lag_ms` ago."""
    for _ in range(seconds):
        from_ms = arrive(surge, rps, from_ms, 1.0)
        surge.plan(demand, from_ms - lag_ms)
    return from_ms


def calm(rps: float = DEMAND, demand: float = DEMAND) -> tuple[Surge, int]:
    surge = Surge(GuardSettings())
    surge.plan(demand, None)
    return surge, followed(surge, rps, 0, 60, demand)


def test_arrivals_as_planned_are_no_surge() -> None:
    surge, now_ms = calm()
    followed(surge, 1.1 * DEMAND, now_ms, 10, DEMAND)
    assert surge.times == 1.0


def test_half_as_much_again_is_seen_within_seconds_though_signals_are_late() -> None:
    surge, now_ms = calm()
    arrive(surge, 1.5 * DEMAND, now_ms, 4.0)
    assert surge.times == pytest.approx(1.5)


def test_it_is_over_as_soon_as_the_weights_know_of_it() -> None:
    surge, now_ms = calm()
    now_ms = followed(surge, 1.5 * DEMAND, now_ms, 20, DEMAND)
    assert surge.times == pytest.approx(1.5)
    surge.plan(1.5 * DEMAND, now_ms - LAG_MS)
    assert surge.times == 1.0


def test_it_is_over_when_fewer_come_again() -> None:
    surge, now_ms = calm()
    now_ms = arrive(surge, 1.5 * DEMAND, now_ms, 5.0)
    arrive(surge, DEMAND, now_ms, 5.0)
    assert surge.times == 1.0


def test_a_data_plane_holds_what_it_counts_against_its_own_part_of_the_cluster() -> None:
    surge, now_ms = calm(rps=DEMAND / 4)
    assert surge.times == 1.0
    arrive(surge, DEMAND / 2, now_ms, 4.0)
    assert surge.times == pytest.approx(2.0)


def test_where_its_part_of_the_cluster_has_changed_that_is_learnt_once_the_signals_show_it() -> None:
    surge, now_ms = calm(rps=DEMAND / 2)
    now_ms = followed(surge, DEMAND, now_ms, LAG_MS // 1000, DEMAND)
    assert surge.times == pytest.approx(2.0)
    followed(surge, DEMAND, now_ms, 12, DEMAND)
    assert surge.times == 1.0


def test_few_requests_say_nothing() -> None:
    surge, now_ms = calm(rps=1.0, demand=1.0)
    arrive(surge, 2.0, now_ms, 5.0)
    assert surge.times == 1.0


@pytest.mark.parametrize("demand", [5e-324, 1e-300, 1e-9, 0.01])
def test_a_single_request_is_no_surge_where_demand_has_faded_to_nearly_nothing(demand: float) -> None:
    surge, now_ms = calm()
    surge.plan(demand, now_ms - LAG_MS)
    for later_ms in (10_000, 20_000, 20_600):
        surge.arrive(now_ms + later_ms)
        assert surge.times == 1.0


def test_a_surge_after_which_nobody_comes_is_over_when_the_weights_know_of_all_that_came() -> None:
    surge, now_ms = calm()
    now_ms = arrive(surge, 1.5 * DEMAND, now_ms, 5.0)
    surge.plan(DEMAND, now_ms - 2_000)
    assert surge.times == pytest.approx(1.5)
    surge.plan(DEMAND, now_ms + 1_000)
    assert surge.times == 1.0


def test_more_than_the_most_is_not_believed() -> None:
    surge, now_ms = calm()
    arrive(surge, 10 * DEMAND, now_ms, 4.0)
    assert surge.times == GuardSettings().surge_most


def test_weights_that_do_not_tell_up_to_when_they_know_say_nothing() -> None:
    surge, now_ms = calm()
    surge.plan(DEMAND, None)
    arrive(surge, 3 * DEMAND, now_ms, 4.0)
    assert surge.times == 1.0


def test_a_route_that_nobody_was_to_ask_for_has_no_surge() -> None:
    surge, now_ms = calm()
    surge.plan(0.0, now_ms - LAG_MS)
    arrive(surge, DEMAND, now_ms, 4.0)
    assert surge.times == 1.0


@given(st.lists(st.tuples(st.integers(-5_000, 200_000), st.floats(0, 1e308), st.booleans()), max_size=60))
def test_whatever_the_clock_does_it_stays_within_its_bounds(steps: list[tuple[int, float, bool]]) -> None:
    surge, now_ms = calm()
    for step_ms, demand, told in steps:
        now_ms = max(0, now_ms + step_ms)
        surge.arrive(now_ms)
        surge.plan(demand, max(0, now_ms - LAG_MS) if told else None)
        assert 1.0 <= surge.times <= GuardSettings().surge_most


# In the router.


def near_and_far(headroom: float | None = 0.25, kept: float | None = 1.0) -> RouteWeights:
    """Give a route whose engine a, of nine tenths of it, has room for a quarter more; its failover is to b and c."""
    made = route_weights({"a": 900_000, "b": 100_000})
    told = {"a": headroom, "b": 5.0}
    targets = tuple(replace(t, headroom=told[t.engine_id], failover_kept=kept) for t in made.targets)
    failover = tuple(FallbackTarget(e, None, ppm) for e, ppm in {"b": 400_000, "c": 600_000}.items())
    return replace(made, targets=targets, failover=failover, demand_rps=DEMAND)


def surging(weights: RouteWeights, times: float = 1.5, settings: DataPlaneSettings | None = None) -> Router:
    """Give a router that has met what was planned for a minute, and then more for four seconds."""
    made = Router(settings or DataPlaneSettings(), CLUSTER)
    decision = made.route(MODEL, now_ms=NOW_MS)
    start_ms = TICK_MS - 64_000
    for second in range(60):
        told = start_ms + 1000 * second - 1_000
        made.apply(snapshot(weights, version=second + 1, tick_ms=TICK_MS, demand_until_ms=told))
        for number in range(round(DEMAND)):
            made.report(MODEL, "default", decision, now_ms=start_ms + 1000 * second + round(1000 * number / DEMAND))
    for number in range(round(4 * times * DEMAND)):
        made.report(MODEL, "default", decision, now_ms=start_ms + 60_000 + round(1000 * number / times / DEMAND))
    return made


def answers(made: Router) -> list[Decision]:
    return [made.route(MODEL, key=f"s-{i}", now_ms=NOW_MS) for i in range(SESSIONS)]


def test_what_an_engine_has_no_room_for_goes_where_the_failover_has_it_and_nobody_else_moves() -> None:
    before = answers(surging(near_and_far(), times=1.0))
    made = surging(near_and_far())
    assert made.surge(MODEL) == pytest.approx(1.5)
    after = answers(made)
    moved = [(was, now) for was, now in zip(before, after, strict=True) if was.engine_id != now.engine_id]
    assert {(was.engine_id, now.reason) for was, now in moved} == {("a", DecisionReason.SPILLED)}
    assert {now.engine_id for _, now in moved} == {"b", "c"}
    of_a = sum(was.engine_id == "a" for was in before)
    assert len(moved) / of_a == pytest.approx(1 - 1.25 / 1.5, abs=0.02)


def test_the_larger_the_surge_the_more_move_and_always_the_same_ones() -> None:
    def spilt(times: float) -> set[int]:
        return {i for i, d in enumerate(answers(surging(near_and_far(), times))) if d.reason is DecisionReason.SPILLED}

    assert spilt(1.1) == set()
    assert set() < spilt(1.4) < spilt(1.8)


def test_the_propensity_is_how_often_an_engine_is_picked() -> None:
    decisions = answers(surging(near_and_far()))
    counts = Counter(d.engine_id for d in decisions)
    said = {d.engine_id: d.propensity for d in decisions}
    assert {e: count / SESSIONS for e, count in counts.items()} == pytest.approx(said, abs=0.02)
    assert sum(each or 0.0 for each in said.values()) == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize(("headroom", "kept"), [(None, 1.0), (0.25, None), (0.25, 0.0), (0.6, 1.0)])
def test_nobody_moves_where_there_is_room_enough_or_none_elsewhere_or_nobody_says(
    headroom: float | None, kept: float | None
) -> None:
    decisions = answers(surging(near_and_far(headroom, kept)))
    assert {d.reason for d in decisions} == {DecisionReason.SLOT}


def test_nobody_moves_to_engines_that_are_down_or_overflow_themselves() -> None:
    made = surging(near_and_far())
    made.set_health("c", up=False)
    assert {d.engine_id for d in answers(made) if d.reason is DecisionReason.SPILLED} == {"b"}
    made.set_health("b", up=False)
    assert {d.engine_id for d in answers(made)} == {"a"}


def test_where_sessions_overflow_to_is_reckoned_once_for_many_requests_and_many_engines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ppm = {f"engine-{i:02d}": PPM // 40 for i in range(40)}
    full = route_weights(ppm)
    targets = tuple(replace(t, headroom=0.1, failover_kept=1.0) for t in full.targets)
    made = surging(replace(full, targets=targets, failover=(FallbackTarget("c", None, PPM),), demand_rps=DEMAND))
    looks, parts = list[int](), Failover.parts

    def look(
        of: Failover, slots: Ints, barred: Collection[str], out_ppm: int, by: Floats | None = None
    ) -> Mapping[str, float]:
        looks.extend([] if by is None else [out_ppm])
        return parts(of, slots, barred, out_ppm, by)

    monkeypatch.setattr(Failover, "parts", look)
    tried = [made.route(MODEL, key=f"s-{i}", exclude=("elsewhere",), now_ms=NOW_MS) for i in range(100)]
    assert DecisionReason.SPILLED in {d.reason for d in tried}
    assert len(looks) == 1


def pinned(weights: RouteWeights, engine_id: str) -> RouteWeights:
    targets = (replace(t, reason=Reason.PINNED) if t.engine_id == engine_id else t for t in weights.targets)
    return replace(weights, targets=tuple(targets))


def test_a_pinned_engine_gets_nobody_and_loses_nobody_for_a_surge() -> None:
    decisions = answers(surging(pinned(near_and_far(), "b")))
    assert {d.engine_id for d in decisions if d.reason is DecisionReason.SPILLED} == {"c"}
    assert {d.reason for d in answers(surging(pinned(near_and_far(), "a")))} == {DecisionReason.SLOT}


def test_a_crowded_engine_overflows_all_the_same_though_nobody_else_of_the_route_has_room() -> None:
    alone = route_weights({"a": PPM})
    targets = tuple(replace(t, headroom=0.0, failover_kept=1.0) for t in alone.targets)
    made = surging(replace(alone, targets=targets, failover=(FallbackTarget("c", None, PPM),), demand_rps=DEMAND))
    at_a = next(d for d in answers(made) if d.engine_id == "a")
    for _ in range(100):
        made.begin(MODEL, "default", at_a, now_ms=NOW_MS)
    for established in (None, True, False):
        decisions = [made.route(MODEL, key=f"s-{i}", established=established, now_ms=NOW_MS) for i in range(SESSIONS)]
        counts, said = Counter(d.engine_id for d in decisions), {d.engine_id: d.propensity for d in decisions}
        assert counts["c"] / SESSIONS == pytest.approx(1 / 3, abs=0.02)
        assert said == pytest.approx({"a": 2 / 3, "c": 1 / 3}, abs=0.001)


def test_a_surge_of_a_route_that_is_no_more_sends_nobody_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    made = surging(near_and_far())
    made.apply(snapshot(replace(near_and_far(), model="another"), version=100))
    monkeypatch.setattr(OtherWay, "known", None)
    assert made.route("another", key="s", now_ms=NOW_MS).reason is DecisionReason.SLOT


def test_a_surge_that_changes_is_no_reason_to_judge_another_route_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made, judged = surging(near_and_far()), list[str]()
    made.apply(snapshot(near_and_far(), replace(near_and_far(), model="another"), version=100, demand_until_ms=TICK_MS))
    made.set_health("c", up=False)

    def judge(table: RouteTable, *rest: Any) -> Avoidance:  # noqa: ANN401 - handed on
        judged.append(table.name[0])
        return avoidance(table, *rest)

    monkeypatch.setattr(watch, "avoidance", judge)
    for number in range(4_000):
        decision = made.route(MODEL, key="s", now_ms=NOW_MS)
        made.route("another", key="s", now_ms=NOW_MS)
        made.report(MODEL, "default", decision, now_ms=TICK_MS + 5 * number)
    assert judged.count("another") == 1
    assert judged.count(MODEL) > 1


def test_a_session_that_was_let_go_to_an_engine_that_overflows_stays_there_unless_it_is_one_that_moves() -> None:
    table = build_table(near_and_far(), DataPlaneSettings())
    nobody: frozenset[str] = frozenset()
    half = Overflow({"b": 1 << 31})
    view = Avoidance(table, 0, 0, NOW_MS, nobody, nobody, nobody, (), panic=False, overflow=half)
    out = LeftOut.of(view, nobody, nobody, ())
    assert detour(table, (1 << 31) + 5, out, 8, "b").engine_id == "b"
    assert detour(table, (1 << 31) - 5, out, 8, "b").reason is not DecisionReason.RELEASED


def test_a_most_of_1_leaves_surges_where_they_are() -> None:
    off = DataPlaneSettings(guards=GuardSettings(surge_most=1.0))
    assert {d.reason for d in answers(surging(near_and_far(), settings=off))} == {DecisionReason.SLOT}


def test_the_next_weights_that_know_of_it_end_it_at_once() -> None:
    made = surging(near_and_far())
    known = replace(near_and_far(), demand_rps=1.5 * DEMAND)
    made.apply(snapshot(known, version=100, demand_until_ms=TICK_MS - 20_000))
    assert made.surge(MODEL) == 1.0
    assert {d.reason for d in answers(made)} == {DecisionReason.SLOT}


def test_a_hint_and_a_session_of_a_tried_engine_go_their_ways_as_ever() -> None:
    made = surging(near_and_far())
    assert made.route(MODEL, key="s-1", hint="a", now_ms=NOW_MS).reason is DecisionReason.HINT
    assert {made.route(MODEL, key=f"s-{i}", exclude=("a",), now_ms=NOW_MS).engine_id for i in range(99)} == {"b", "c"}


def test_retries_are_no_arrivals() -> None:
    made = surging(near_and_far(), times=1.0)
    decision = made.route(MODEL, key="s-1", now_ms=NOW_MS)
    for number in range(1_000):
        made.report(MODEL, "default", decision, retry=True, now_ms=TICK_MS + number)
    made.report(MODEL, "default", decision, now_ms=TICK_MS + 3_000)
    assert made.surge(MODEL) == 1.0


def test_crowds_are_judged_by_what_each_engine_gets_while_a_route_overflows() -> None:
    half = Overflow({"a": 1 << 31})
    ppm, shares = {"a": 900_000, "b": 100_000}, {"a": 100_000, "b": 300_000, "c": 600_000}
    assert spilled(half, ppm, shares, ()) == {"a": 450_000, "b": 250_000, "c": 300_000}
    assert spilled(half, ppm, shares, ("c",)) == {"a": 450_000, "b": 550_000}
    assert spilled(half, ppm, shares, ("b", "c")) == ppm


def test_an_engine_that_is_pinned_to_nothing_gets_nobody_and_the_others_spill_as_ever() -> None:
    route = near_and_far()
    barred = replace(target("d", 0), reason=Reason.PINNED)
    failover = (*route.failover, FallbackTarget("d", None, 0))
    made = surging(replace(route, targets=(*route.targets, barred), failover=failover))
    decisions = answers(made)
    assert made.invalid == 0
    assert {d.engine_id for d in decisions if d.reason is DecisionReason.SPILLED} == {"b", "c"}
    assert {d.engine_id for d in decisions} == {"a", "b", "c"}
