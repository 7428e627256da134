"""A tick by hand: who gets what, why, and what is shed."""

from dataclasses import replace

import pytest

from headrace.schemas.assembly import summands_of
from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import Reason, RouteWeights, SnapshotStatus
from headrace.solver.core.linear import Failed, LinearProgram, Method, Solution
from headrace.solver.core.problem import Exclusion, Problem
from headrace.solver.core.problem_file.previous_weights import previous_snapshot
from headrace.solver.core.tick import Tick, TickStamp, hold_tick, policy_hash, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import ClassSettings, SolverSettings
from solver_problems import engine, problem, profile, row

GLOP = Glop(threads=1)
SETTINGS = SolverSettings()


def solve(p: Problem, previous: Tick | None = None, version: int = 1, **changes: object) -> Tick:
    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    before = None if previous is None else previous.snapshot
    return solve_tick(p, before, settings, GLOP, TickStamp(1, version, 1000 * version))


def weights(route: RouteWeights) -> dict[str, int]:
    return {t.engine_id: t.weight_ppm for t in route.targets}


class Broken:
    """A linear solver that fails by the given methods, and else is GLOP."""

    def __init__(self, *methods: Method) -> None:
        self.methods = methods

    def solve(self, programs: list[LinearProgram], method: Method) -> tuple[Solution | Failed, ...]:
        if method in self.methods:
            return tuple(Failed("GLOP_ABNORMAL") for _ in programs)
        return GLOP.solve(programs, method)


class Wrong:
    """A linear solver that says that doing nothing is optimal."""

    def solve(self, programs: list[LinearProgram], method: Method) -> tuple[Solution | Failed, ...]:  # noqa: ARG002 - the protocol's
        return tuple(Solution(p.lower, 0.0 * p.rhs, p.cost) for p in programs)


def test_network_alone_fills_the_near_engine_and_spills_the_rest() -> None:
    p = problem([row("a", 12)], [engine("near", "s1"), engine("far", "s2")], {("a", "s1"): 1.0, ("a", "s2"): 20.0})
    route = solve(p, engine_cost="none").snapshot.routes[0]
    # 10 of 12 RPS fit the near engine.
    assert weights(route) == {"far": 166_667, "near": 833_333}
    assert {t.engine_id: t.reason for t in route.targets} == {"near": Reason.AT_CAPACITY, "far": Reason.SPILL}
    assert route.marginal_ms == pytest.approx(20.0)


def test_a_tick_tells_the_parts_of_its_digest_that_came_and_went() -> None:
    links: dict[tuple[str, str], float | None] = {("a", "s1"): 1.0, ("b", "s1"): 2.0}
    first = solve(problem([row("a", 3), row("b", 3)], [engine("e", "s1")], links))
    again = solve(problem([row("a", 4), row("b", 3)], [engine("e", "s1")], links), first, 2)
    old, new = ({route.key: route for route in tick.snapshot.routes} for tick in (first, again))
    assert again.changed == {b"a|m|default"}
    assert again.summands.came == summands_of({key: new[key] for key in again.changed})
    assert again.summands.went == summands_of({key: old[key] for key in again.changed})
    assert check_snapshot(again.snapshot, first.snapshot, again.summands) == check_snapshot(again.snapshot) == ()


def test_a_route_that_loses_its_only_way_refuses_all() -> None:
    first = solve(problem([row("a", 3)], [engine("e", "s1")], {("a", "s1"): 1.0}))
    (route,) = solve(problem([row("a", 3)], [engine("e", "s1")], {("a", "s1"): None}), first, 2).snapshot.routes
    assert route.targets == ()
    assert route.shed_ratio == 1.0


def test_routes_with_the_same_fallback_share_one() -> None:
    links: dict[tuple[str, str], float | None] = {("a", "s1"): 1.0, ("b", "s1"): 2.0}
    a, b = solve(problem([row("a", 3), row("b", 4)], [engine("d", "s1"), engine("e", "s1")], links)).snapshot.routes
    assert a.fallback is b.fallback
    assert a.failover is b.failover


