"""Why: the parts of a price, the rejected ways, what binds and what would help."""

from dataclasses import replace

import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import Reason
from headrace.solver.core.problem import Exclusion, Problem
from headrace.solver.core.program.score import score
from headrace.solver.core.tick import Tick, TickStamp, hold_tick, solve_tick
from headrace.solver.core.why.explain import explain
from headrace.solver.core.why.explain_words import dearer
from headrace.solver.core.why.explanation import PriceTerms
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

FLAT = profile(ttft_s=(0.1, 0.1, 0.1))
LINKS = {("a", "s1"): 2.0, ("a", "s2"): 30.0, ("b", "s1"): 50.0, ("b", "s2"): 3.0}

STILL = SolverSettings(load_spread=0.0)
"""Loads that stand still, so that prices can be reckoned by hand."""


def tick_of(p: Problem, previous: Tick | None = None, **changes: object) -> Tick:
    settings = replace(STILL, **changes)  # type: ignore[arg-type]
    before = None if previous is None else previous.snapshot
    return solve_tick(p, before, settings, Glop(threads=1), TickStamp(1, 1 if previous is None else 2, 1000))


def test_an_engine_below_capacity_costs_network_engine_and_congestion() -> None:
    p = problem([row("a", 7.5)], [engine("e1")], LINKS)
    found = explain(tick_of(p), "a", "e1")
    assert found.terms is not None
    # Load 0.75: 200 ms. One more request makes it 200 + 0.75 x 400 = 500 for everybody, by the chord around it.
    assert found.terms.engine_ms == pytest.approx(200)
    assert found.terms.engine_ms + found.terms.congestion_ms == pytest.approx(500, rel=0.03)
    assert found.terms.scarcity_ms == 0.0
    assert found.terms.marginal_ms == pytest.approx(found.route_marginal_ms)
    assert found.utilisation == pytest.approx(0.75)
    assert found.sentences[0].startswith("a for m (default) sends e1 100.0 % of 7.5 RPS: one more request costs 2.0 ms")


def test_a_full_engine_has_a_scarcity_that_is_the_detour_it_saves() -> None:
    p = problem([row("a", 12)], [engine("e1"), engine("e2", "s2")], LINKS, (FLAT,))
    found = explain(tick_of(p), "a", "e1")
    # The next request goes 28 ms further and finds the same flat 100 ms there.
    assert found.terms == PriceTerms(
        network_ms=2.0,
        engine_ms=pytest.approx(100),
        congestion_ms=pytest.approx(0, abs=1e-9),
        scarcity_ms=pytest.approx(28),
        move_ms=pytest.approx(0, abs=1e-9),
        marginal_ms=pytest.approx(130),
    )
    assert found.binding == ("e1 is full at 10.0 RPS",)
    assert found.replica_worth_ms_rps == pytest.approx(280)
    # 280 ms x RPS spread over 12 RPS.
    assert found.sentences[2] == (
        "Binding: e1 is full at 10.0 RPS; one more replica of e1 would take up to 23.3 ms off the mean of 12 RPS."
    )
    assert "28 ms because it is full" in found.sentences[0]


def test_one_more_replica_gives_no_more_than_its_worth_and_a_sliver_gives_just_that() -> None:
    def objective(capacity: float) -> float:
        p = problem([row("a", 12)], [engine("e1", capacity=capacity), engine("e2", "s2")], LINKS)
        value = tick_of(p, segments=64).record.objective
        assert value is not None
        return value

    p = problem([row("a", 12)], [engine("e1"), engine("e2", "s2")], LINKS)
    worth = explain(tick_of(p, segments=64), "a", "e1").replica_worth_ms_rps
    assert worth is not None
    assert objective(10) - objective(20) <= worth
    assert (objective(10) - objective(10.01)) * 1000 == pytest.approx(worth, rel=0.05)


