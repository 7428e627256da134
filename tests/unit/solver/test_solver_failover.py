"""Where the sessions of an engine go if it is lost, how many of them find room, and what the next tick makes of it."""

from dataclasses import replace

import pytest

from headrace.schemas.weights import PPM, FallbackTarget, Reason, RouteWeights
from headrace.solver.core.problem import Engine, Exclusion, Problem
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
    def kept(demand: float) -> dict[str, float | None]:
        return {t.engine_id: t.failover_kept for t in only_route(solve(asked(demand, ENGINES[:2]))).targets}

    assert kept(20.0) == {"b": 1.0}
    # 100 at b, 40 at c: of b's 100 the other 40 of c find room, of c's 40 nobody, b is full.
    assert kept(140.0) == {"b": 0.4, "c": 0.0}


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