def test_equal_engines_of_one_pool_share_by_capacity_and_ties_go_by_id() -> None:
    p = problem([row("a", 6)], [engine("e1"), engine("e2"), engine("e3")])
    assert weights(solve(p).snapshot.routes[0]) == {"e1": 333_334, "e2": 333_333, "e3": 333_333}
    p = problem([row("a", 6)], [engine("e1", capacity=10), engine("e2", capacity=30)])
    assert weights(solve(p).snapshot.routes[0]) == {"e1": 250_000, "e2": 750_000}


def test_a_sentence_has_the_numbers_it_is_about() -> None:
    p = problem([row("a", 5)], [engine("e1")], 2.0)
    target = solve(p).snapshot.routes[0].targets[0]
    # At half load the hand-made profile says TTFT 100 ms and nothing per token.
    assert target.reason is Reason.CHEAPEST
    assert target.sentence.startswith("CHEAPEST: 2.0 ms network + 100 ms engine at 50 % load; marginal ")
    assert (target.ttft_s, target.tbot_s, target.utilisation) == (pytest.approx(0.1), 0.0, pytest.approx(0.5))


def test_overload_sheds_the_lowest_tier_first_and_takes_away_the_retries() -> None:
    p = problem([row("a", 8, request_class="batch", tier=1), row("a", 6, request_class="chat", tier=0)], [engine("e1")])
    tick = solve(p)
    batch, chat = tick.snapshot.routes
    assert chat.shed_ratio == 0.0
    # 14 asked, 10 served, so batch loses 4 of its 8.
    assert batch.shed_ratio == pytest.approx(0.5)
    assert (chat.retry_ratio, batch.retry_ratio) == (0.0, 0.0)
    assert tick.record.shed_rps == pytest.approx(4.0)
    assert "4.0 RPS shed, of tier 1" in tick.record.sentence
    assert batch.targets[0].reason is Reason.AT_CAPACITY
    assert batch.sentence.startswith("4.0 of 8.0 RPS (50.0 %) are shed, ")


def test_three_tiers_are_shed_in_order_though_the_lowest_is_nearest() -> None:
    rows = [row("a", 5, request_class="k0", tier=0), row("b", 5, request_class="k1", tier=1)]
    p = problem(
        [*rows, row("c", 5, request_class="k2", tier=2)],
        [engine("e1", capacity=7)],
        {("a", "s1"): 200.0, ("b", "s1"): 90.0, ("c", "s1"): 0.0},
    )
    assert [r.shed_ratio for r in solve(p).snapshot.routes] == pytest.approx([0.0, 0.6, 1.0])


def test_the_retry_budget_falls_linearly_between_80_and_95_percent() -> None:
    for demand, ratio in ((7.0, 0.1), (8.0, 0.1), (8.75, 0.05), (9.5, 0.0), (10.0, 0.0)):
        assert solve(problem([row("a", demand)], [engine("e1")])).snapshot.routes[0].retry_ratio == pytest.approx(ratio)
    settings = {"retry_load_low": 0.9, "retry_load_high": 0.9}
    assert solve(problem([row("a", 8)], [engine("e1")]), **settings).snapshot.routes[0].retry_ratio == 0.1
    assert solve(problem([row("a", 9.5)], [engine("e1")]), **settings).snapshot.routes[0].retry_ratio == 0.0


def test_no_engines_means_no_targets_all_shed_and_a_record_of_it() -> None:
    tick = solve(problem([row("a", 5)], []))
    (route,) = tick.snapshot.routes
    assert (route.targets, route.fallback, route.excluded, route.shed_ratio) == ((), (), (), 1.0)
    assert route.sentence == "5.0 RPS asked for, all refused: no engine may serve it, see the excluded ones"
    assert tick.record.utilisation is None
    assert check_snapshot(tick.snapshot) == ()


