"""Protections by hand: what each changes, what it remembers, and when it keeps its hands off."""

import math
from dataclasses import replace

import pytest

from headrace.schemas.weights import PPM, EngineMemory, Reason, Snapshot
from headrace.solver.core.problem import Engine, Exclusion, Measured, Problem
from headrace.solver.core.protections import protect, worth_remembering
from headrace.solver.core.protections.guarded import Guarded
from headrace.solver.core.protections.outlier import outliers_of
from headrace.solver.core.protections.residual import residual
from headrace.solver.core.tick import TickStamp, hold_tick, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

FLAT = profile(ttft_s=(0.1, 0.1, 0.1))
"""Whatever the load, 0.1 s: so a residual is the measured latency x 10."""
SETTINGS = SolverSettings()
STALE = Exclusion(Reason.STALE, "silent for 20 s")


def measured(latency_s: float, rate_rps: float = 5.0, **fields: float) -> Measured:
    return replace(Measured(rate_rps, latency_s, latency_s, 50, rate_rps * latency_s), **fields)


def busy(engine_id: str, latency_s: float = 0.1, **changes: object) -> Engine:
    return engine(engine_id, measured=measured(latency_s), **changes)


def of(*engines: Engine, demand: float = 1.0) -> Problem:
    return problem([row("A", demand)], list(engines), profiles=(FLAT,))


def remembering(*memories: EngineMemory, at_ms: int = 0) -> Snapshot:
    tick = solve_tick(of(engine("e1")), None, SETTINGS, Glop(threads=1), TickStamp(1, 1, at_ms))
    commit = replace(tick.snapshot.commit, remembered=memories)
    return replace(tick.snapshot, commit=commit)


def guarded(p: Problem, *memories: EngineMemory, now_ms: int = 2_000, settings: SolverSettings = SETTINGS) -> Guarded:
    return protect(p, remembering(*memories), settings, now_ms)


def factors(result: Guarded, name: str) -> dict[str, float]:
    return {p.engine_id: p.factor for p in result.protections if p.protection == name}


def test_a_calm_fleet_goes_through_untouched_and_leaves_nothing_to_remember() -> None:
    calm = of(busy("e1"), busy("e2"), busy("e3"), engine("idle"))
    result = guarded(calm)
    assert result.problem == calm
    assert (worth_remembering(result), result.protections) == ((), ())


def test_memory_of_an_engine_that_left_the_fleet_is_dropped() -> None:
    assert worth_remembering(guarded(of(busy("e1")), EngineMemory("gone", away=True))) == ()


# --- residual -------------------------------------------------------------------------------------------------------


def test_a_residual_is_measured_over_predicted_at_the_measured_load() -> None:
    # 7.5 of 10 RPS: TTFT 0.2 s by the profile; 0.3 s were measured.
    p = problem([], [engine("e", measured=measured(0.3, 7.5))])
    assert residual(p, p.engines[0]) == pytest.approx(1.5)


@pytest.mark.parametrize(
    "changes",
    [
        {"measured": None},
        {"measured": measured(0.3, samples=19)},
        {"measured": measured(0.3, rate_rps=9.7)},
        {"measured": measured(0.3, smoothed_s=0.34)},
        {"measured": measured(0.3, smoothed_s=0.26)},
        {"measured": measured(0.3, waiting=0.1)},
        {"measured": measured(0.3, inside=2.0)},
        {"measured": measured(0.3, smoothed_s=0.0)},
        {"exclusion": STALE},
        {"ready_replicas": 0},
        {"profile_id": "unknown"},
    ],
    ids=["idle", "few", "wall", "slow", "quick", "queue", "filling", "zero", "excluded", "none", "no profile"],
)
def test_where_load_and_latency_are_not_of_one_steady_state_there_is_no_residual(changes: dict[str, object]) -> None:
    p = problem([], [engine("e", **{"measured": measured(0.3), **changes})])
    assert residual(p, p.engines[0]) is None


def test_how_many_are_inside_may_be_unknown() -> None:
    p = problem([], [engine("e", measured=Measured(5.0, 0.1, 0.1, 50))])
    assert residual(p, p.engines[0]) == pytest.approx(1.0)


# --- trim -----------------------------------------------------------------------------------------------------------


def test_the_trim_takes_a_tenth_of_the_error_a_period() -> None:
    # Twice as slow; one trim period of 2 s: 2^0.1 = 1.0718.
    (memory,) = worth_remembering(guarded(of(busy("e1", 0.2))))
    assert memory == EngineMemory("e1", trim_ppm=round(PPM * 2**0.1))


