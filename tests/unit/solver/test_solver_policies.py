"""Policies beside the program, with numbers by hand: what each does with the same few engines."""

from dataclasses import replace

import pytest

from headrace.schemas.weights import EngineMemory, Snapshot
from headrace.solver.core.answer.apportion import weigh
from headrace.solver.core.policies import policy_named
from headrace.solver.core.problem import Engine, Measured, Problem
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row

LP = Glop(threads=1)
SECOND = SolverSettings(period_ms=1_000)


def tick(p: Problem, settings: SolverSettings, previous: Snapshot | None = None, version: int = 1) -> Tick:
    return solve_tick(p, previous, settings, LP, TickStamp(1, version, 1_000 * version))


def weights(found: Tick, cluster: str = "A") -> dict[str, float]:
    (route,) = (r for r in found.snapshot.routes if r.cluster == cluster)
    return {t.engine_id: t.weight_ppm / 1e6 for t in route.targets if t.weight_ppm}


def slow(engine_id: str, latency_s: float, site: str = "s1", **changes: object) -> Engine:
    return engine(engine_id, site, measured=Measured(5.0, latency_s, latency_s, 50), **changes)


def plan_of(name: str, p: Problem) -> Plan:
    plan = policy_named(name)(lay_out(p, None), SECOND, LP)
    assert isinstance(plan, Plan)
    return plan


def test_round_robin_gives_every_engine_the_same_whatever_it_is() -> None:
    fleet = [
        engine("e1", capacity=1.0),
        engine("e2", capacity=30.0),
        engine("e3", "s2", 10.0),
        engine("e4", "s2", 10.0),
    ]
    found = tick(problem([row("A", 8.0)], fleet), replace(SECOND, policy="round_robin"))
    assert weights(found) == {"e1": 0.25, "e2": 0.25, "e3": 0.25, "e4": 0.25}


def test_round_robin_splits_a_pool_evenly_over_engines_of_unlike_profiles_too() -> None:
    plan = plan_of("round_robin", problem([row("A", 6.0)], [engine("e1", capacity=1.0), engine("e2", capacity=5.0)]))
    assert plan.load.tolist() == [6.0]
    layout = lay_out(problem([row("A", 6.0)], [engine("e1", capacity=1.0), engine("e2", capacity=5.0)]), None)
    assert weigh(layout, plan).ppm.tolist() == [500_000, 500_000]


def near_and_far(*rows: tuple[str, float], tiers: dict[str, int] | None = None) -> Problem:
    links = {("A", "s1"): 1.0, ("A", "s2"): 50.0, ("B", "s1"): 50.0, ("B", "s2"): 1.0}
    made = [row(c, rps, tier=(tiers or {}).get(c, 0)) for c, rps in rows]
    return problem(made, [engine("e1", "s1"), engine("e2", "s2")], links)  # type: ignore[arg-type]  # all are known


def test_waterfall_fills_the_nearest_to_95_percent_and_spills_the_rest() -> None:
    plan = plan_of("waterfall", near_and_far(("A", 12.0)))
    assert plan.flow.tolist() == pytest.approx([9.5, 2.5])
    assert plan.shed.tolist() == [0.0]


def test_waterfall_fills_up_to_capacity_before_it_sheds() -> None:
    plan = plan_of("waterfall", near_and_far(("A", 23.0)))
    assert plan.flow.tolist() == pytest.approx([10.0, 10.0])
    assert plan.shed.tolist() == pytest.approx([3.0])


def test_waterfall_lets_neighbours_in_first_and_higher_tiers_before_all() -> None:
    # B's 9 RPS take e2 before what A spills there: 0.5 RPS are left of it up to 95 %, then 0.5 + 0.5 up to the brim.
    even = plan_of("waterfall", near_and_far(("A", 10.5), ("B", 9.0)))
    assert even.flow.tolist() == pytest.approx([10.0, 0.5, 0.0, 9.0])
    tiered = plan_of("waterfall", near_and_far(("A", 19.5), ("B", 9.0), tiers={"B": 1}))
    assert tiered.shed.tolist() == pytest.approx([0.0, 8.5])


def test_a_row_without_demand_is_sent_to_its_nearest() -> None:
    assert plan_of("waterfall", near_and_far(("A", 0.0))).share.tolist() == [1.0, 0.0]


def test_the_p_controller_begins_by_capacity_and_pushes_by_the_error() -> None:
    settings = replace(SECOND, policy="proportional", proportional_gain=0.3, trim_bound=1.0)
    fleet = [slow("e1", 1.0), slow("e2", 3.0, "s2")]
    first = tick(problem([row("A", 8.0)], fleet), settings)
    # Scores 1000 and 3000 ms, average 2000: errors +-0.5, steps +-0.15 of a half each.
    assert weights(first) == {"e1": 0.575, "e2": 0.425}
    # Average 0.575 x 1000 + 0.425 x 3000 = 1850: 0.575 (1 + 0.3 x 850 / 1850), 0.425 (1 - 0.3 x 1150 / 1850).
    second = tick(problem([row("A", 8.0)], fleet), settings, first.snapshot, 2)
    a, b = 0.575 * (1 + 0.3 * 850 / 1850), 0.425 * (1 - 0.3 * 1150 / 1850)
    assert weights(second) == pytest.approx({"e1": a / (a + b), "e2": b / (a + b)}, abs=1e-6)