def test_engines_that_all_turn_to_other_models_leave_a_route_with_nobody() -> None:
    first = solve_tick(problem([row("a", 5)], [engine("e1")], 5.0), None, SolverSettings(), Glop(), TickStamp(1, 1, 0))
    turned = problem([row("a", 5)], [engine("e1", models=("other",))], 5.0)
    later = solve_tick(turned, first.snapshot, SolverSettings(), Glop(), TickStamp(1, 2, 1000))
    assert [route.targets for route in later.snapshot.routes] == [()]
    assert check_snapshot(later.snapshot) == ()


def test_nothing_at_all_is_a_sound_snapshot_too() -> None:
    tick = solve(problem([], []))
    assert tick.snapshot.routes == ()
    assert check_snapshot(tick.snapshot) == ()


def test_a_route_that_nobody_may_serve_lists_every_engine_with_its_reason() -> None:
    engines = [
        engine("e1", models=("other",)),
        engine("e2"),
        engine("e3", capabilities=("vision",), residency=("us",)),
        engine("e4", capabilities=("vision",), residency=("eu",), exclusion=Exclusion(Reason.STALE, "silent for 20 s")),
        engine("e5", capabilities=("vision",), residency=("eu",), ready_replicas=0),
        engine("e6", capabilities=("vision",), residency=("eu",), profile_id="nowhere"),
        engine("e7", capabilities=("vision",), residency=("eu",), factor=0.0, factor_sentence="all errors"),
        engine("e8", "far", capabilities=("vision",), residency=("eu",)),
        engine("e9", "lost", capabilities=("vision",), residency=("eu",)),
    ]
    asked = row("a", 5, requires=("vision",), residency=("eu",))
    p = problem([asked], engines, {("a", "s1"): 1.0, ("a", "lost"): None})
    (route,) = solve(p).snapshot.routes
    assert {x.engine_id: x.reason for x in route.excluded} == {
        "e1": Reason.MODEL_NOT_SERVED,
        "e2": Reason.CAPABILITY_MISSING,
        "e3": Reason.RESIDENCY,
        "e4": Reason.STALE,
        "e5": Reason.NO_READY_REPLICA,
        "e6": Reason.NO_PROFILE,
        "e7": Reason.UNHEALTHY,
        "e8": Reason.NETWORK_UNKNOWN,
        "e9": Reason.NETWORK_LOST,
    }
    sentences = {x.engine_id: x.sentence for x in route.excluded}
    assert sentences["e2"] == "it lacks vision"
    assert sentences["e3"] == "its residency is us; allowed: eu"
    assert sentences["e7"] == "its usable capacity is 0: all errors"
    assert route.shed_ratio == 1.0


def test_residency_is_never_spilled_even_when_the_allowed_engine_is_full() -> None:
    p = problem(
        [row("a", 15, residency=("eu",))],
        [engine("eu", residency=("eu",)), engine("us", residency=("us",), capacity=100)],
    )
    (route,) = solve(p).snapshot.routes
    assert weights(route) == {"eu": 1_000_000}
    assert route.shed_ratio == pytest.approx(1 / 3)
    assert [t.engine_id for t in route.fallback] == ["eu"]


def test_a_dead_engine_gets_no_weight_and_the_rest_keep_their_ratio() -> None:
    engines = [engine("e1", capacity=10), engine("e2", capacity=30), engine("e3", capacity=20)]
    before = solve(problem([row("a", 6)], engines))
    dead = replace(engines[2], exclusion=Exclusion(Reason.UNHEALTHY, "says so itself"))
    after = solve(problem([row("a", 6)], [*engines[:2], dead]), before, 2)
    (route,) = after.snapshot.routes
    assert weights(route) == {"e1": 250_000, "e2": 750_000}
    assert [(x.engine_id, x.reason) for x in route.excluded] == [("e3", Reason.UNHEALTHY)]
    assert after.changed == {route.key}
    # A third of 6 RPS was there.
    assert after.record.moved_rps == pytest.approx(2.0, abs=1e-5)