def test_half_a_period_twice_is_a_period_so_ticks_may_come_as_often_as_they_like() -> None:
    once = guarded(of(busy("e1", 0.2)), now_ms=2_000)
    half = guarded(of(busy("e1", 0.2)), now_ms=1_000)
    twice = guarded(of(busy("e1", 0.2)), *worth_remembering(half), now_ms=1_000)
    assert twice.memory("e1").trim_ppm == pytest.approx(once.memory("e1").trim_ppm, abs=2)


def test_the_first_tick_learns_nothing_since_no_time_has_passed() -> None:
    assert worth_remembering(protect(of(busy("e1", 0.2)), None, SETTINGS, 2_000)) == ()


def test_a_long_pause_is_no_more_evidence_than_ten_seconds() -> None:
    day, ten = (guarded(of(busy("e1", 0.2)), now_ms=ms).memory("e1") for ms in (86_400_000, 10_000))
    assert day == ten


def test_a_trimmed_profile_is_scaled_for_that_engine_alone_and_the_snapshot_says_so() -> None:
    # exp(6 steps of 0.05) = 1.35: measured 35 % slower.
    slow = EngineMemory("e1", trim_ppm=round(PPM * math.exp(0.3)), trim_step=6)
    result = guarded(of(busy("e1", 0.1 * math.exp(0.3)), busy("e2")), slow)
    e1, e2 = result.problem.engines
    assert (e1.profile_id, e2.profile_id) == ("p@+6", "p")
    assert result.problem.profiles["p@+6"].ttft_s == pytest.approx([0.1 * math.exp(0.3)] * 3)
    (told,) = [p for p in result.protections if p.protection == "trim"]
    assert told.factor == pytest.approx(1.34986, abs=1e-5)
    assert told.sentence == "measured 35 % slower than its profile at its load: latencies are scaled"


def test_a_step_stays_until_the_trim_is_one_and_a_half_steps_away() -> None:
    near, far = (EngineMemory("e1", round(PPM * math.exp(0.05 * steps)), 2) for steps in (3.4, 3.6))
    assert guarded(of(engine("e1")), near).memory("e1").trim_step == 2
    assert guarded(of(engine("e1")), far).memory("e1").trim_step == 4


def test_the_trim_stays_within_its_bound_and_a_bound_of_one_is_no_trim() -> None:
    wild = of(busy("e1", 5.0))
    bounded = guarded(wild, EngineMemory("e1", trim_ppm=2 * PPM, trim_step=14))
    assert bounded.memory("e1").trim_ppm == 2 * PPM
    assert worth_remembering(guarded(wild, settings=SolverSettings(trim_bound=1.0))) == ()


def test_an_engine_of_which_nothing_is_measured_keeps_its_trim() -> None:
    slow = EngineMemory("e1", trim_ppm=1_300_000, trim_step=5)
    assert guarded(of(engine("e1")), slow).memory("e1") == slow


# --- outliers -------------------------------------------------------------------------------------------------------


def pool_of(count: int, *slow: str, latency_s: float = 0.3) -> Problem:
    names = [f"e{i}" for i in range(count)]
    return of(*(busy(name, latency_s if name in slow else 0.1) for name in names))


def test_an_outlier_is_half_again_slower_than_the_median_of_its_peers() -> None:
    assert outliers_of({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.6}, SETTINGS) == {"d": pytest.approx(1.6)}
    assert outliers_of({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.4}, SETTINGS) == {}


def test_where_peers_differ_a_lot_an_outlier_must_differ_more() -> None:
    # Logs 0, +-0.2, 0.4: the median is 0.1, the deviations' median 0.2; 5 x 1.4826 x 0.2 = 1.48 above is the limit.
    spread = {"a": math.exp(-0.2), "b": 1.0, "c": math.exp(0.2), "d": math.exp(0.4)}
    assert outliers_of(spread, SETTINGS) == {}


def test_two_engines_cannot_say_which_of_them_is_odd() -> None:
    assert outliers_of({"a": 1.0, "b": 9.0}, SETTINGS) == {}


def test_an_outliers_capacity_halves_every_five_seconds_and_the_snapshot_says_why() -> None:
    result = guarded(pool_of(5, "e2"), now_ms=5_000)
    assert [e.capacity_rps for e in result.problem.engines] == [10.0, 10.0, 5.0, 10.0, 10.0]
    assert result.problem.engines[2].factor_sentence == "3.0 times as slow as its peers: 50 % of capacity"
    assert factors(result, "outlier") == {"e2": 0.5}
    assert result.memory("e2").penalty_ppm == 500_000


