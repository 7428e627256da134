"""A pinned share: a hard bound of the program, held by every policy, told in the snapshot and in the explanation."""

from dataclasses import replace

import pytest

from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.weights import PPM, Reason, RouteWeights, Snapshot, SnapshotStatus
from headrace.solver.core.policies import policy_names
from headrace.solver.core.problem import Exclusion, Pin, Problem
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.core.why.explain import explain
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row


def pinned(made: Problem, *pins: tuple[str, str, float, float]) -> Problem:
    said = tuple(Pin(c, e, least, most, "pinned by ann until noon: trial") for c, e, least, most in pins)
    return replace(made, pins=said)


def tick(made: Problem, previous: Snapshot | None = None, settings: SolverSettings | None = None) -> Tick:
    version = 1 if previous is None else previous.commit.version + 1
    return solve_tick(made, previous, settings or SolverSettings(), Glop(), TickStamp(1, version, 500 * version))


def route(found: Tick, cluster: str = "c1") -> RouteWeights:
    return next(r for r in found.snapshot.routes if r.cluster == cluster)


def shares(found: Tick, cluster: str = "c1") -> dict[str, int]:
    return {t.engine_id: t.weight_ppm for t in route(found, cluster).targets}


def twins(demand: float = 4.0) -> Problem:
    """Three engines that only their names tell apart, one farther away; nobody is full."""
    engines = [engine("e1"), engine("e2"), engine("far", "s2")]
    return problem([row("c1", demand)], engines, {("c1", "s1"): 1.0, ("c1", "s2"): 50.0})


def test_an_exact_pin_is_the_weight_and_the_others_share_the_rest_as_before() -> None:
    found = tick(pinned(twins(), ("c1", "far", 0.2, 0.2)))
    assert shares(found) == {"e1": 400_000, "e2": 400_000, "far": 200_000}
    assert found.snapshot.commit.status is SnapshotStatus.OPTIMAL
    assert found.record.gap is not None
    assert 0.0 <= found.record.gap < 0.05


def test_one_of_two_engines_of_a_pool_can_be_pinned() -> None:
    assert shares(tick(pinned(twins(), ("c1", "e1", 0.9, 0.9)))) == {"e1": 900_000, "e2": 100_000}


@pytest.mark.parametrize(("least", "most", "is_"), [(0.3, 1.0, 300_000), (0.0, 0.3, 0), (0.0, 0.0, 0)])
def test_a_bound_binds_only_on_its_own_side(least: float, most: float, is_: int) -> None:
    assert shares(tick(pinned(twins(), ("c1", "far", least, most)))).get("far") == is_


def test_weights_that_stand_do_not_stand_against_a_pin_and_may_stay_within_one() -> None:
    before = tick(twins())
    moved = tick(pinned(twins(), ("c1", "far", 0.05, 0.05)), before.snapshot)
    assert shares(moved)["far"] == 50_000
    again = tick(pinned(twins(4.02), ("c1", "far", 0.05, 0.05)), moved.snapshot)
    assert route(again) is route(moved)


def test_a_pin_that_ends_leaves_no_trace_in_the_reasons() -> None:
    before = tick(pinned(twins(), ("c1", "far", 0.2, 0.2)))
    after = tick(twins(), before.snapshot)
    assert all(t.reason is not Reason.PINNED for t in route(after).targets)
    assert after.snapshot.commit.protections == ()


@pytest.mark.parametrize("policy", policy_names())
def test_every_policy_keeps_to_pins_with_demand_and_without(policy: str) -> None:
    for demand in (4.0, 0.0):
        made, before = pinned(twins(demand), ("c1", "far", 0.25, 0.25), ("c1", "e1", 0.0, 0.1)), tick(twins(demand))
        found = tick(made, before.snapshot, SolverSettings(policy=policy))
        assert check_snapshot(found.snapshot) == ()
        assert shares(found)["far"] == pytest.approx(250_000, abs=2)
        assert shares(found)["e1"] <= 100_002