def test_a_route_without_demand_keeps_its_weights_or_gets_the_cheapest_pool() -> None:
    engines = [engine("near", "s1"), engine("far", "s2")]
    links = {("a", "s1"): 1.0, ("a", "s2"): 20.0}
    fresh = solve(problem([row("a", 0)], engines, links)).snapshot.routes[0]
    assert weights(fresh) == {"near": 1_000_000}
    assert fresh.targets[0].reason is Reason.NO_DEMAND
    assert fresh.shed_ratio == 0.0
    before = solve(problem([row("a", 12)], engines, links), engine_cost="none")
    after = solve(problem([row("a", 0)], engines, links), before, 2)
    assert weights(after.snapshot.routes[0]) == {"near": 833_333, "far": 166_667}


def test_moving_has_its_price_so_a_small_gain_moves_nobody_and_a_large_one_does() -> None:
    engines = [engine("e1", "s1"), engine("e2", "s2")]
    near_1 = {("a", "s1"): 1.0, ("a", "s2"): 11.0}
    before = solve(problem([row("a", 4)], engines, near_1))
    assert weights(before.snapshot.routes[0]) == {"e1": 1_000_000}
    # Below half load the hand-made profile is flat: only the network counts. 20 ms nearer is less than 30 ms.
    small = solve(problem([row("a", 4)], engines, {("a", "s1"): 31.0, ("a", "s2"): 11.0}), before, 2)
    (route,) = small.snapshot.routes
    assert weights(route) == {"e1": 1_000_000}
    assert small.changed == frozenset()
    fuller = problem([row("a", 5)], engines, {("a", "s1"): 31.0, ("a", "s2"): 11.0})
    warm = solve(fuller, before, 2, load_spread=0.0).snapshot.routes[0]
    assert warm.targets[0].reason is Reason.KEPT_WARM
    assert "a new session would save 20 ms elsewhere" in warm.targets[0].sentence
    large = solve(problem([row("a", 4)], engines, {("a", "s1"): 51.0, ("a", "s2"): 11.0}), before, 2)
    (route,) = large.snapshot.routes
    assert weights(route) == {"e1": 0, "e2": 1_000_000}
    assert {t.engine_id: (t.reason, t.previous_ppm) for t in route.targets} == {
        "e1": (Reason.COSTLIER, 1_000_000),
        "e2": (Reason.CHEAPEST, 0),
    }


def test_a_route_is_written_again_only_when_it_says_something_else() -> None:
    engines = [engine("e1", address="10.0.0.1:80"), engine("e2")]
    before = solve(problem([row("a", 4), row("b", 1)], engines))
    key = RouteKey("a", "m", "default").encode()

    def changed(p: Problem) -> frozenset[bytes]:
        return solve(p, before, 2).changed

    assert changed(problem([row("a", 4.1), row("b", 1)], engines)) == frozenset()
    assert changed(problem([row("a", 4.5), row("b", 1)], engines)) == {key}
    assert changed(problem([row("a", 4, tier=1), row("b", 1)], engines)) == {key}
    moved = [replace(engines[0], address="10.0.0.2:80"), engines[1]]
    assert len(changed(problem([row("a", 4), row("b", 1)], moved))) == 2
    gone = solve(problem([row("a", 4)], engines), before, 2)
    assert gone.removed == {RouteKey("b", "m", "default").encode()}
    assert check_snapshot(gone.snapshot) == ()


def test_a_new_epoch_writes_every_route_again_on_the_same_engines() -> None:
    p = problem([row("a", 4), row("b", 1)], [engine("e1"), engine("e2")])
    before = solve(p)
    after = solve_tick(p, before.snapshot, SETTINGS, GLOP, TickStamp(2, 2, 2000))
    assert len(after.changed) == 2
    assert [weights(r) for r in after.snapshot.routes] == [weights(r) for r in before.snapshot.routes]
    assert {r.epoch for r in after.snapshot.routes} == {2}