def test_where_something_is_shed_a_replica_is_told_by_what_it_serves_and_never_in_ms() -> None:
    # The price of shedding is in every price of the part; it is no latency, and whoever is shed has none in the mean.
    short = problem([row("a", 13)], [engine("e1")], LINKS)
    found = explain(tick_of(short), "a", "e1")
    assert (found.replica_worth_ms_rps, found.replica_worth_rps) == (None, pytest.approx(3.0))
    assert found.sentences[2].endswith(
        "one more replica of e1 would serve 3.0 RPS more of what is shed; the mean may rise, since more are served."
    )
    # e2 is not open to b, which is shed; but its room would let a leave e1.
    links = {("a", "s1"): 2.0, ("a", "s2"): 30.0, ("b", "s1"): 2.0}
    chain = problem([row("a", 12), row("b", 11)], [engine("e1"), engine("e2", "s2")], links)
    plan = tick_of(chain)
    assert plan.record.shed_rps == pytest.approx(3.0)
    far = explain(plan, "a", "e2")
    assert far.replica_worth_ms_rps is None
    assert "ms off the mean" not in far.sentences[2]


def test_what_is_shed_where_a_replica_cannot_serve_it_leaves_its_worth_in_ms_of_what_is_served() -> None:
    rows = [row("a", 12), row("c", 9, model="n")]
    engines = [engine("e1"), engine("e2", "s2"), engine("e3", "s4", capacity=5.0, models=("n",))]
    found = explain(tick_of(problem(rows, engines, {**LINKS, ("c", "s4"): 1.0}, (FLAT,))), "a", "e1")
    # 280 ms x RPS over the 12 + 5 RPS that are served: the 4 that are shed are in no mean.
    assert found.replica_worth_ms_rps == pytest.approx(280)
    assert found.sentences[2].endswith("one more replica of e1 would take up to 16.5 ms off the mean of 17 RPS.")


def test_rejected_ways_come_with_their_break_even() -> None:
    engines = [engine("e1"), engine("e2", "s2"), engine("e3", "s2"), engine("e4", "s3")]
    p = problem([row("a", 4)], engines, {**LINKS, ("a", "s3"): 20.0}, (FLAT,))
    tick = tick_of(p)
    found = explain(tick, "a", "e1")
    assert [(a.engine_ids, a.gap_ms) for a in found.alternatives] == [
        (("e4",), pytest.approx(18)),
        (("e2", "e3"), pytest.approx(28)),
    ]
    assert found.sentences[1] == "Not used: e4 in s3, 18.0 ms too dear and e2 and 1 more in s2, 28.0 ms too dear."
    # A way that is made cheaper by more than its gap is used, by less is not.
    assert weight(problem([row("a", 4)], engines, {**LINKS, ("a", "s3"): 1.9}, (FLAT,)), "e4") == 1_000_000
    assert weight(problem([row("a", 4)], engines, {**LINKS, ("a", "s3"): 2.1}, (FLAT,)), "e4") == 0
    unused = explain(tick, "a", "e4")
    assert unused.sentences[0].startswith("a for m (default) sends e4 nothing: a first request would cost 20.0 ms")
    assert unused.sentences[0].endswith("= 120 ms, 18 ms too dear.")


@pytest.mark.parametrize(
    ("gap_ms", "said", "in_whole_ms"),
    [
        (18.04, "18.0 ms too dear", "18 ms too dear"),
        (0.0, "just as dear", "just as dear"),
        (-1e-9, "just as dear", "just as dear"),
        (0.3, "0.3 ms too dear", "just as dear"),
        (-497.2, "497.2 ms cheaper", "497 ms cheaper"),
    ],
)
def test_a_gap_is_never_told_as_less_than_nothing(gap_ms: float, said: str, in_whole_ms: str) -> None:
    assert dearer(gap_ms) == said
    assert dearer(gap_ms, digits=0) == in_whole_ms


def weight(p: Problem, engine_id: str) -> int:
    return explain(tick_of(p), "a", engine_id).weight_ppm


def test_moving_has_its_own_part_of_the_price() -> None:
    engines = [engine("e1"), engine("e2", "s2")]
    before = tick_of(problem([row("a", 4)], engines, LINKS, (FLAT,)))
    nearer = {**LINKS, ("a", "s1"): 45.0}
    kept = explain(tick_of(problem([row("a", 4)], engines, nearer, (FLAT,)), before), "a", "e1")
    assert kept.terms is not None
    # 15 ms further than the other one, and 30 ms is the price of leaving.
    assert kept.terms.marginal_ms == pytest.approx(kept.route_marginal_ms)
    assert 0.0 <= kept.terms.move_ms <= 30.0
    other = explain(tick_of(problem([row("a", 4)], engines, nearer, (FLAT,)), before), "a", "e2")
    assert other.terms is not None
    assert other.terms.move_ms == 30.0
    assert "30 ms for leaving a warm cache" in other.sentences[0]


