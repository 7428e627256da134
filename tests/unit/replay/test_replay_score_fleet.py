"""Engines as scoring sees them: the profile's curve below the wall, a bounded queue beyond it, chance around both.

The curve is a line from 0.1 s idle to 0.3 s at the wall, without tokens; capacity 10 RPS, so 3 are in service there.
"""

from dataclasses import replace

import numpy as np
import pytest

from headrace.replay.score.fleet_model import Behaviour, FleetModel, engines_of
from headrace.replay.score.placement import Numbers, Placer, engine_numbers
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.slowness import HOLDS_MS, PERSISTS_MS, Slowness
from headrace.replay.score.world import World
from headrace.schemas.weights import FallbackTarget, Reason, RouteWeights
from headrace.solver.core.problem import Engine, Exclusion, Measured, Throughput
from played_ticks import route, snapshot
from solver_problems import engine, problem, profile, row

LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))


def stepped(model: FleetModel, offered: float, seconds: float, **changes: object) -> Behaviour:
    p = problem([row("A", 1.0)], [engine("e", **changes)], profiles=(LINE,))
    engines = engines_of(p, np.array([0, 1]), Slowness(1.3), {}, frozenset())
    return model.step(engines, np.array([offered]), seconds)


def test_below_the_wall_latency_is_the_profile_s_at_the_load() -> None:
    seen = stepped(FleetModel(2.0), 5.0, 1.0)
    assert seen.load[0] == pytest.approx(0.5, rel=1e-4)
    assert seen.ttft_s[0] == pytest.approx(0.2, rel=1e-4)
    assert seen.wait_s[0] == 0.0


def test_beyond_the_wall_the_queue_grows_by_what_is_too_much_and_drains_again() -> None:
    model = FleetModel(queue_per_slot=100.0)
    full = stepped(model, 12.0, 10.0)
    # 120 come, 100 are served, 20 wait at the end: 10 in the mean, a second of work.
    assert full.served[0] == pytest.approx(10.0)
    assert full.wait_s[0] == pytest.approx(1.0)
    assert full.ttft_s[0] == pytest.approx(1.3)
    after = stepped(model, 5.0, 10.0)
    # 3 + 20 + 50 are less than the 100 that it can serve; so many stay in service as are at that load.
    u = float(after.load[0])
    assert 10.0 * u * (0.1 + 0.2 * u) + 100.0 * u == pytest.approx(73.0, rel=1e-4)
    assert after.served[0] == pytest.approx(10.0 * u)
    assert stepped(model, 5.0, 10.0).wait_s[0] == 0.0


def test_a_run_begins_with_what_was_inside_at_its_first_tick_and_goes_on_from_its_own() -> None:
    inside = Throughput(0, 3.0, 20.0, 10.0, 10.0, 10.0)
    model = FleetModel(queue_per_slot=100.0)
    # 20 wait and 50 come, nobody waits at the end: 10 in the mean.
    seen = stepped(model, 5.0, 10.0, throughput=inside)
    assert seen.wait_s[0] == pytest.approx(1.0)
    assert stepped(model, 5.0, 10.0, throughput=inside).wait_s[0] == 0.0


def test_a_surge_fills_the_slots_that_are_free_before_anybody_waits() -> None:
    model = FleetModel(queue_per_slot=100.0)
    stepped(model, 5.0, 1.0)
    # One in service at half the load, three at the wall: of 12 RPS for half a second, two find a slot.
    surge = stepped(model, 12.0, 0.5)
    assert 0.5 < surge.load[0] < 1.0
    assert surge.wait_s[0] == 0.0
    assert stepped(model, 12.0, 10.0).wait_s[0] > 0.0


def test_answers_twice_as_long_as_the_profile_s_bring_the_wall_down_to_half() -> None:
    decoding = replace(profile("p", (0.0, 1.0), (0.0, 0.0), (0.01, 0.03)), output_tokens=10.0)
    p = problem([row("A", 1.0)], [engine("e")], profiles=(decoding,))
    engines = engines_of(p, np.array([0, 1]), Slowness(1.3), {"m": 20.0}, frozenset())
    assert engines.capacity[0] == pytest.approx(5.0)
    seen = FleetModel(2.0).step(engines, np.array([2.5]), 1.0)
    assert seen.load[0] == pytest.approx(0.5, rel=1e-4)
    assert seen.tbot_s[0] == pytest.approx(0.02, rel=1e-4)