def test_the_fallback_is_by_nominal_capacity_and_keeps_the_nearest_16() -> None:
    engines = [engine("e1", capacity=10, factor=0.1), engine("e2", "s2", capacity=30)]
    (route,) = solve(problem([row("a", 1)], engines)).snapshot.routes
    assert [(t.engine_id, t.weight_ppm) for t in route.fallback] == [("e1", 250_000), ("e2", 750_000)]
    many = [engine(f"far-{i:02}", "s2") for i in range(10)] + [engine(f"near-{i:02}", "s1") for i in range(12)]
    (route,) = solve(problem([row("a", 1)], many, {("a", "s1"): 1.0, ("a", "s2"): 9.0})).snapshot.routes
    assert len(route.fallback) == 16
    assert sum(t.engine_id.startswith("near") for t in route.fallback) == 12


def test_the_ladder_goes_down_by_method_and_says_which_rung_answered() -> None:
    p = problem([row("a", 12)], [engine("e1"), engine("e2", "s2")])
    good = solve_tick(p, None, SETTINGS, GLOP, TickStamp(1, 1, 1000))
    for methods, rung in (((Method.DUAL,), "PRIMAL"), ((Method.DUAL, Method.PRIMAL), "UNSCALED")):
        tick = solve_tick(p, None, SETTINGS, Broken(*methods), TickStamp(1, 1, 1000))
        assert tick.record.rung == rung
        assert tick.record.status is SnapshotStatus.OPTIMAL
        assert tick.record.objective == pytest.approx(good.record.objective)


def test_when_the_program_cannot_be_solved_the_last_good_weights_stand_on_what_is_left() -> None:
    engines = [engine("e1"), engine("e2", "s2"), engine("e3", "s3")]
    before = previous_snapshot({RouteKey("a", "m", "default"): {"e1": 200_000, "e2": 300_000, "e3": 500_000}})
    left = [*engines[:2], replace(engines[2], exclusion=Exclusion(Reason.STALE, "silent for 20 s"))]
    tick = solve_tick(problem([row("a", 12)], left), before, SETTINGS, Broken(*Method), TickStamp(1, 1, 1000))
    assert (tick.record.status, tick.record.rung) == (SnapshotStatus.HELD, "LAST_GOOD")
    (route,) = tick.snapshot.routes
    assert weights(route) == {"e1": 400_000, "e2": 600_000}
    assert tick.record.sentence.startswith("lp failed: LP_UNSOLVED after DUAL, PRIMAL, UNSCALED: component 0: GLOP_ABN")
    assert route.marginal_ms is None


def test_without_a_last_good_snapshot_weights_go_by_capacity() -> None:
    p = problem([row("a", 24)], [engine("e1", capacity=5), engine("e2", "s2", capacity=15)])
    tick = solve_tick(p, None, SETTINGS, Broken(*Method), TickStamp(1, 1, 1000))
    assert (tick.record.status, tick.record.rung) == (SnapshotStatus.PROPORTIONAL, "CAPACITY_WEIGHTED")
    (route,) = tick.snapshot.routes
    assert weights(route) == {"e1": 250_000, "e2": 750_000}
    assert route.shed_ratio == pytest.approx(4 / 24)
    assert "last_good failed: NO_PREVIOUS_SNAPSHOT" in tick.record.sentence


def test_an_answer_that_breaks_the_conditions_is_not_believed() -> None:
    tick = solve_tick(problem([row("a", 4)], [engine("e1")]), None, SETTINGS, Wrong(), TickStamp(1, 1, 1000))
    assert tick.record.status is SnapshotStatus.PROPORTIONAL
    assert "flow is off by 4 RPS" in tick.record.sentence