def test_an_engine_below_its_wall_while_its_route_sheds_is_told_and_so_are_those_full_without_the_route() -> None:
    engines = [engine("e1"), engine("e2", "s2"), engine("e3", "s3")]
    links: dict[tuple[str, str], float | None] = {
        (c, f"s{j}"): 2.0 if i == j else 32.0 for i, c in enumerate("abc", 1) for j in (1, 2, 3)
    }
    before = tick_of(problem([row("a", 10), row("b", 14), row("c", 8)], engines, links))
    # What c asks for no more is room at e3, which weights that stand do not use.
    after = tick_of(problem([row("a", 10), row("b", 14), row("c", 7.9)], engines, links), before)
    assert after.decision is not None
    assert after.decision.plan.kept.all()
    assert {t.engine_id for t in after.snapshot.routes[1].targets if t.weight_ppm} == {"e2", "e3"}
    binding = explain(after, "b", "e2").binding
    assert "e1 is full at 10.0 RPS without this route" in binding
    assert "e2 is full at 10.0 RPS" in binding
    room = "all its engines are full but e3 at 99.2 % of 10.0 RPS, and its weights stand"
    assert binding[-1] == f"1.9 RPS of the route are shed: {room}"


def test_weights_that_stand_though_another_way_is_slightly_cheaper_are_explained_without_a_rent_below_zero() -> None:
    engines = [engine("e1"), engine("e2", "s2")]
    before = tick_of(problem([row("a", 5)], engines, {("a", "s1"): 2.0, ("a", "s2"): 2.3}, (FLAT,)))
    now = problem([row("a", 5)], engines, {("a", "s1"): 2.3, ("a", "s2"): 2.0}, (FLAT,))
    found = explain(tick_of(now, before, move_price_ms=0.0, stay_within=0.005), "a", "e1")
    # 102.3 ms where it is, 102.0 elsewhere: 0.3 % is not worth a move.
    assert found.weight_ppm == 1_000_000
    assert found.terms is not None
    assert (found.terms.move_ms, found.terms.marginal_ms) == (0.0, pytest.approx(102.3))
    assert found.route_marginal_ms == pytest.approx(102.0)


def test_an_excluded_engine_is_explained_by_its_reason() -> None:
    engines = [engine("e1"), engine("e2", exclusion=Exclusion(Reason.STALE, "silent for 20 s")), engine("e3", "s9")]
    engines.append(engine("e4", models=("other",)))
    tick = tick_of(problem([row("a", 4)], engines, LINKS))
    found = explain(tick, "a", "e2")
    assert (found.terms, found.utilisation, found.replica_worth_ms_rps) == (None, None, None)
    assert found.excluded is not None
    assert found.sentences[0] == "a for m (default) may not use e2: STALE, silent for 20 s."
    assert found.sentences[1].endswith("excluded: e3 (NETWORK_UNKNOWN).")
    other = explain(tick, "a", "e4").excluded
    assert other is not None
    assert other.reason is Reason.MODEL_NOT_SERVED
    many = [engine(f"x{i}", exclusion=Exclusion(Reason.STALE, "silent")) for i in range(6)]
    tick = tick_of(problem([row("a", 4)], [engine("e1"), *many], LINKS))
    assert explain(tick, "a", "e1").sentences[1].endswith("x2 (STALE) and 3 more.")


def test_shedding_binds_and_says_how_much() -> None:
    found = explain(tick_of(problem([row("a", 15)], [engine("e1")], LINKS)), "a", "e1")
    assert "5.0 RPS of the route are shed: all its engines are full" in found.binding
    assert found.terms is not None
    assert found.terms.scarcity_ms > 100.0


def test_a_policy_without_prices_is_explained_by_its_curves() -> None:
    tick = tick_of(problem([row("a", 7.5)], [engine("e1"), engine("e2", "s2")], LINKS), policy="nearest")
    found = explain(tick, "a", "e1")
    assert found.route_marginal_ms is None
    assert found.alternatives == ()
    assert found.terms is not None
    assert found.terms.marginal_ms == pytest.approx(2 + 500)
    assert found.sentences[2] == "Nothing is at its bound."
    idle = explain(tick, "a", "e2")
    assert idle.sentences[0].endswith("= 130 ms.")
    assert tick.snapshot.routes[0].targets[0].sentence == "CHEAPEST: 2.0 ms network + 200 ms engine at 75 % load"