def test_a_pin_takes_no_more_than_the_engine_has_and_says_what_it_is_held_to() -> None:
    found = tick(pinned(twins(16.0), ("c1", "far", 0.8, 0.8)))
    # 10 of 16 RPS.
    assert shares(found)["far"] == pytest.approx(625_000, abs=2)
    (told,) = found.snapshot.commit.protections
    assert told.sentence == "c1 pinned by ann until noon: trial; held to 62.5 %, for want of room"
    assert found.record.shed_rps == pytest.approx(0.0, abs=1e-6)


def test_pins_of_more_than_the_whole_are_scaled_to_it_and_say_so() -> None:
    found = tick(pinned(twins(), ("c1", "e1", 0.9, 1.0), ("c1", "e2", 0.6, 1.0)))
    assert shares(found) == {"e1": 600_000, "e2": 400_000}
    of_all = "the pins of c1|m|default add up to 150 %, and are scaled to 100 %"
    said = "c1 pinned by ann until noon: trial; held to"
    told = [p.sentence for p in found.snapshot.commit.protections]
    assert told == [f"{said} 60.0 %: {of_all}", f"{said} 40.0 %: {of_all}"]
    # Nothing is left to choose from: no way is the next best.
    assert explain(found, "c1", "e1").binding == tuple(f"{e} is pinned by ann until noon: trial" for e in ("e1", "e2"))


def test_pins_that_fit_neither_the_whole_nor_the_engine_are_told_of_what_leaves_less() -> None:
    found = tick(pinned(twins(40.0), ("c1", "e1", 0.6, 1.0), ("c1", "e2", 0.6, 1.0)))
    # 10 of 40 RPS each, where scaled pins would leave half.
    told = [p.sentence for p in found.snapshot.commit.protections]
    assert [words.split("; ")[1] for words in told] == ["held to 25.0 %, for want of room"] * 2


def test_a_pin_of_an_engine_that_is_out_waits_and_says_so() -> None:
    made = twins()
    out = replace(made.engines[2], exclusion=Exclusion(Reason.STALE, "silent for 20 s"))
    found = tick(pinned(replace(made, engines=(*made.engines[:2], out)), ("c1", "far", 0.2, 0.2)))
    assert shares(found) == shares(tick(twins()))
    (told,) = found.snapshot.commit.protections
    assert told.sentence.endswith("it waits: STALE, silent for 20 s")


def test_a_pin_never_reaches_an_engine_that_the_route_may_not_use() -> None:
    made = problem([row("c1", 4.0, residency=("eu",))], [engine("in", residency=("eu",)), engine("us", "s1")])
    found = tick(pinned(made, ("c1", "us", 0.5, 0.5)))
    assert shares(found) == {"in": PPM}
    assert found.snapshot.commit.protections[0].sentence.endswith("it waits: no route of c1 may use it")


def test_the_pin_stands_in_the_snapshot_with_who_and_why_and_in_the_weight() -> None:
    found = tick(pinned(twins(), ("c1", "far", 0.2, 0.2), ("c1", "e1", 0.0, 0.0)))
    told = {p.engine_id: (p.protection, p.sentence) for p in found.snapshot.commit.protections}
    assert told["far"] == ("pin", "c1 pinned by ann until noon: trial")
    reasons = {t.engine_id: t.reason for t in route(found).targets}
    assert reasons == {"e1": Reason.PINNED, "e2": Reason.CHEAPEST, "far": Reason.PINNED}
    assert route(tick(pinned(twins(), ("c1", "far", 0.2, 0.2), ("c1", "e1", 0.0, 0.0)), found.snapshot)) is route(found)


def test_the_explanation_names_the_pin_as_binding_with_what_it_costs_and_its_terms_add_up() -> None:
    found = explain(tick(pinned(twins(), ("c1", "far", 0.2, 0.2))), "c1", "far")
    (words,) = (clause for clause in found.binding if "pinned" in clause)
    # Both ends are as slow at this load: it is dearer by the way there.
    assert (
        words == "far is pinned by ann until noon: trial (a request there is 49.0 ms dearer than the route's next best)"
    )
    assert found.terms is not None
    terms = found.terms
    parts = terms.network_ms + terms.engine_ms + terms.congestion_ms + terms.scarcity_ms + terms.move_ms
    assert parts == pytest.approx(terms.marginal_ms, abs=1e-9)