def test_it_never_gets_less_than_a_tenth() -> None:
    least = guarded(pool_of(5, "e2"), EngineMemory("e2", penalty_ppm=150_000), now_ms=9_000)
    assert least.memory("e2").penalty_ppm == 100_000


def test_afterwards_it_recovers_six_times_slower_and_is_forgotten_when_it_is_whole() -> None:
    half = EngineMemory("e2", penalty_ppm=500_000)
    slowly = guarded(pool_of(5), half, now_ms=10_000)
    assert slowly.memory("e2").penalty_ppm == pytest.approx(PPM * 0.5 * 2 ** (1 / 3), abs=1)
    assert slowly.problem.engines[2].factor_sentence == "recovering as an outlier: 63 % of capacity"
    assert worth_remembering(guarded(pool_of(5), replace(half, penalty_ppm=999_000), now_ms=10_000)) == ()


def test_at_most_thirty_percent_of_a_pool_is_penalised_the_worst_first() -> None:
    # Of ten equals three may be; two were before, two are new: the worse ones stay, then the first name.
    before = (EngineMemory("e1", penalty_ppm=200_000), EngineMemory("e2", penalty_ppm=400_000))
    result = guarded(pool_of(10, "e1", "e2", "e3", "e4"), *before, now_ms=5_000)
    assert factors(result, "outlier") == {"e1": 0.1, "e2": 0.2, "e3": 0.5, "e4": 1.0}
    assert result.memory("e4").penalty_ppm == PPM


def test_in_a_pool_of_three_equals_one_is_penalised_though_it_is_more_than_thirty_percent() -> None:
    assert factors(guarded(pool_of(3, "e1"), now_ms=5_000), "outlier") == {"e1": 0.5}
    off = SolverSettings(outlier_max_share=0.0)
    assert factors(guarded(pool_of(3, "e1"), now_ms=5_000, settings=off), "outlier") == {}


def test_with_less_than_half_of_a_pool_there_penalties_are_ignored_and_kept() -> None:
    out = [engine(f"x{i}", exclusion=STALE) for i in range(6)]
    p = pool_of(5, "e2")
    panic = guarded(replace(p, engines=(*p.engines, *out)), EngineMemory("e2", penalty_ppm=250_000), now_ms=5_000)
    assert factors(panic, "outlier") == {"e2": 1.0}, "told, and left as it is"
    assert panic.memory("e2").penalty_ppm == 250_000


def test_drained_engines_are_not_missing() -> None:
    drained = [engine(f"x{i}", exclusion=Exclusion(Reason.DRAINED, "")) for i in range(6)]
    p = pool_of(5, "e2")
    result = guarded(replace(p, engines=(*p.engines, *drained)), now_ms=5_000)
    assert factors(result, "outlier") == {"e2": 0.5}


def test_peers_are_those_of_the_same_pool() -> None:
    elsewhere = [busy(f"f{i}", 0.3, site="s2") for i in range(5)]
    p = pool_of(5)
    assert factors(guarded(replace(p, engines=(*p.engines, *elsewhere)), now_ms=5_000), "outlier") == {}


# --- cold ramp ------------------------------------------------------------------------------------------------------


def test_an_engine_that_comes_back_begins_with_a_share_and_grows_to_all_of_it() -> None:
    gone = guarded(of(engine("e1", exclusion=STALE), engine("e2")))
    assert worth_remembering(gone) == (EngineMemory("e1", away=True),)
    back = guarded(of(engine("e1"), engine("e2")), *worth_remembering(gone), now_ms=2_000)
    assert back.problem.engines[0].capacity_rps == pytest.approx(3.0)
    assert worth_remembering(back) == (EngineMemory("e1", returned_ms=2_000),)
    # Half of the 5 s later: 0.3 + 0.7 / 2.
    later = guarded(of(engine("e1"), engine("e2")), *worth_remembering(back), now_ms=4_500)
    assert later.problem.engines[0].capacity_rps == pytest.approx(6.5)
    (told,) = later.protections
    assert told.sentence == "back for 2.5 s: 65 % of capacity while it warms up"
    whole = guarded(of(engine("e1"), engine("e2")), *worth_remembering(later), now_ms=7_000)
    assert whole.problem.engines[0].capacity_rps == 10.0
    assert worth_remembering(whole) == ()


def test_an_engine_that_was_there_at_the_first_snapshot_is_warm() -> None:
    assert protect(of(engine("e1")), None, SETTINGS, 0).problem.engines[0].capacity_rps == 10.0


