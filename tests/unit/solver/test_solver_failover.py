"""Where the sessions of an engine go if it is lost, how many of them find room, and what the next tick makes of it."""

from dataclasses import replace

import pytest

from headrace.schemas.weights import PPM, FallbackTarget, Reason, RouteWeights
from headrace.solver.core.problem import Engine, Exclusion, Pin, Problem
from headrace.solver.core.program.displaced import after_failover
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row

LINKS: dict[tuple[str, str], float | None] = {("a", "s1"): 1.0, ("a", "s2"): 2.0, ("a", "s3"): 50.0}
ENGINES = (engine("b", "s1", capacity=100), engine("c", "s2", capacity=80), engine("far", "s3", capacity=100))


NETWORK = SolverSettings(engine_cost="none")


def solve(p: Problem, previous: Tick | None = None, settings: SolverSettings = NETWORK) -> Tick:
    version = 1 if previous is None else previous.snapshot.commit.version + 1
    before = None if previous is None else previous.snapshot
    return solve_tick(p, before, settings, Glop(threads=1), TickStamp(1, version, 500 * version))


def asked(demand: float, engines: tuple[Engine, ...] = ENGINES) -> Problem:
    return problem([row("a", demand)], list(engines), LINKS)


def pinned(p: Problem, **most: float) -> Problem:
    """Let a send these engines so much at most."""
    return replace(p, pins=tuple(Pin("a", name, 0.0, share, "pinned by ann") for name, share in sorted(most.items())))


def kept(route: RouteWeights) -> dict[str, float | None]:
    return {t.engine_id: t.failover_kept for t in route.targets}


def only_route(tick: Tick) -> RouteWeights:
    (route,) = tick.snapshot.routes
    return route


def shares(targets: tuple[FallbackTarget, ...]) -> dict[str, int]:
    return {t.engine_id: t.weight_ppm for t in targets}