@pytest.mark.parametrize("before", [None, "far"])
def test_what_a_pin_keeps_from_a_cheaper_engine_is_told_by_the_pin_and_not_by_caches(before: str | None) -> None:
    made = problem([row("c1", 4.0)], [engine("e1"), engine("far", "s2")], {("c1", "s1"): 1.0, ("c1", "s2"): 50.0})
    made = pinned(made, ("c1", "e1", 0.0, 0.3))
    previous = None if before is None else tick(pinned(made, ("c1", before, 1.0, 1.0))).snapshot
    told = {t.engine_id: (t.reason, t.sentence) for t in route(tick(made, previous)).targets}
    reason, sentence = told["far"]
    assert reason is Reason.SPILL
    assert " ms less, and is held to at most 30 %: pinned by ann until noon: trial; marginal " in sentence
    assert sentence.startswith("SPILL: 50.0 ms network")
    assert "; e1 would cost " in sentence
    assert told["e1"][0] is Reason.PINNED


def test_a_large_program_with_a_pin_is_solved_as_a_whole() -> None:
    found = tick(pinned(twins(), ("c1", "far", 0.2, 0.2)), settings=SolverSettings(sift_above=1))
    assert shares(found)["far"] == 200_000
    assert found.record.rung == "DUAL"


def test_no_replica_is_said_to_serve_what_a_pin_refuses() -> None:
    short = problem([row("c1", 15.0), row("c2", 1.0, model="n")], [engine("e1"), engine("e2", models=("n",))])
    told = explain(tick(short), "c1", "e1")
    assert told.replica_worth_rps == pytest.approx(5.0)
    assert "one more replica of e1 would serve 5.0 RPS more of what is shed" in told.sentences[2]
    # Half at most: another replica would find nobody to serve.
    kept = tick(pinned(short, ("c1", "e1", 0.0, 0.5)))
    told = explain(kept, "c1", "e1")
    assert kept.record.shed_rps == pytest.approx(7.5)
    assert told.replica_worth_rps is None
    assert told.sentences[2].endswith(
        "one more replica of e1 would serve some, or none, of the 7.5 RPS that are shed: pins may refuse it."
    )
    # A pin of another part of the fleet has nothing to do with it.
    apart = tick(pinned(short, ("c2", "e2", 0.0, 0.5)))
    assert explain(apart, "c1", "e1").replica_worth_rps == pytest.approx(5.0)


def test_a_route_that_sheds_for_a_pin_says_the_pin_and_not_that_demand_is_above_capacity() -> None:
    found = tick(pinned(twins(16.0), ("c1", "e2", 0.0, 0.1), ("c1", "far", 0.0, 0.1)))
    # 10 of e1, 1.6 of each other.
    assert route(found).sentence == (
        "2.8 of 16.0 RPS (17.5 %) are shed, e2 is held to at most 10 %: pinned by ann until noon: trial; "
        "far is held to at most 10 %: pinned by ann until noon: trial; "
        "of the 13.2 served 75.8 % to e1, 12.1 % to e2, 12.1 % to far"
    )
    kept = "for pins up to 2.8 RPS of c1|m|default are shed though engines have room"
    assert f"2.8 RPS shed, of tier 0; {kept}; " in found.snapshot.commit.sentence
    (shed,) = (clause for clause in explain(found, "c1", "e1").binding if "are shed" in clause)
    assert shed == (
        "2.8 RPS of the route are shed: all its engines are full but "
        "e2 at 16.0 % of 10.0 RPS, held there by its pin, far at 16.0 % of 10.0 RPS, held there by its pin"
    )