@pytest.mark.parametrize("reason", [Reason.DRAINED, Reason.NO_PROFILE, Reason.INVALID_STATE])
def test_what_its_operator_did_or_a_thin_window_makes_nobody_cold(reason: Reason) -> None:
    assert worth_remembering(guarded(of(engine("e1", exclusion=Exclusion(reason, ""))))) == ()


def test_an_engine_whose_window_is_still_thin_is_not_back_yet() -> None:
    thin = of(engine("e1", exclusion=Exclusion(Reason.INVALID_STATE, "")))
    assert worth_remembering(guarded(thin, EngineMemory("e1", away=True))) == (EngineMemory("e1", away=True),)


def test_a_fleet_that_is_short_takes_cold_engines_whole() -> None:
    # 13 RPS would be left of 20; 90 % of that are 11.7.
    away = EngineMemory("e1", away=True)
    short = guarded(of(engine("e1"), engine("e2"), demand=11.8), away)
    assert [e.capacity_rps for e in short.problem.engines] == [10.0, 10.0]
    assert short.memory("e1").returned_ms == 2_000
    enough = guarded(of(engine("e1"), engine("e2"), demand=11.6), away)
    assert [e.capacity_rps for e in enough.problem.engines] == [pytest.approx(3.0), 10.0]


def test_a_ramp_of_nothing_is_no_ramp() -> None:
    result = guarded(of(engine("e1")), EngineMemory("e1", away=True), settings=SolverSettings(cold_ramp_ms=0))
    assert (result.problem.engines[0].capacity_rps, worth_remembering(result)) == (10.0, ())


# --- in a tick ------------------------------------------------------------------------------------------------------


def test_a_tick_plans_with_what_is_left_and_its_commit_tells_and_remembers() -> None:
    p = replace(pool_of(5, "e2"), rows=(row("A", 30.0),))
    first = solve_tick(p, None, SETTINGS, Glop(threads=1), TickStamp(1, 1, 0))
    second = solve_tick(p, first.snapshot, SETTINGS, Glop(threads=1), TickStamp(1, 2, 5_000))
    told = [(q.engine_id, q.protection) for q in second.snapshot.commit.protections]
    assert told == [("e2", "outlier"), ("e2", "trim")]
    assert [m.engine_id for m in second.snapshot.commit.remembered] == ["e2"]
    weights = {t.engine_id: t.weight_ppm for t in second.snapshot.routes[0].targets}
    assert weights["e2"] < weights["e1"]


def test_a_held_snapshot_carries_memory_on() -> None:
    before = remembering(EngineMemory("e1", away=True))
    held = hold_tick(of(engine("e1")), before, SETTINGS, TickStamp(1, 2, 1_000), "nobody speaks")
    assert held.snapshot.commit.remembered == (EngineMemory("e1", away=True),)


# --- backlog --------------------------------------------------------------------------------------------------------


def queued(waiting: float, running: float = 20.0, **changes: object) -> Engine:
    inside = Measured(5.0, 0.1, 0.1, 50, running + waiting, waiting)
    return engine("e1", measured=inside, capacity=100.0, **changes)


def test_a_standing_queue_withholds_what_drains_it_in_ten_seconds() -> None:
    # 105 wait, of which 5 (a quarter of 20 in service) are normal: 100 / 10 s = 10 of 100 RPS.
    result = guarded(of(queued(105.0)))
    assert result.problem.engines[0].capacity_rps == pytest.approx(90.0)
    (told,) = result.protections
    assert (told.protection, told.sentence) == ("backlog", "100 stand in line: 90 % of capacity while it drains")


def test_a_short_queue_is_normal_and_nothing_is_remembered_of_any() -> None:
    assert guarded(of(queued(5.0))).protections == ()
    assert worth_remembering(guarded(of(queued(105.0)))) == ()


def test_no_more_than_a_quarter_is_withheld() -> None:
    assert guarded(of(queued(9_000.0))).problem.engines[0].capacity_rps == pytest.approx(75.0)


def test_signals_that_are_late_drain_a_queue_in_twice_their_lag() -> None:
    late = replace(of(queued(105.0)), lag_ms=20_000)
    assert guarded(late).problem.engines[0].capacity_rps == pytest.approx(97.5)


@pytest.mark.parametrize("unknown", [engine("e1"), queued(105.0, exclusion=STALE), queued(105.0, ready_replicas=0)])
def test_a_queue_that_is_not_known_withholds_nothing(unknown: Engine) -> None:
    assert factors(guarded(of(unknown)), "backlog") == {}


def test_a_drain_time_of_nothing_leaves_queues_alone() -> None:
    assert guarded(of(queued(105.0)), settings=SolverSettings(backlog_drain_ms=0)).protections == ()