def test_what_cannot_be_explained_says_what_could() -> None:
    p = problem([row("a", 4), row("a", 1, request_class="batch")], [engine("e1")], LINKS)
    tick = tick_of(p)
    with pytest.raises(InvalidInputError, match=r"2 routes match; name model and class: a\|m\|batch, a\|m\|default"):
        explain(tick, "a", "e1")
    assert explain(tick, "a", "e1", "m", "batch").route.request_class == "batch"
    with pytest.raises(InvalidInputError, match="no route from 'z' matches"):
        explain(tick, "z", "e1")
    with pytest.raises(InvalidInputError, match="engine is 'e9'; there are e1"):
        explain(tick, "a", "e9", "m", "batch")
    held = hold_tick(p, tick.snapshot, SolverSettings(), TickStamp(1, 2, 2000), "telemetry lost")
    with pytest.raises(InvalidInputError, match="nothing was decided: telemetry lost"):
        explain(held, "a", "e1")


def test_the_score_is_the_mean_over_served_traffic_and_tells_overload_apart() -> None:
    p = problem([row("a", 15)], [engine("e1"), engine("e2", "s2")], LINKS, (FLAT,))
    near = tick_of(p, policy="nearest").decision
    assert near is not None
    scored = score(near.layout, near.plan)
    assert (scored.network_ms, scored.engine_ms, scored.overloaded_rps) == pytest.approx((2.0, 100.0, 5.0))
    lp = tick_of(p).decision
    assert lp is not None
    # 10 RPS at 2 ms, 5 RPS at 30 ms.
    assert score(lp.layout, lp.plan).end_to_end_ms == pytest.approx(100 + (10 * 2 + 5 * 30) / 15)
    nothing = tick_of(problem([], [])).decision
    assert nothing is not None
    assert score(nothing.layout, nothing.plan).end_to_end_ms == 0.0


def test_where_some_is_shed_a_weight_says_that_it_is_of_what_is_served() -> None:
    p = problem([row("a", 25)], [engine("e1"), engine("e2", "s2")], LINKS, (FLAT,))
    tick = tick_of(p)
    found = explain(tick, "a", "e1")
    assert found.shed_ratio == pytest.approx(0.2)
    said = "a for m (default) sends e1 10.0 RPS, 50.0 % of the 20.0 RPS that are served (5.0 of 25.0 RPS are shed): "
    assert found.sentences[0].startswith(said)
    assert tick.snapshot.routes[0].sentence == (
        "5.0 of 25.0 RPS (20.0 %) are shed, demand is above capacity; of the 20.0 served 50.0 % to e1, 50.0 % to e2"
    )


def test_beyond_the_wall_a_price_is_that_at_the_wall_and_the_queue_is_said() -> None:
    """What nobody measured is not read off a line that goes on: waiting for others would come out below zero."""
    for demand in (10.0, 10.6, 26.0):
        found = explain(tick_of(problem([row("a", demand)], [engine("e1")], LINKS), policy="nearest"), "a", "e1")
        assert found.terms is not None
        assert found.utilisation == pytest.approx(demand / 10.0)
        # At load 1 it is 300 ms, and one more request makes it 300 + 1 x 400 for everybody.
        assert found.terms.engine_ms == pytest.approx(300)
        assert found.terms.congestion_ms == pytest.approx(400)
        assert found.terms.scarcity_ms == 0.0
        assert ("at its wall" in found.sentences[0]) == (demand > 10.1)
    assert "and a queue that grows: it is sent 260 % of what it can serve" in found.sentences[0]


def test_an_engine_that_is_faster_the_fuller_it_is_has_that_taken_off() -> None:
    faster = profile(ttft_s=(0.3, 0.2, 0.1))
    found = explain(tick_of(problem([row("a", 4.0)], [engine("e1")], LINKS, (faster,)), policy="nearest"), "a", "e1")
    assert found.terms is not None
    assert found.terms.congestion_ms < 0.0
    assert "ms less waiting for others there" in found.sentences[0]
    assert "+ -" not in found.sentences[0]
