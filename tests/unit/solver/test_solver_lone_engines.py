"""Engines alone at their sites, by hand: whom they are held against, what they may lose, and when nothing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headrace.schemas.state import OutcomePane
from headrace.schemas.weights import PPM, EngineMemory, Reason, Snapshot
from headrace.solver.core.problem import Engine, Exclusion, Measured, Outcomes, Problem, Row
from headrace.solver.core.protections import protect
from headrace.solver.core.protections.guarded import Guarded
from headrace.solver.core.protections.room import Room
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

SETTINGS = SolverSettings()
FLAT = profile(ttft_s=(0.1, 0.1, 0.1))
LP = Glop(threads=1)


def ended(succeeded: int, failed: int, *, first_s: int = 0) -> Outcomes:
    """Ten panes of a second, of which two may still grow."""
    panes = [OutcomePane((first_s + n + 1) * 1000, succeeded, failed, n < 8) for n in range(10)]
    return Outcomes(tuple(panes), 1000)


GOOD, HALF = ended(10, 0), ended(5, 5)


def sites(*outcomes: Outcomes | None, demand: float = 5.0) -> Problem:
    """A fleet of single engines of 10 RPS: e1 at s1, e2 at s2, and so on; a cluster beside each."""
    engines = [engine(f"e{n}", f"s{n}", outcomes=each) for n, each in enumerate(outcomes, 1)]
    return of(engines, [row(f"c{n}", demand) for n in range(1, len(engines) + 1)])


def of(engines: Sequence[Engine], rows: Sequence[Row]) -> Problem:
    away: dict[tuple[str, str], float | None] = {
        (r.route.cluster, e.site): 0.0 if r.route.cluster[1:] == e.site[1:] else 60.0 for r in rows for e in engines
    }
    return problem(list(rows), list(engines), away, profiles=(FLAT,))


def after(p: Problem, *memories: EngineMemory, ms: int = 5_000, settings: SolverSettings = SETTINGS) -> Guarded:
    before = solve_tick(p, None, settings, LP, TickStamp(1, 1, 0)).snapshot
    return protect(p, replace(before, commit=replace(before.commit, remembered=memories)), settings, ms)


def told(done: Guarded) -> dict[str, tuple[float, str]]:
    return {p.engine_id: (p.factor, p.sentence) for p in done.protections if p.protection in ("errors", "outlier")}


def hit(done: Guarded) -> list[str]:
    return [engine_id for engine_id, (factor, _) in told(done).items() if factor < 1.0]


def test_an_engine_alone_at_its_site_is_held_against_those_of_its_models_elsewhere() -> None:
    done = after(sites(HALF, GOOD, GOOD))
    assert told(done) == {
        "e1": (0.5, "50 of 100 requests failed in 10 s, others of its models 0.0 %: 50 % of capacity")
    }


def test_an_engine_of_a_pair_is_held_against_the_other_and_penalised_though_it_is_half_of_all() -> None:
    pair = of([engine("e1", outcomes=HALF), engine("e2", outcomes=GOOD)], [row("c1", 4.0)])
    assert {name: factor for name, (factor, _) in told(after(pair)).items()} == {"e1": 0.5}


def test_where_nobody_serves_the_same_models_the_tolerated_share_alone_is_the_measure() -> None:
    engines = [
        engine("e1", "s1", models=("m", "n"), outcomes=HALF),
        engine("e2", "s2"),
        engine("e3", "s3", models=("n",)),
    ]
    done = after(of(engines, [row("c1", 2.0), row("c1", 2.0, "n")]))
    assert (
        told(done)["e1"][1]
        == "50 of 100 requests failed in 10 s, nobody to compare with, 1 % tolerated: 50 % of capacity"
    )


def test_where_all_sites_fail_alike_nobody_stands_out() -> None:
    assert told(after(sites(HALF, HALF, HALF))) == {}


def test_it_keeps_what_nobody_else_has_room_for() -> None:
    # It fails half, so the others are filled to half way from 80 to 95 %: 3 x 8 RPS need 24 / 0.875 = 27.43 of 30.
    done = after(sites(HALF, GOOD, GOOD, demand=8.0))
    assert told(done)["e1"] == (
        pytest.approx(1 - (30 - 24 / 0.875) / 10),
        (
            "50 of 100 requests failed in 10 s, others of its models 0.0 %: 74 % of capacity, "
            "for which nobody else has room"
        ),
    )
    # What is remembered goes on halving: as soon as there is room, it is used.
    assert done.memory("e1").penalty_ppm == PPM // 2


def test_others_are_filled_the_further_the_more_it_fails() -> None:
    def left(succeeded: int, failed: int) -> float:
        return told(after(sites(ended(succeeded, failed), GOOD, GOOD, demand=7.5)))["e1"][0]

    # 22.5 RPS of 30: at 0.8 + 0.15 x share, and at most half is taken after 5 s.
    assert left(0, 10) == 0.5 < left(5, 5) < left(8, 2)
    assert left(8, 2) == pytest.approx(1 - (30 - 22.5 / 0.83) / 10)


def test_the_only_engine_of_a_model_keeps_its_traffic() -> None:
    alone = of([engine("e1", "s1", outcomes=HALF), engine("e2", "s2", models=("n",))], [row("c1", 2.0)])
    assert told(after(alone)) == {
        "e1": (
            1.0,
            (
                "50 of 100 requests failed in 10 s, nobody to compare with, 1 % tolerated: all of its capacity, "
                "since too few of those it is counted with are there and sound"
            ),
        )
    }


def test_in_a_full_fleet_a_failing_engine_is_told_and_loses_nothing() -> None:
    done = after(sites(HALF, GOOD, GOOD, demand=11.0))
    factor, sentence = told(done)["e1"]
    assert factor == 1.0
    assert sentence.endswith(": all of its capacity, for which nobody else has room")
    assert [e.capacity_rps for e in done.problem.engines] == [10.0, 10.0, 10.0]


def test_where_most_sites_fail_at_once_everything_is_kept_as_it_is() -> None:
    known = [EngineMemory(f"e{n}", error_ppm=PPM, error_until_ms=0, penalty_ppm=PPM // 2) for n in (1, 2)]
    done = after(sites(HALF, HALF, GOOD), *known)
    assert (hit(done), list(told(done))) == ([], ["e1", "e2"])
    assert [done.memory(f"e{n}").penalty_ppm for n in (1, 2)] == [PPM // 2, PPM // 2]


def test_dead_sites_count_as_not_sound() -> None:
    p = sites(HALF, GOOD, GOOD, GOOD, GOOD)
    dead = Exclusion(Reason.STALE, "silent")
    engines = tuple(replace(e, exclusion=dead) if e.engine_id in ("e4", "e5") else e for e in p.engines)
    # Of five two are gone and one fails: two are sound, less than half.
    assert hit(after(replace(p, engines=engines))) == []


def test_of_two_sites_in_four_that_fail_only_the_worse_is_penalised() -> None:
    known = [
        EngineMemory(f"e{n}", error_ppm=PPM, error_until_ms=0, penalty_ppm=ppm)
        for n, ppm in ((1, 800_000), (2, 400_000))
    ]
    assert hit(after(sites(HALF, HALF, GOOD, GOOD, demand=2.0), *known)) == ["e2"]


def test_of_ten_sites_three_may_be_penalised() -> None:
    assert hit(after(sites(*[HALF] * 3, *[GOOD] * 7))) == ["e1", "e2", "e3"]


def measured(latency_s: float) -> Measured:
    return Measured(5.0, latency_s, latency_s, 50, 5.0 * latency_s)


@pytest.mark.parametrize(("times", "is_slow"), [(1.9, False), (2.1, True)])
def test_a_lone_engine_is_slow_where_it_is_slower_than_its_trim_can_say(times: float, is_slow: bool) -> None:  # noqa: FBT001 - a case
    p = sites(None, None, None)
    engines = [replace(e, measured=measured(0.1 * (times if e.engine_id == "e1" else 1.0))) for e in p.engines]
    assert ("e1" in told(after(replace(p, engines=tuple(engines))))) is is_slow


def test_lone_engines_of_another_profile_say_nothing_of_speed() -> None:
    p = sites(None, None, None)
    engines = [
        replace(
            e, measured=measured(0.3 if e.engine_id == "e1" else 0.1), profile_id="p" if e.engine_id < "e3" else "q"
        )
        for e in p.engines
    ]
    profiles = {"p": FLAT, "q": replace(FLAT, profile_id="q")}
    assert told(after(replace(p, engines=tuple(engines), profiles=profiles))) == {}


def test_room_is_counted_for_each_kind_of_request() -> None:
    engines = [engine("e1", capabilities=("vision",)), engine("e2"), engine("e3")]
    room = Room(of(engines, [row("c1", 1.0), row("c1", 5.7, request_class="see", requires=("vision",))]))
    # Of vision 5.7 / 0.95 = 6 of 10 RPS are needed: 4 can be spared, though the model has 30 for 6.7.
    assert room.take(engines[0], 9.0, 0.95) == pytest.approx(4.0)
    assert room.take(engines[0], 9.0, 0.95) == pytest.approx(0.0)
    assert room.take(engines[1], 9.0, 0.95) == pytest.approx(9.0)
    assert room.take(engine("e4", models=("n",)), 9.0, 0.95) == 9.0
    assert room.take(engines[2], 9.0, 0.0) == 0.0


def test_weights_leave_a_lone_engine_within_seconds_and_come_back_when_it_is_healed() -> None:
    def share(snapshot: Snapshot) -> float:
        (route,) = [r for r in snapshot.routes if r.cluster == "c1"]
        return sum(t.weight_ppm for t in route.targets if t.engine_id == "e1") / PPM

    steep = profile()
    tick, shares = None, list[float]()
    for second in range(130):
        own = ended(5, 5, first_s=second) if second < 20 else ended(1, 0, first_s=second)
        p = sites(own, ended(10, 0, first_s=second), ended(10, 0, first_s=second), demand=6.0)
        p = replace(p, profiles={"p": steep})
        before = None if tick is None else tick.snapshot
        tick = solve_tick(p, before, SETTINGS, LP, TickStamp(1, second + 1, second * 1000))
        shares.append(share(tick.snapshot))
    assert shares[0] == 1.0
    assert shares[10] < 0.5
    assert shares[19] < 0.2
    assert shares[-1] > 0.9, "and all but what is not worth moving back"


def shed_after_a_while(p: Problem, *memories: EngineMemory) -> tuple[float, Snapshot]:
    """Give what is shed of demand, RPS, once penalties have grown, and the last snapshot."""
    snapshot = solve_tick(p, None, SETTINGS, LP, TickStamp(1, 1, 0)).snapshot
    snapshot = replace(snapshot, commit=replace(snapshot.commit, remembered=memories))
    for version in range(2, 40):
        snapshot = solve_tick(p, snapshot, SETTINGS, LP, TickStamp(1, version, 500 * version)).snapshot
    return sum(route.shed_ratio * route.demand_rps for route in snapshot.routes), snapshot


def test_nobody_is_shed_for_a_penalty_where_the_stand_in_is_measured_to_serve_less_than_it_states() -> None:
    pair = sites(HALF, GOOD, demand=2.5)
    shed, snapshot = shed_after_a_while(pair, EngineMemory("e2", capacity_ppm=300_000))
    assert shed == 0.0
    [lifted] = [p for p in snapshot.commit.protections if p.protection == "errors"]
    assert lifted.factor == 1.0
    assert lifted.sentence.endswith("all of its capacity, for which nobody else has room")


def test_nobody_is_shed_for_a_penalty_where_no_round_trip_to_the_stand_in_is_known() -> None:
    p = of([engine("e1", "s1", outcomes=HALF), engine("e2", "s2", outcomes=GOOD)], [row("c1", 5.0)])
    shed, snapshot = shed_after_a_while(replace(p, network_s={("c1", "s1"): 0.0, ("c1", "s2"): None}))
    assert (shed, snapshot.routes[0].targets[0].weight_ppm) == (0.0, PPM)


def test_a_penalty_stands_in_one_part_of_a_fleet_while_another_is_short_of_its_own_doing() -> None:
    engines = [
        *(engine(f"e{n}", f"s{n}", outcomes=each) for n, each in enumerate((HALF, GOOD, GOOD), 1)),
        engine("x1", "s9", models=("n",), outcomes=GOOD),
    ]
    shed, snapshot = shed_after_a_while(of(engines, [row("c1", 3.0), row("c9", 20.0, model="n")]))
    assert shed == pytest.approx(10.0)
    factors = {p.engine_id: p.factor for p in snapshot.commit.protections if p.protection == "errors"}
    assert list(factors) == ["e1"]
    assert factors["e1"] < 1.0
