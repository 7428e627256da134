"""What the demo's events say of the solver's decisions: in words, once, and whatever protection it was."""

from collections.abc import Mapping
from dataclasses import replace

from fleet_inputs import NEAREST, START_MS, fixed_snapshot
from headrace.infra.demo.retelling import Retelling
from headrace.schemas.weights import Excluded, Protected, Reason, Snapshot

HELD = Protected("engine-b", "any_protection", 0.34, "measured at its wall: 34 RPS of 100")


def at(
    second: float,
    weights: Mapping[str, Mapping[str, int]] = NEAREST,
    protections: tuple[Protected, ...] = (),
    *,
    load: float = 0.75,
    shed: float = 0.0,
) -> Snapshot:
    """Give a snapshot of that second; cluster-b's engines are at `load`, and `shed` of it is refused."""
    made = fixed_snapshot(weights, 1 + int(1000 * second))
    commit = replace(made.commit, tick_ms=START_MS + int(1000 * second), protections=protections)
    routes = tuple(
        replace(route, shed_ratio=shed, targets=tuple(replace(t, utilisation=load) for t in route.targets))
        if route.cluster == "cluster-b"
        else route
        for route in made.routes
    )
    return Snapshot(commit, routes)


def test_a_protection_is_told_by_its_own_sentence_with_the_capacity_that_is_left_and_its_end_too() -> None:
    retelling = Retelling()
    assert retelling.offer(at(0.0)) == ()
    # 75 RPS of cluster-b at a load of 75 % are 100 RPS; nothing of it is news.
    assert retelling.offer(at(0.5)) == ()
    # The same 75 RPS are 221 % of 34 RPS.
    (told,) = retelling.offer(at(1.0, protections=(HELD,), load=75 / 34))
    assert told == "solver: engine-b: measured at its wall: 34 RPS of 100 (any_protection); planned with 34 RPS"
    assert retelling.offer(at(1.5, protections=(HELD,))) == ()
    assert retelling.offer(at(7.0)) == ("solver: engine-b: any_protection no longer holds it back",)
    assert retelling.offer(at(7.5)) == ()


def test_a_protection_that_hardly_changes_anything_is_no_news() -> None:
    retelling = Retelling()
    retelling.offer(at(0.0))
    assert retelling.offer(at(1.0, protections=(replace(HELD, factor=0.95),))) == ()
    assert retelling.offer(at(2.0)) == ()


def test_a_move_says_how_much_of_whose_traffic_goes_where_and_the_protection_that_caused_it() -> None:
    retelling = Retelling()
    retelling.offer(at(0.0))
    moved = {**NEAREST, "cluster-b": {"engine-b": 340_000, "engine-c": 660_000}}
    said = retelling.offer(at(6.0, moved, (HELD,), load=1.0))
    assert said == (
        "solver: engine-b: measured at its wall: 34 RPS of 100 (any_protection); planned with 34 RPS",
        f"cluster-b moves 41 % (41.0 RPS) from engine-b to engine-c: engine-b: {HELD.sentence} (any_protection)",
    )
    assert retelling.offer(at(6.5, moved, (HELD,), load=1.0)) == ()


def test_small_steps_are_told_once_they_add_up() -> None:
    retelling, said = Retelling(), list[str]()
    for step in range(13):
        weights = {**NEAREST, "cluster-b": {"engine-b": 750_000 - 10_000 * step, "engine-c": 250_000 + 10_000 * step}}
        said += retelling.offer(at(float(step), weights))
    assert len(said) == 1
    assert said[0].startswith("cluster-b moves 10 % (10.0 RPS) from engine-b to engine-c: ")


def test_an_engine_that_is_out_is_told_with_its_reason_and_again_when_it_is_back() -> None:
    retelling = Retelling()
    retelling.offer(at(0.0))
    gone = at(1.0, {**NEAREST, "cluster-b": {"engine-c": 1_000_000}})
    out = Excluded("engine-b", Reason.STALE, "silent for 3.1 s")
    gone = Snapshot(gone.commit, tuple(replace(route, excluded=(out,)) for route in gone.routes))
    assert retelling.offer(gone)[0] == "solver: engine-b is out: STALE, silent for 3.1 s"
    assert "solver: engine-b is back" in retelling.offer(at(2.0))


def test_shedding_says_how_much_of_what_and_whose() -> None:
    retelling = Retelling()
    retelling.offer(at(3.0))
    said = retelling.offer(at(6.0, shed=0.05))
    assert said == ("shedding 5 of 300 RPS, demand is above capacity: cluster-b 5 %",)
    # Less than two seconds of an end is a flicker.
    assert retelling.offer(at(7.0)) == ()
    assert retelling.offer(at(8.5)) == ("shedding ends",)


def test_shedding_for_pins_is_told_by_the_engines_that_have_room_and_not_as_want_of_capacity() -> None:
    made = at(6.0, shed=0.05)
    routes = tuple(
        replace(r, targets=tuple(replace(t, reason=Reason.PINNED) for t in r.targets)) if r.shed_ratio else r
        for r in made.routes
    )
    retelling = Retelling()
    retelling.offer(at(3.0))
    said = retelling.offer(Snapshot(made.commit, routes))
    assert said == ("shedding 5 of 300 RPS, pins hold engines that have room: cluster-b 5 % (engine-b, engine-c)",)
