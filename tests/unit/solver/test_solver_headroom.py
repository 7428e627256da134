"""By how much more than planned each route may send an engine."""

from dataclasses import replace

import pytest

from headrace.schemas.weights import SnapshotCommit
from headrace.solver.core.problem import Problem
from headrace.solver.core.tick import Tick, TickStamp, hold_tick, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row

LINKS: dict[tuple[str, str], float | None] = {("a", "s1"): 1.0, ("b", "s1"): 2.0, ("a", "s2"): 50.0, ("b", "s2"): 60.0}
SETTINGS = SolverSettings(engine_cost="none", surge_load=0.9)
NEAR = engine("near", "s1", capacity=100)
FAR = engine("far", "s2", capacity=50)


def solve(p: Problem, settings: SolverSettings = SETTINGS) -> Tick:
    return solve_tick(p, None, settings, Glop(threads=1), TickStamp(1, 1, 500))


def headrooms(tick: Tick) -> dict[tuple[str, str], float | None]:
    return {(r.cluster, t.engine_id): t.headroom for r in tick.snapshot.routes for t in r.targets}


def commit(p: Problem, settings: SolverSettings = SETTINGS) -> SnapshotCommit:
    return solve(p, settings).snapshot.commit


def test_it_is_the_engines_room_held_against_what_the_route_sends_it() -> None:
    told = headrooms(solve(problem([row("a", 40.0), row("b", 20.0)], [NEAR], LINKS)))
    # 60 of 100 are planned, so 30 are left: for a three quarters of its 40, for b once and a half its 20.
    assert told == {("a", "near"): pytest.approx(0.75), ("b", "near"): pytest.approx(1.5)}


def test_an_engine_that_is_as_full_as_a_surge_may_make_it_has_none() -> None:
    told = headrooms(solve(problem([row("a", 120.0)], [NEAR, FAR], LINKS)))
    assert told["a", "near"] == 0.0
    assert told["a", "far"] == pytest.approx((0.9 * 50 - 20) / 20)


def test_what_is_shed_is_not_sent() -> None:
    told = headrooms(solve(problem([row("a", 400.0)], [NEAR], LINKS), replace(SETTINGS, surge_load=1.0)))
    assert told["a", "near"] == pytest.approx(0.0, abs=1e-3)


def test_a_request_that_is_more_work_leaves_room_for_fewer() -> None:
    told = headrooms(solve(problem([row("a", 10.0, work=4.0)], [NEAR], LINKS)))
    assert told["a", "near"] == pytest.approx((90 - 40) / 40)


def test_an_engine_that_nothing_is_sent_to_has_none_told() -> None:
    assert headrooms(solve(problem([row("a", 0.0)], [NEAR], LINKS)))["a", "near"] is None


def test_very_little_traffic_has_a_headroom_that_ends_somewhere() -> None:
    assert headrooms(solve(problem([row("a", 1e-9)], [NEAR], LINKS)))["a", "near"] == 10.0


def test_a_setting_of_0_tells_nothing_of_it_nor_up_to_when_demand_is_known() -> None:
    known = replace(problem([row("a", 40.0)], [NEAR], LINKS), demand_until_ms=300)
    off = replace(SETTINGS, surge_load=0.0)
    assert headrooms(solve(known, off))["a", "near"] is None
    assert commit(known, off).demand_until_ms is None
    assert commit(known).demand_until_ms == 300


def test_a_hold_knows_of_demand_up_to_where_the_weights_that_it_holds_do() -> None:
    before = solve(replace(problem([row("a", 40.0)], [NEAR], LINKS), demand_until_ms=300)).snapshot
    heard_since = replace(problem([row("a", 80.0)], [NEAR], LINKS), demand_until_ms=9_000)
    held = hold_tick(heard_since, before, SETTINGS, TickStamp(1, 2, 10_000), "no engine is heard of").snapshot
    assert held.commit.demand_until_ms == 300
