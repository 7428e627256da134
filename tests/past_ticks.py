"""The three regions as a tick that was computed again, for what is said of ticks: no broker, no history."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import resources

from headrace.infra.past_tick.again import Again
from headrace.schemas.weights import EngineMemory, Protected, Snapshot
from headrace.solver.core.problem import Problem
from headrace.solver.core.problem_file.problem_json import parse_problem
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings

TICK_MS = 1_700_000_000_000
A, B, C = (f"cluster-{x}|llama-3.1-8b|default" for x in "abc")


def three_regions() -> Problem:
    """A 90 RPS beside an engine of 100, B 120 beside 100, C 40 beside 80; four replicas each."""
    content = resources.files("headrace.infra.problems").joinpath("three-regions.json").read_bytes()
    return parse_problem(content).problem


def solved(
    problem: Problem, previous: Snapshot | None = None, version: int = 7, settings: SolverSettings | None = None
) -> Again:
    stamp = TickStamp(1, version, TICK_MS + 500 * version)
    return Again(problem, solve_tick(problem, previous, settings or SolverSettings(), Glop(), stamp), ())


def acted_on(again: Again, *protections: Protected, remembered: tuple[EngineMemory, ...] = ()) -> Again:
    """Give the same tick with protections and memories in its commit."""
    tick = again.tick
    commit = replace(tick.snapshot.commit, protections=protections, remembered=remembered)
    return replace(again, tick=replace(tick, snapshot=Snapshot(commit, tick.snapshot.routes)))


def shares(snapshot: Snapshot, route: str) -> Mapping[str, int]:
    (found,) = (r for r in snapshot.routes if str(r.route) == route)
    return {t.engine_id: t.weight_ppm for t in found.targets if t.weight_ppm}