def test_the_failover_is_by_spare_capacity_of_the_nearest_that_have_enough_without_the_lost_one() -> None:
    # b carries 20 and may be lost: c alone has more than 30 to spare, so nobody goes far.
    assert shares(only_route(solve(asked(20.0))).failover) == {"b": PPM // 2, "c": PPM // 2}
    # Of 90 it has 10 left; c has 80, which is not 135, so far helps.
    by_room = {"b": round(PPM * 10 / 190), "c": round(PPM * 80 / 190), "far": round(PPM * 100 / 190)}
    assert shares(only_route(solve(asked(90.0))).failover) == pytest.approx(by_room, abs=1)


def test_a_target_says_how_many_of_its_sessions_would_find_room() -> None:
    assert kept(only_route(solve(asked(20.0, ENGINES[:2])))) == {"b": 1.0}
    # 100 at b, 40 at c: of b's 100 the other 40 of c find room, of c's 40 nobody, b is full.
    assert kept(only_route(solve(asked(140.0, ENGINES[:2])))) == {"b": 0.4, "c": 0.0}


def test_in_a_fleet_without_room_the_failover_is_by_capacity() -> None:
    full = only_route(solve(asked(180.0, ENGINES[:2])))
    assert shares(full.failover) == pytest.approx({"b": PPM * 100 / 180, "c": PPM * 80 / 180}, abs=1)


def test_a_setting_of_0_gives_no_failover_and_nothing_is_known_of_room() -> None:
    route = only_route(solve(asked(90.0), settings=replace(NETWORK, failover_spare=0.0)))
    assert route.failover == ()
    assert [t.failover_kept for t in route.targets] == [None]


def test_sessions_of_an_engine_that_is_out_are_found_where_the_failover_has_put_them() -> None:
    route = only_route(solve(asked(90.0)))
    assert dict(after_failover(route, {"c", "far"})) == {"c": 444_444, "far": 555_556}
    assert dict(after_failover(route, {"b", "c", "far"})) == {"b": PPM}
    assert dict(after_failover(route, ())) == {}
    assert dict(after_failover(replace(route, failover=()), {"c", "far"})) == {}


def test_the_next_tick_leaves_them_there_unless_moving_is_worth_it_and_counts_them_as_moved() -> None:
    before = solve(asked(90.0))
    dead = replace(ENGINES[0], exclusion=Exclusion(Reason.UNHEALTHY, "says so itself"))
    after = solve(asked(90.0, (dead, *ENGINES[1:])), before, replace(NETWORK, move_price_ms=1_000.0))
    assert {t.engine_id: t.weight_ppm for t in only_route(after).targets} == {"c": 444_444, "far": 555_556}
    assert after.record.moved_rps == pytest.approx(90.0)
    cheap = solve(asked(90.0, (dead, *ENGINES[1:])), before, replace(NETWORK, move_price_ms=0.0, stay_within=0.0))
    assert {t.engine_id: t.weight_ppm for t in only_route(cheap).targets} == pytest.approx(
        {"c": PPM * 80 / 90, "far": PPM * 10 / 90}, abs=1
    )


def test_an_engine_that_is_pinned_to_nothing_is_no_refuge_and_no_fallback() -> None:
    route = only_route(solve(pinned(asked(20.0), c=0.0)))
    assert shares(route.failover) == pytest.approx({"b": PPM * 80 / 180, "far": PPM * 100 / 180}, abs=1)
    assert shares(route.fallback) == {"b": PPM // 2, "far": PPM // 2}
    assert kept(route)["b"] == 1.0
    # Without far there is nobody else: what the next tick would shed is shed at once.
    alone = only_route(solve(pinned(asked(20.0, ENGINES[:2]), c=0.0)))
    assert shares(alone.failover) == shares(alone.fallback) == {"b": PPM}
    assert kept(alone)["b"] == 0.0


def test_an_engine_with_a_pin_is_a_refuge_for_what_its_pin_leaves() -> None:
    # b takes 80 of 90. c has 70 to spare, and may take 36 of 90: 26 more than its 10, pinned to that; far has 100.
    exact = replace(asked(90.0), pins=(Pin("a", "c", 10 / 90, 0.4, "pinned by ann"),))
    route = only_route(solve(exact))
    by_room = {"b": PPM * 20 / 146, "c": PPM * 26 / 146, "far": PPM * 100 / 146}
    assert shares(route.failover) == pytest.approx(by_room, abs=1)
    assert kept(route)["b"] == 1.0
    two = only_route(solve(replace(exact, engines=ENGINES[:2])))
    assert kept(two)["b"] == pytest.approx(26 / 80, abs=0.001)


def test_an_engine_that_has_all_that_its_pin_allows_comes_after_all_others() -> None:
    route = only_route(solve(pinned(asked(90.0), b=0.5)))
    assert {t.engine_id: t.weight_ppm for t in route.targets} == {"b": PPM // 2, "c": PPM // 2}
    # 35 to spare at c, 100 far away; b has 55, and no leave.
    assert shares(route.failover) == pytest.approx({"c": PPM * 35 / 135, "far": PPM * 100 / 135}, abs=1)
    # Where pins leave nothing of anybody, who is not shed still goes somewhere.
    both = only_route(solve(pinned(asked(90.0, ENGINES[:2]), b=0.5, c=0.5)))
    assert shares(both.failover) == pytest.approx({"b": PPM * 100 / 180, "c": PPM * 80 / 180}, abs=1)
    assert kept(both) == {"b": 0.0, "c": 0.0}


def test_a_fallback_gives_an_engine_no_more_than_its_pin() -> None:
    route = only_route(solve(pinned(asked(20.0), far=0.1)))
    assert shares(route.fallback) == pytest.approx({"b": PPM * 0.5, "c": PPM * 0.4, "far": PPM * 0.1}, abs=1)
    # Where all are pinned to less than the whole together, it is by what they may have.
    little = only_route(solve(pinned(asked(20.0), b=0.3, c=0.1, far=0.1)))
    assert shares(little.fallback) == pytest.approx({"b": PPM * 0.6, "c": PPM * 0.2, "far": PPM * 0.2}, abs=1)


def test_a_pin_of_one_cluster_says_nothing_of_another() -> None:
    links = LINKS | {("d", site): ms for (_, site), ms in LINKS.items()}
    made = problem([row("a", 20.0), row("d", 20.0)], list(ENGINES), links)
    routes = {r.cluster: r for r in solve(pinned(made, c=0.0)).snapshot.routes}
    assert "c" not in shares(routes["a"].failover)
    assert "c" in shares(routes["d"].failover)
    assert "c" in shares(routes["d"].fallback)