def test_the_p_controllers_score_counts_the_way_there() -> None:
    settings = replace(SECOND, policy="proportional", proportional_gain=0.3, trim_bound=1.0)
    links: dict[tuple[str, str], float | None] = {("A", "s1"): 0.0, ("A", "s2"): 100.0}
    found = tick(problem([row("A", 8.0)], [slow("e1", 0.1), slow("e2", 0.1, "s2")], links), settings)
    # Scores 100 and 200 ms, average 150: errors +-1/3, steps +-0.1.
    assert weights(found) == {"e1": 0.55, "e2": 0.45}


def test_without_measurements_the_p_controller_leaves_weights_alone() -> None:
    settings = replace(SECOND, policy="proportional")
    fleet = [engine("e1", capacity=30.0), engine("e2", "s2", 10.0)]
    first = tick(problem([row("A", 8.0)], fleet), settings)
    assert weights(first) == {"e1": 0.75, "e2": 0.25}
    assert weights(tick(problem([row("A", 8.0)], fleet), settings, first.snapshot, 2)) == weights(first)


def test_no_weight_falls_below_a_hundredth_of_its_share_so_that_recovery_can_be_seen() -> None:
    settings = replace(SECOND, policy="proportional", proportional_gain=100.0, trim_bound=1.0)
    p, found = problem([row("A", 8.0)], [slow("e1", 0.1), slow("e2", 9.0, "s2")]), None
    for version in range(1, 30):
        found = tick(p, settings, None if found is None else found.snapshot, version)
    assert found is not None
    assert weights(found)["e2"] == pytest.approx(0.005, rel=0.02)


def test_an_engine_that_comes_back_is_given_its_share_at_once_by_p_and_a_tenth_by_pid() -> None:
    for policy, share in (("proportional", 0.5), ("pid", 0.05)):
        settings = replace(SECOND, policy=policy, cold_ramp_ms=0)
        alone = tick(problem([row("A", 4.0)], [engine("e1")]), settings)
        both = tick(problem([row("A", 4.0)], [engine("e1"), engine("e2", "s2")]), settings, alone.snapshot, 2)
        assert weights(both)["e2"] == pytest.approx(share)


PID = replace(SECOND, policy="pid", pid_gain=0.2, pid_integral=0.05, trim_bound=1.0)


def test_pid_pushes_by_the_error_and_by_its_change_and_remembers_the_error() -> None:
    p = problem([row("A", 8.0)], [slow("e1", 1.0), slow("e2", 3.0, "s2")])
    first = tick(p, PID)
    # No error is known from before: 0.05 x +-0.5 only.
    assert weights(first) == pytest.approx({"e1": 0.5125, "e2": 0.4875})
    assert first.snapshot.commit.remembered == (
        EngineMemory("e1", score_error_ppm=500_000),
        EngineMemory("e2", score_error_ppm=-500_000),
    )
    # e2 is as quick as e1 now: errors 0, changes -+0.5, steps -+0.1, of which 0.05 are let through.
    better = problem([row("A", 8.0)], [slow("e1", 1.0), slow("e2", 1.0, "s2")])
    second = tick(better, PID, first.snapshot, 2)
    a, b = 0.5125 * 0.95, 0.4875 * 1.05
    assert weights(second) == pytest.approx({"e1": a / (a + b), "e2": b / (a + b)}, abs=1e-6)


def test_another_policy_forgets_pids_errors() -> None:
    p = problem([row("A", 8.0)], [slow("e1", 1.0), slow("e2", 3.0, "s2")])
    first = tick(p, PID)
    assert tick(p, replace(PID, policy="lp"), first.snapshot, 2).snapshot.commit.remembered == ()


def test_feedback_policies_know_no_capacity_and_shed_nothing() -> None:
    for policy in ("proportional", "pid", "round_robin"):
        plan = plan_of(policy, problem([row("A", 50.0)], [engine("e1"), engine("e2", "s2")]))
        assert plan.shed.tolist() == [0.0]
        assert plan.load.tolist() == [25.0, 25.0]


def test_a_pool_is_scored_by_its_engines_by_what_they_finish() -> None:
    fleet = [
        engine("e1", measured=Measured(9.0, 1.0, 1.0, 90)),
        engine("e2", measured=Measured(1.0, 2.0, 2.0, 10)),
        slow("e3", 2.1, "s2", capacity=20.0),
    ]
    settings = replace(SECOND, policy="proportional", proportional_gain=0.3, trim_bound=1.0)
    # Pool 1: 0.9 x 1000 + 0.1 x 2000 = 1100 ms; pool 2: 2100; average 1600; errors +-0.3125, steps +-0.09375.
    found = weights(tick(problem([row("A", 8.0)], fleet), settings))
    assert found["e3"] == pytest.approx(0.5 * (1 - 0.09375), abs=1e-6)