def test_where_a_pin_and_capacity_both_bind_the_route_says_how_much_each_is() -> None:
    said = route(tick(pinned(twins(40.0), ("c1", "far", 0.0, 0.0)))).sentence
    pin = "far is held to at most 0 %: pinned by ann until noon: trial"
    assert said.startswith(f"20.0 of 40.0 RPS (50.0 %) are shed, {pin}; the other 10.0 RPS are above capacity; of the")


def test_a_pin_to_more_than_an_engine_has_is_not_what_binds() -> None:
    found = tick(pinned(twins(40.0), ("c1", "far", 0.0, 0.8)))
    assert route(found).sentence.startswith("10.0 of 40.0 RPS (25.0 %) are shed, demand is above capacity; ")
    assert "for pins" not in found.snapshot.commit.sentence


@pytest.mark.parametrize("name", ["e1", "e2", "far"])
def test_a_pin_to_just_what_an_engine_has_is_not_what_binds(name: str) -> None:
    found = tick(pinned(twins(40.0), ("c1", name, 0.0, 0.25)))
    assert route(found).sentence.startswith("10.0 of 40.0 RPS (25.0 %) are shed, demand is above capacity; ")


def test_a_pin_binds_where_its_engine_is_full_of_what_should_be_shed_before() -> None:
    rows = [row("c1", 4.0), row("c2", 20.0, tier=1)]
    found = tick(pinned(problem(rows, [engine("e1")]), ("c1", "e1", 0.0, 0.5)))
    assert route(found).sentence.startswith("2.0 of 4.0 RPS (50.0 %) are shed, e1 is held to at most 50 %: pinned by")
    assert route(found, "c2").sentence.startswith("12.0 of 20.0 RPS (60.0 %) are shed, demand is above capacity; ")


@pytest.mark.parametrize("policy", policy_names())
@pytest.mark.parametrize("demand", [4.0, 0.0])
def test_a_route_whose_every_engine_is_pinned_to_nothing_is_refused_for_that_and_has_no_weight(
    policy: str, demand: float
) -> None:
    made = pinned(twins(demand), *(("c1", name, 0.0, 0.0) for name in ("e1", "e2", "far")))
    found = tick(made, settings=SolverSettings(policy=policy))
    assert check_snapshot(found.snapshot) == ()
    assert set(shares(found).values()) == {0}
    assert route(found).shed_ratio == 1.0
    assert route(found).sentence == (
        f"{demand:.1f} RPS asked for, all refused: e1 is held to at most 0 %: pinned by ann until noon: trial; "
        "e2 is held to at most 0 %: pinned by ann until noon: trial; and 1 more"
    )
    assert " full" not in found.snapshot.commit.sentence


def test_a_route_that_is_shed_whole_for_its_tier_has_no_weight_where_a_pin_allows_none() -> None:
    rows = [row("c1", 20.0), row("c2", 4.0, tier=1)]
    near_e1 = {("c1", "s1"): 1.0, ("c1", "s2"): 1.0, ("c2", "s1"): 1.0, ("c2", "s2"): 50.0}
    made = problem(rows, [engine("e1"), engine("e2", "s2")], near_e1)
    found = tick(pinned(made, ("c2", "e1", 0.0, 0.0)))
    assert route(found, "c2").shed_ratio == 1.0
    assert shares(found, "c2") == {"e1": 0, "e2": PPM}


def test_a_pin_that_is_said_anew_is_written_into_its_route_though_no_weight_changes_for_it() -> None:
    # Neither bounds the third that the fallback gives each.
    made = pinned(twins(), ("c1", "far", 0.0, 0.5))
    before = tick(made)
    assert route(tick(made, before.snapshot)) is route(before)
    narrower = replace(made, pins=(Pin("c1", "far", 0.0, 0.4, "pinned by bob until one: less"),))
    after = route(tick(narrower, before.snapshot))
    assert {t.engine_id: t.weight_ppm for t in after.targets} == shares(before)
    assert next(t.sentence for t in after.targets if t.engine_id == "far").endswith(
        "; pinned by bob until one: less; marginal 150 ms"
    )