def test_holding_leaves_every_route_alone_and_extends_its_validity() -> None:
    p = problem([row("a", 4)], [engine("e1")])
    before = solve(p)
    held = hold_tick(p, before.snapshot, SETTINGS, TickStamp(1, 2, 9000), "all telemetry is lost")
    assert held.snapshot.routes == before.snapshot.routes
    assert (held.changed, held.removed) == (frozenset(), frozenset())
    assert held.snapshot.commit.status is SnapshotStatus.HELD
    assert held.snapshot.commit.valid_until_ms == 9000 + SETTINGS.ttl_ms
    assert (held.record.rung, held.record.sentence) == ("HOLD", "all telemetry is lost")
    assert check_snapshot(held.snapshot) == ()
    anew = hold_tick(p, before.snapshot, SETTINGS, TickStamp(2, 2, 9000), "all telemetry is lost")
    assert len(anew.changed) == 1
    assert check_snapshot(anew.snapshot) == ()


def test_the_policy_hash_changes_with_every_rule_and_with_nothing_else() -> None:
    same = replace(SETTINGS, classes={"default": ClassSettings()}, period_ms=700)
    assert policy_hash(same) == policy_hash(SETTINGS)
    assert policy_hash(replace(SETTINGS, segments=9)) != policy_hash(SETTINGS)
    assert policy_hash(replace(SETTINGS, classes={"default": ClassSettings(tier=1)})) != policy_hash(SETTINGS)


def test_the_record_tells_sizes_prices_and_phase_times() -> None:
    beats = iter(range(0, 1000, 10))
    p = problem([row("a", 4), row("b", 3, model="n")], [engine("e1"), engine("e2", models=("n",))])
    stamp = TickStamp(1, 1, 1000, elapsed_us=lambda: next(beats))
    record = solve_tick(p, None, SETTINGS, GLOP, stamp).record
    assert (record.components, record.rows) == (2, 4)
    assert (record.demand_rps, record.capacity_rps, record.utilisation) == (7.0, 20.0, pytest.approx(0.35))
    assert (record.build_us, record.solve_us, record.check_us) == (10, 10, 10)
    assert [d.route for d in record.route_duals] == ["a|m|default", "b|n|default"]
    assert [(d.pool, d.load_rps) for d in record.pool_duals] == [("s1 m", pytest.approx(4)), ("s1 n", pytest.approx(3))]


def test_headroom_keeps_the_last_of_an_engine_free_while_another_has_room() -> None:
    p = problem([row("a", 9.9)], [engine("e1"), engine("e2", "s2")], {("a", "s1"): 0.0, ("a", "s2"): 400.0})
    flat = (profile(ttft_s=(0.1, 0.1, 0.1)),)
    full = solve(replace(p, profiles={"p": flat[0]}))
    assert weights(full.snapshot.routes[0]) == {"e1": 1_000_000}
    kept = solve(replace(p, profiles={"p": flat[0]}), headroom_price_ms=1e5)
    # 9.5 of 9.9 RPS below the 95 % line.
    assert weights(kept.snapshot.routes[0]) == {"e1": 959_596, "e2": 40_404}


def test_engines_of_unlike_profiles_in_one_pool_fill_their_cheap_chords_first() -> None:
    slow = profile("slow", ttft_s=(0.5, 0.5, 0.7))
    p = problem([row("a", 6)], [engine("e1"), engine("e2", profile_id="slow")], profiles=(profile(), slow))
    (route,) = solve(p).snapshot.routes
    # Up to half load the quick one costs 100 ms; beyond, 100 to 700 ms marginal; the slow one 500 ms from the start.
    assert weights(route)["e1"] > 900_000
    over = problem([row("a", 25)], [engine("e1"), engine("e2", profile_id="slow")], profiles=(profile(), slow))
    full = solve(over, policy="nearest")
    assert full.record.utilisation == pytest.approx(1.25)
