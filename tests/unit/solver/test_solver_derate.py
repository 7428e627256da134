"""A slow engine is taken for a smaller one: how much, until when, and that the two errors settle together."""

import math
from dataclasses import replace

import pytest

from headrace.schemas.weights import PPM, EngineMemory, Reason, Snapshot
from headrace.solver.core.problem import Engine, Exclusion, Measured, Problem
from headrace.solver.core.protections import protect, worth_remembering
from headrace.solver.core.protections.derate import LEAST
from headrace.solver.core.protections.guarded import Guarded
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

SETTINGS = SolverSettings()
LINEAR = profile(ttft_s=(0.1, 0.2, 0.3))
"""0.1 s + 0.2 s x load."""


def of(*engines: Engine) -> Problem:
    return problem([row("A", 1.0)], list(engines), profiles=(LINEAR,))


def after(p: Problem, *memories: EngineMemory, elapsed_ms: int = 1_000, settings: SolverSettings = SETTINGS) -> Guarded:
    first: Snapshot = solve_tick(of(engine("e1")), None, SETTINGS, Glop(threads=1), TickStamp(1, 1, 0)).snapshot
    remembering = replace(first, commit=replace(first.commit, remembered=memories))
    return protect(p, remembering, settings, elapsed_ms)


def slow(times: float, **changes: object) -> EngineMemory:
    given = EngineMemory("e1", trim_ppm=round(PPM * times), trim_step=round(math.log(times) / 0.05))
    return replace(given, **changes)


def test_an_engine_that_takes_a_fifth_longer_is_taken_for_smaller_and_the_snapshot_says_so() -> None:
    result = after(of(engine("e1")), slow(1.2))
    share = 1.0 / 1.2
    assert result.problem.engines[0].capacity_rps == pytest.approx(10.0 * share)
    told = next(p for p in result.protections if p.protection == "derate")
    assert told.factor == pytest.approx(share)
    assert told.sentence == "slower than its profile, its wall never measured: 83 % of capacity"


def test_a_quick_engine_is_not_taken_for_more_than_is_stated() -> None:
    assert after(of(engine("e1")), slow(0.7)).problem.engines[0].capacity_rps == 10.0


def test_a_trim_too_small_for_the_program_derates_nothing() -> None:
    assert after(of(engine("e1")), EngineMemory("e1", trim_ppm=1_070_000)).problem.engines[0].capacity_rps == 10.0


def test_it_is_never_less_than_its_bound() -> None:
    assert after(of(engine("e1")), slow(1.9)).problem.engines[0].capacity_rps == pytest.approx(10.0 * LEAST)


def test_what_was_counted_at_the_wall_is_known_and_needs_no_guess() -> None:
    assert after(of(engine("e1")), slow(1.2, capacity_ppm=PPM)).problem.engines[0].capacity_rps == 10.0
    assert after(of(engine("e1")), slow(1.2, capacity_ppm=600_000)).problem.engines[0].capacity_rps == 6.0


def test_an_engine_that_is_out_is_not_derated_and_a_bound_of_one_switches_it_off() -> None:
    out = engine("e1", exclusion=Exclusion(Reason.DRAINED, ""))
    assert "derate" not in {p.protection for p in after(of(out), slow(1.2)).protections}
    assert after(of(engine("e1")), slow(1.2), settings=SolverSettings(trim_bound=1.0)).protections == ()


def test_speed_and_capacity_settle_together_and_predict_what_is_measured() -> None:
    # Slower than profiled at 6 of 10 RPS: 0.22 s by the profile, 0.28 s measured.
    p = of(engine("e1", measured=Measured(6.0, 0.28, 0.28, 60, 6.0 * 0.28)))
    result = after(p)
    for _ in range(60):
        result = after(p, *worth_remembering(result), elapsed_ms=2_000)
    trim = result.memory("e1").trim_ppm / PPM
    share = result.problem.engines[0].capacity_rps / 10.0
    assert share == pytest.approx(1.0 / trim, abs=1e-5)
    assert trim * (0.1 + 0.2 * 0.6 / share) == pytest.approx(0.28, rel=1e-3)
    assert 1.1 < trim < 0.28 / 0.22
