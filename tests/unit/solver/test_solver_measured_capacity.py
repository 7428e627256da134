"""What a full engine was measured to serve: when that is believed, how far down, and the slow way back."""

from dataclasses import replace

import pytest

from headrace.schemas.weights import PPM, EngineMemory, Reason, Snapshot
from headrace.solver.core.problem import Engine, Exclusion, Problem, Throughput
from headrace.solver.core.protections import protect
from headrace.solver.core.protections.guarded import Guarded
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

SECOND = profile(ttft_s=(1.0, 1.0, 1.0))
"""Whatever the load, a second: what an engine holds is what it finishes in one."""
FULL = Throughput(signal_ms=10_000, running=100.0, waiting=50.0, recent_rps=33.0, window_rps=60.0, window_s=10.0)
IDLE = replace(FULL, running=20.0, waiting=0.0, recent_rps=20.0)
SETTINGS = SolverSettings(backlog_drain_ms=0)


def of(now: Throughput | None, **changes: object) -> Problem:
    return problem([row("A", 1.0)], [one(now, **changes)], profiles=(SECOND,))


def one(now: Throughput | None, **changes: object) -> Engine:
    return engine("e1", throughput=now, capacity=25.0, **{"ready_replicas": 4, **changes})


def after(p: Problem, memory: EngineMemory, elapsed_ms: int = 1_000, settings: SolverSettings = SETTINGS) -> Guarded:
    first: Snapshot = solve_tick(of(None), None, SETTINGS, Glop(threads=1), TickStamp(1, 1, 0)).snapshot
    remembering = replace(first, commit=replace(first.commit, remembered=(memory,)))
    return protect(p, remembering, settings, elapsed_ms)


def full_for(seconds: float, **changes: int | None) -> EngineMemory:
    return replace(EngineMemory("e1", full_since_ms=10_000 - round(seconds * 1000), full_replicas=4), **changes)


def capacity_of(guarded: Guarded) -> float:
    return guarded.problem.engines[0].capacity_rps


def test_a_queue_is_noted_when_it_stands_and_nothing_is_believed_yet() -> None:
    result = after(of(FULL), EngineMemory("e1"))
    assert result.memory("e1") == EngineMemory("e1", full_since_ms=10_000, full_replicas=4)
    assert (capacity_of(result), result.protections) == (100.0, ())