def test_chance_makes_some_wait_below_the_wall_and_what_is_known_of_arrivals_is_no_chance() -> None:
    p = problem([row("A", 1.0)], [engine("e")], profiles=(LINE,))
    engines = engines_of(p, np.array([0, 1]), Slowness(1.3), {}, frozenset())
    waits = [
        float(FleetModel(100.0, chance=chance).step(engines, np.array([9.0]), 1.0, np.array([drawn])).wait_s[0])
        for chance, drawn in ((0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
    ]
    assert waits[0] == 0.0
    assert 0.0 < waits[1] < waits[2]


def test_the_queue_holds_so_many_for_each_one_in_service_and_refuses_the_rest() -> None:
    # In service at the wall: 10 RPS x 0.3 s = 3, so 6 may wait. 20 are too much, 14 are refused of 120.
    seen = stepped(FleetModel(queue_per_slot=2.0), 12.0, 10.0)
    assert seen.refused_share[0] == pytest.approx(14 / 120)


def test_an_engine_that_is_gone_refuses_all_and_forgets_its_queue() -> None:
    model = FleetModel(100.0)
    stepped(model, 12.0, 10.0)
    gone = stepped(model, 5.0, 1.0, exclusion=Exclusion(Reason.STALE, "silent"))
    assert gone.refused_share[0] == 1.0
    assert gone.served[0] == 0.0
    assert stepped(model, 5.0, 1.0).wait_s[0] == 0.0


def test_a_drained_engine_still_serves_what_it_is_sent() -> None:
    assert stepped(FleetModel(2.0), 5.0, 1.0, exclusion=Exclusion(Reason.DRAINED, "")).served[0] == pytest.approx(
        5.0, rel=1e-4
    )


def test_in_a_slower_world_latencies_are_longer_and_capacity_is_smaller() -> None:
    seen = stepped(FleetModel(2.0, slower=1.25), 4.0, 1.0)
    # 8 RPS are left, so 4 are half of it: 1.25 x 0.2 s.
    assert seen.load[0] == pytest.approx(0.5, rel=1e-4)
    assert seen.ttft_s[0] == pytest.approx(0.25, rel=1e-4)


def test_loads_beyond_what_was_measured_are_flagged_with_what_lies_there() -> None:
    measured_to_half = replace(LINE, measured_to_load=0.5)
    p = problem([row("A", 1.0)], [engine("e")], profiles=(measured_to_half,))
    engines = engines_of(p, np.array([0, 1]), Slowness(1.3), {}, frozenset())
    seen = FleetModel(2.0).step(engines, np.array([8.0]), 1.0)
    # 0.26 s at load 0.8, of which 0.2 were measured at 0.5.
    assert seen.unmeasured[0]
    assert seen.beyond_s[0] == pytest.approx(0.06, rel=1e-3)


# --- slowness -------------------------------------------------------------------------------------------------------


def told(measured: Measured | None, seconds: int = 10, **changes: object) -> float:
    slowness = Slowness(slow_above=1.3)
    one: Engine = engine("e", measured=measured, **changes)
    for s in range(seconds):
        slowness.see(problem([row("A", 1.0)], [one], profiles=(LINE,)), 1000 * s)
    return slowness.of("e")


def test_an_engine_three_times_slower_than_its_profile_at_its_load_is_scored_as_slow() -> None:
    assert told(Measured(5.0, 0.6, 0.6, 100, inside=3.0)) == pytest.approx(3.0)


def test_a_profile_that_is_a_tenth_off_is_left_to_calibration() -> None:
    assert told(Measured(5.0, 0.22, 0.22, 100, inside=1.1)) == 1.0


def test_what_is_seen_for_a_moment_only_does_not_count() -> None:
    assert told(Measured(5.0, 0.6, 0.6, 100, inside=3.0), seconds=PERSISTS_MS // 1000) == 1.0


def test_a_queue_at_an_engine_that_finishes_half_of_its_capacity_says_that_the_wall_came_down() -> None:
    assert told(None, throughput=Throughput(0, 10.0, 20.0, 5.0, 5.0, 10.0)) == pytest.approx(2.0)


def test_a_queue_at_an_engine_whose_answers_are_twice_as_long_says_nothing_of_its_wall() -> None:
    slowness = Slowness(1.3)
    one = engine("e", throughput=Throughput(0, 10.0, 20.0, 5.0, 5.0, 10.0))
    decoding = replace(profile("p", (0.0, 1.0), (0.0, 0.0), (0.01, 0.03)), output_tokens=10.0)
    for s in range(10):
        slowness.see(problem([row("A", 1.0)], [one], profiles=(decoding,)), 1000 * s, {"m": 20.0})
    assert slowness.of("e") == 1.0


def test_a_queue_at_an_engine_that_was_idle_until_now_says_nothing_of_its_wall() -> None:
    # Half of its window was idle: 5 RPS over the window, 10 RPS of late.
    assert told(None, throughput=Throughput(0, 10.0, 20.0, 10.0, 5.0, 10.0)) == 1.0


def test_an_engine_that_was_away_begins_anew() -> None:
    slowness = Slowness(1.3)
    slow = engine("e", measured=Measured(5.0, 0.6, 0.6, 100, inside=3.0))
    for s in range(10):
        slowness.see(problem([row("A", 1.0)], [slow], profiles=(LINE,)), 1000 * s)
    gone = replace(slow, measured=None, exclusion=Exclusion(Reason.STALE, ""))
    slowness.see(problem([row("A", 1.0)], [gone], profiles=(LINE,)), 10_000)
    assert slowness.of("e") == 1.0


def test_a_slowness_that_nothing_has_confirmed_for_a_while_is_forgotten() -> None:
    slowness = Slowness(1.3)
    slow = engine("e", measured=Measured(5.0, 0.6, 0.6, 100, inside=3.0))
    quiet = engine("e")
    for s in range(10):
        slowness.see(problem([row("A", 1.0)], [slow], profiles=(LINE,)), 1000 * s)
    slowness.see(problem([row("A", 1.0)], [quiet], profiles=(LINE,)), 9_000 + HOLDS_MS)
    assert slowness.of("e") == pytest.approx(3.0)
    slowness.see(problem([row("A", 1.0)], [quiet], profiles=(LINE,)), 9_001 + HOLDS_MS)
    assert slowness.of("e") == 1.0


# --- going round an engine that is gone -----------------------------------------------------------------------------


def sent(record: RouteWeights, gone: str, demand: float = 10.0) -> tuple[dict[str, float], float]:
    """RPS that each engine is sent while one is gone, and RPS that are shed."""
    p = problem([row("A", demand)], [engine(e) for e in ("a", "b", "c")], profiles=(LINE,))
    numbers = Numbers()
    placement = Placer(numbers).place(p, snapshot((record,), 0))
    engines = engines_of(p, engine_numbers(p, numbers), Slowness(1.3), {}, frozenset({gone}))
    happened = World(ScoreSettings()).play(placement, engines, np.array([demand]), np.zeros(1), 1.0)
    offered = happened.behaviour.offered.tolist()
    return dict(zip(numbers.ids, offered, strict=True)), float(happened.shed[0])


def test_without_a_failover_the_sessions_of_an_engine_that_is_gone_go_by_the_others_weights() -> None:
    offered, shed = sent(route("A", {"a": 0.5, "b": 0.3, "c": 0.2}), gone="a")
    assert offered == pytest.approx({"a": 0.0, "b": 6.0, "c": 4.0})
    assert shed == 0.0


def test_with_one_they_go_where_it_says_an_engine_without_a_weight_too() -> None:
    record = replace(route("A", {"a": 0.5, "b": 0.5}), failover=(FallbackTarget("c", None, 1_000_000),))
    offered, shed = sent(record, gone="a")
    assert offered == pytest.approx({"a": 0.0, "b": 5.0, "c": 5.0})
    assert shed == 0.0
    assert sent(record, gone="c")[0] == pytest.approx({"a": 5.0, "b": 5.0, "c": 0.0})


def test_those_whom_nobody_has_room_for_are_shed() -> None:
    record = route("A", {"a": 0.5, "b": 0.5})
    kept = tuple(replace(target, failover_kept=0.6) for target in record.targets)
    record = replace(record, targets=kept, failover=(FallbackTarget("b", None, 1_000_000),))
    offered, shed = sent(record, gone="a")
    # 40 % of a's half: 2 of 10 are shed, and of the 8 that are left all meet b.
    assert shed == pytest.approx(2.0)
    assert offered["b"] == pytest.approx(8.0)


# --- requests of unlike work ----------------------------------------------------------------------------------------


def test_engines_are_loaded_with_work_and_long_requests_decode_as_much_longer() -> None:
    p = problem([row("A", 2.0, work=3.0)], [engine("e")], profiles=(profile(tbot_s=(0.01, 0.01, 0.01)),))
    numbers = Numbers()
    placement = Placer(numbers).place(p, snapshot((route("A", {"e": 1.0}),), 0))
    engines = engines_of(p, engine_numbers(p, numbers), Slowness(1.3), {}, frozenset())
    happened = World(ScoreSettings(chance=0.0)).play(placement, engines, np.array([2.0]), np.zeros(1), 1.0)
    assert happened.behaviour.load[0] == pytest.approx(0.6, rel=1e-4)
    # 10 tokens of 10 ms each for work 1.
    assert happened.decode_s[0] == pytest.approx(0.3)
    assert happened.served[0] == pytest.approx(2.0)


def test_measured_tokens_are_of_the_mix_that_is_asked_for_and_count_for_work_1() -> None:
    rows = [row("A", 3.0), row("A", 1.0, request_class="batch", work=5.0)]
    p = problem(rows, [engine("e")], profiles=(LINE,))
    engines = engines_of(p, np.array([0, 1]), Slowness(1.3), {"m": 400.0}, frozenset())
    # Four requests in the mean are of work 2.
    assert engines.tokens[0] == pytest.approx(200.0)
