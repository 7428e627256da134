"""What a tick says when it can serve nothing, holds a demand, or knows no latency."""

from dataclasses import replace

from headrace.schemas.weights import Reason, RouteWeights
from headrace.solver.core.answer.refused import everything_refused
from headrace.solver.core.problem import Exclusion, Problem
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

GLOP = Glop(threads=1)


def tick(now: Problem, before: Tick | None = None) -> Tick:
    stamp = TickStamp(1, 1 if before is None else 2, 1_000 if before is None else 1_500)
    return solve_tick(now, None if before is None else before.snapshot, SolverSettings(), GLOP, stamp)


def route(of: Tick) -> RouteWeights:
    return of.snapshot.routes[0]


def test_a_tick_that_serves_nothing_says_so_and_why_and_certifies_nothing() -> None:
    out = Exclusion(Reason.UNHEALTHY, "says that it is unhealthy")
    sentence = tick(problem([row("A", 5.0)], [engine("a", exclusion=out)])).snapshot.commit.sentence
    assert sentence == "100 % refused: of 1 engines 1 UNHEALTHY; 5.0 RPS asked for; 0.0 RPS moved"


def test_the_engines_that_are_out_are_counted_by_reason() -> None:
    assert everything_refused(1.0, (), "full") == "100 % refused: there are no engines; 1.0 RPS asked for"
    out = Exclusion(Reason.STALE, "silent")
    assert everything_refused(2.0, (None, out, out), "full") == (
        "100 % refused: of 3 engines 2 STALE, 1 full; 2.0 RPS asked for"
    )


def test_a_route_says_when_its_demand_begins_and_ends_to_be_held() -> None:
    known = problem([row("A", 5.0)], [engine("a")])
    silent = problem([row("A", 5.0, demand_held=True)], [engine("a")])
    first, second = tick(known), tick(silent, tick(known))
    assert "held" not in route(first).sentence
    assert route(second).sentence.endswith("; demand held at the last known: nothing is heard of it now")
    assert (route(second).retry_ratio, route(second).targets) == (route(first).retry_ratio, route(second).targets)
    third = solve_tick(known, second.snapshot, SolverSettings(), GLOP, TickStamp(1, 3, 2_000))
    assert "held" not in route(third).sentence


def test_an_engine_of_unknown_latency_is_used_last_and_its_target_says_why() -> None:
    flat = replace(profile("lost"), load_knots=(0.0, 1.0), ttft_s=(0.3, 0.3), tbot_s=(0.0, 0.0))
    engines = [engine("a", profile_id="lost", latency_sentence="latency unknown: by hand"), engine("b")]
    little = tick(problem([row("A", 4.0)], engines, profiles=(profile(), flat)))
    assert [(t.engine_id, t.weight_ppm) for t in route(little).targets] == [("b", 1_000_000)]
    much = tick(problem([row("A", 15.0)], engines, profiles=(profile(), flat)))
    assert [t.engine_id for t in route(much).targets] == ["a", "b"]
    assert route(much).targets[0].sentence.endswith("; latency unknown: by hand")
    assert much.snapshot.commit.sentence.endswith("; latency unknown of 1 of 2 engines")


def test_an_engine_of_next_to_no_capacity_is_not_loaded_above_it() -> None:
    rows = [row("A", 90.0), row("B", 120.0), row("C", 40.0)]
    made = tick(problem(rows, [engine(name, site=f"s{name}", capacity=1e-9) for name in "abc"]))
    used = [t.utilisation for r in made.snapshot.routes for t in r.targets]
    assert all(u is not None and u <= 1.0 for u in used)
    assert made.snapshot.commit.sentence.startswith("100 % refused: of 3 engines 3 full; 250.0 RPS asked for")


def test_a_capacity_that_is_lost_in_rounding_is_none() -> None:
    (excluded,) = route(tick(problem([row("A", 5.0)], [engine("a", capacity=5e-324)]))).excluded
    assert (excluded.engine_id, excluded.reason) == ("a", Reason.UNHEALTHY)
