"""Random fleets on the measured latency curves, and how far a number of chords is from the best answer there is."""

from functools import cache

import numpy as np

from headrace.infra.load_tests.csv_table import read_csv
from headrace.infra.load_tests.forms import load_tests
from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.problem import Problem
from headrace.solver.core.profile.fit_profile import FittedProfile, fit_profiles
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row

LP = Glop(1)
SITES = 6


@cache
def measured_profiles(curves: int = 1_000) -> tuple[LatencyProfile, ...]:
    """Fit the first of the closed-loop curves that ship, and all of the open-loop ones."""
    made: list[LatencyProfile] = []
    for name, most in (("silicon_curves_agg", curves), ("inference_perf_h100_llama8b", 1_000)):
        outcomes = fit_profiles(load_tests(read_csv(name), {})[:most])
        made += [outcome.profile for outcome in outcomes if isinstance(outcome, FittedProfile)]
    return tuple(made)


def measured_fleet(seed: int, profiles: tuple[LatencyProfile, ...]) -> Problem:
    """Six clusters beside an engine each, of two curves or of six, loaded to between 0.4 and 0.92 of their capacity."""
    dice = np.random.default_rng(seed)
    chosen: list[int] = dice.choice(len(profiles), SITES if seed % 2 else 2, replace=False).tolist()
    of = [profiles[i] for i in chosen]
    capacity = dice.uniform(5, 50, SITES)
    demand = dice.dirichlet(np.full(SITES, 2.0)) * capacity.sum() * dice.uniform(0.4, 0.92)
    engines = [
        engine(f"e{j}", f"s{j}", float(c), profile_id=of[j % len(of)].profile_id) for j, c in enumerate(capacity)
    ]
    links: dict[tuple[str, str], float | None] = {
        (f"c{i}", f"s{j}"): 3.0 if i == j else float(dice.uniform(10, 150)) for i in range(SITES) for j in range(SITES)
    }
    return problem([row(f"c{i}", float(d)) for i, d in enumerate(demand)], engines, links, tuple(of))


def true_cost(
    fleet: Problem, segments: int, anchors: int = 0, refine_above: float | None = None
) -> tuple[float, float]:
    """Give the true cost of the answer on so many chords, and its certified gap; anchored ones after three ticks."""
    refine = SolverSettings().refine_above if refine_above is None else refine_above
    settings = SolverSettings(
        segments=segments, anchors=anchors, stay_within=0.0, move_price_ms=0.0, load_spread=0.0, refine_above=refine
    )
    tick = solve_tick(fleet, None, settings, LP, TickStamp(1, 1, 500))
    for version in range(2, 4 if anchors else 2):
        tick = solve_tick(fleet, tick.snapshot, settings, LP, TickStamp(1, version, 500 * version))
    assert tick.record.objective is not None
    assert tick.record.gap is not None
    return tick.record.objective, tick.record.gap


def best_cost(fleet: Problem) -> float:
    """Give the true cost on 64 chords, cut until 0.002 % is left."""
    return true_cost(fleet, 64, 8, 2e-5)[0]