def test_after_three_seconds_and_a_service_time_it_is_what_was_finished_lately() -> None:
    # 33 RPS of the stated 100; in one second what is believed falls to half at most.
    assert capacity_of(after(of(FULL), full_for(3.9))) == 100.0
    assert capacity_of(after(of(FULL), full_for(4.0))) == pytest.approx(50.0)
    result = after(of(FULL), full_for(4.0, capacity_ppm=PPM // 2))
    assert capacity_of(result) == pytest.approx(33.0)
    (told,) = result.protections
    assert told.sentence == "measured to serve 33.0 RPS at its wall, 33 % of what is stated"
    assert (told.protection, told.factor) == ("measured_capacity", pytest.approx(0.33))


def test_once_it_was_full_for_the_whole_window_that_is_measured_which_is_surer() -> None:
    assert capacity_of(after(of(FULL), full_for(11.0))) == pytest.approx(60.0)


def test_what_is_believed_stands_until_a_count_is_off_by_more_than_chance_either_way() -> None:
    # Of 100 RPS in ten seconds, chance is 1.5 x sqrt(100 / 10 s) = 4.74; of 80 it is 4.24.
    assert capacity_of(after(of(replace(FULL, window_rps=95.5)), full_for(20.0))) == 100.0
    assert capacity_of(after(of(replace(FULL, window_rps=95.0)), full_for(20.0))) == pytest.approx(95.0)
    less = full_for(20.0, capacity_ppm=800_000)
    assert capacity_of(after(of(replace(FULL, window_rps=84.0)), less)) == pytest.approx(80.0)
    assert capacity_of(after(of(replace(FULL, window_rps=85.0)), less)) == pytest.approx(85.0)


def test_it_is_never_believed_to_serve_more_than_is_stated() -> None:
    result = after(of(replace(FULL, window_rps=130.0)), full_for(20.0))
    assert (capacity_of(result), result.memory("e1").capacity_ppm) == (100.0, PPM)


def test_a_slow_engine_that_serves_all_that_is_stated_is_found_out_at_its_wall_and_stays_known() -> None:
    slow = {"trim_ppm": 1_200_000, "trim_step": 4}
    assert capacity_of(after(of(FULL), full_for(1.0, **slow))) == pytest.approx(100.0 / 1.2)
    known = after(of(replace(FULL, window_rps=102.0)), full_for(20.0, **slow)).memory("e1")
    assert known.capacity_ppm == PPM
    assert capacity_of(after(of(IDLE), replace(known, full_since_ms=None, full_replicas=None))) == 100.0


def test_what_was_served_without_a_queue_is_served_too() -> None:
    # Of 83.3 RPS in ten seconds, chance is 4.33: 88 contradict it, 87 do not.
    slow = EngineMemory("e1", trim_ppm=1_200_000, trim_step=4)
    assert after(of(replace(IDLE, window_rps=87.0)), slow).memory("e1").capacity_ppm is None
    assert after(of(replace(IDLE, window_rps=88.0)), slow).memory("e1").capacity_ppm == 880_000


def test_finishing_more_than_such_replicas_can_is_the_work_of_those_that_were() -> None:
    slow = EngineMemory("e1", trim_ppm=1_200_000, trim_step=4)
    assert after(of(replace(IDLE, window_rps=120.0)), slow).memory("e1").capacity_ppm is None


def test_what_was_counted_beyond_what_its_trim_leaves_stands_until_another_count() -> None:
    known = EngineMemory("e1", trim_ppm=1_200_000, trim_step=4, capacity_ppm=900_000)
    assert after(of(IDLE), known).memory("e1") == known


def test_what_is_given_back_ends_where_its_trim_would_put_it_anyway() -> None:
    low = EngineMemory("e1", trim_ppm=1_200_000, trim_step=4, capacity_ppm=832_000)
    assert after(of(IDLE), low).memory("e1").capacity_ppm is None


def test_a_queue_stands_from_a_quarter_of_what_is_in_service_until_it_is_a_twentieth() -> None:
    assert after(of(replace(FULL, waiting=25.0)), EngineMemory("e1")).memory("e1") == EngineMemory("e1")
    assert after(of(replace(FULL, waiting=6.0)), full_for(1.0)).memory("e1").full_since_ms == 9_000
    assert after(of(replace(FULL, waiting=5.0)), full_for(1.0)).memory("e1").full_since_ms is None


def test_with_other_replicas_the_measurement_begins_anew() -> None:
    more = after(of(FULL, ready_replicas=5), full_for(20.0))
    assert (capacity_of(more), more.memory("e1").full_since_ms, more.memory("e1").full_replicas) == (125.0, 10_000, 5)


def test_without_a_queue_it_is_given_back_a_little_a_second() -> None:
    # Slow as it is, what it holds is more than a quarter above what its profile says: 0.3 % of what is stated a second.
    slow = replace(IDLE, running=60.0)
    result = after(of(slow), EngineMemory("e1", capacity_ppm=330_000), 2_000)
    assert result.memory("e1").capacity_ppm == 336_000


def test_one_that_is_as_quick_as_profiled_is_given_back_a_tenth_a_second_up_to_four_fifths() -> None:
    assert after(of(IDLE), EngineMemory("e1", capacity_ppm=330_000)).memory("e1").capacity_ppm == 430_000
    assert after(of(IDLE), EngineMemory("e1", capacity_ppm=800_000)).memory("e1").capacity_ppm == 803_000


def test_what_is_whole_again_is_forgotten() -> None:
    assert after(of(IDLE), EngineMemory("e1", capacity_ppm=999_000)).memory("e1") == EngineMemory("e1")


def test_it_never_falls_below_its_bound_and_a_bound_of_one_believes_what_is_stated() -> None:
    stuck = replace(FULL, recent_rps=0.0, window_rps=0.0)
    assert capacity_of(after(of(stuck), full_for(20.0, capacity_ppm=60_000))) == pytest.approx(5.0)
    off = SolverSettings(backlog_drain_ms=0, measured_capacity_least=1.0)
    assert after(of(stuck), full_for(20.0), settings=off).protections == ()


def test_of_a_penalty_and_a_measurement_the_lower_one_counts() -> None:
    penalised = of(FULL, factor=0.3, factor_sentence="an outlier")
    assert capacity_of(after(penalised, full_for(11.0))) == pytest.approx(30.0)
    assert capacity_of(after(of(FULL, factor=0.8), full_for(11.0))) == pytest.approx(60.0)


@pytest.mark.parametrize("unknown", [of(None), of(FULL, ready_replicas=0), of(replace(FULL, recent_rps=None))])
def test_what_is_not_measured_changes_nothing(unknown: Problem) -> None:
    known = full_for(5.0, capacity_ppm=500_000)
    assert after(unknown, known).memory("e1").capacity_ppm == 500_000


def test_an_excluded_engine_keeps_what_is_known_of_it() -> None:
    known = EngineMemory("e1", capacity_ppm=500_000)
    assert after(of(None, exclusion=Exclusion(Reason.DRAINED, "")), known).memory("e1") == known
