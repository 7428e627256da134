from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, snapshot
from headrace.dataplane.decision import DecisionReason, Outcome
from headrace.dataplane.failover import Failover
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import slot_table
from headrace.schemas.weights import PPM, FallbackTarget, Reason, RouteWeights

SESSIONS = 4_000
SHARES = {"a": 550_000, "b": 100_000, "c": 350_000}


def lost_b(kept: float | None = None) -> RouteWeights:
    """Give a route whose engine b, of three quarters of it, has a failover to a, which has no weight, and c."""
    made = route_weights({"b": 750_000, "c": 250_000})
    targets = tuple(replace(t, failover_kept=kept if t.engine_id == "b" else 1.0) for t in made.targets)
    return replace(made, targets=targets, failover=tuple(FallbackTarget(e, None, w) for e, w in SHARES.items()))


def router(weights: RouteWeights) -> Router:
    made = Router(DataPlaneSettings(), CLUSTER)
    made.apply(snapshot(weights))
    return made


def answers(made: Router) -> list[tuple[str | None, DecisionReason]]:
    decisions = [made.route(MODEL, key=f"s-{i}", now_ms=NOW_MS) for i in range(SESSIONS)]
    return [(d.engine_id, d.reason) for d in decisions]


def test_sessions_of_an_engine_that_is_down_go_where_there_is_room_and_only_they_move() -> None:
    made = router(lost_b())
    before = answers(made)
    made.set_health("b", up=False)
    after = answers(made)
    assert {now for was, now in zip(before, after, strict=True) if was[0] == "c"} == {("c", DecisionReason.SLOT)}
    moved = Counter(now for was, now in zip(before, after, strict=True) if was[0] == "b")
    assert set(moved) == {("a", DecisionReason.FAILOVER), ("c", DecisionReason.FAILOVER)}
    # a is to get 55 of the 90 parts that the two have
    assert moved["a", DecisionReason.FAILOVER] / moved.total() == pytest.approx(55 / 90, abs=0.08)


def test_when_it_is_up_again_everybody_is_back() -> None:
    made = router(lost_b())
    before = answers(made)
    made.set_health("b", up=False)
    made.set_health("b", up=True)
    assert answers(made) == before


def test_who_failed_over_stays_where_it_went_when_the_next_snapshot_says_about_the_same() -> None:
    ppm = {"b": 750_000, "c": 250_000}
    engines, owners = slot_table(ppm, 16_381)
    made = router(lost_b())
    table = made.installation.tables[MODEL, "default"] if made.installation else None
    assert table is not None
    assert table.failover is not None
    left = table.failover.weights(ppm, {"b"})
    assert left == {"a": 458_333, "c": 541_666}
    next_engines, next_owners = slot_table(left, 16_381)
    dead: list[int] = np.flatnonzero(owners == engines.index("b")).tolist()
    next_ids: list[str] = [next_engines[i] for i in next_owners.tolist()]
    picked = [table.failover.pick(slot, {"b"}, 750_000) for slot in dead]
    same = sum(p is not None and p.engine_id == next_ids[slot] for p, slot in zip(picked, dead, strict=True))
    assert same / len(dead) > 0.99


def test_what_nobody_has_room_for_is_shed_by_the_same_sessions_that_the_solver_would_shed() -> None:
    made = router(lost_b(kept=0.4))
    made.set_health("b", up=False)
    # 0.75 of the route is at b, and 0.6 of that finds no room: 0.45 of all sessions, wherever their slot is.
    shed = [
        d.outcome is Outcome.SHED for d in (made.route(MODEL, key=f"s-{i}", now_ms=NOW_MS) for i in range(SESSIONS))
    ]
    assert sum(shed) / SESSIONS == pytest.approx(0.45, abs=0.03)
    later = router(replace(route_weights({"a": 458_333, "c": 541_667}), shed_ratio=0.45))
    by_solver = [later.route(MODEL, key=f"s-{i}", now_ms=NOW_MS).outcome is Outcome.SHED for i in range(SESSIONS)]
    assert shed == by_solver


def test_a_more_important_tier_is_not_shed_for_want_of_room_and_a_less_important_one_is_shed_whole() -> None:
    made = router(replace(lost_b(kept=0.4), tier=1))
    made.set_health("b", up=False)

    def shed(tier: int) -> int:
        asked = (made.route(MODEL, key=f"s-{i}", tier=tier, now_ms=NOW_MS) for i in range(200))
        return sum(d.outcome is Outcome.SHED for d in asked)

    assert (shed(0), shed(2)) == (0, 200)
    assert 0 < shed(1) < 200


def test_nothing_is_shed_while_nobody_is_down() -> None:
    made = router(lost_b(kept=0.0))
    assert all(made.route(MODEL, key=f"s-{i}", now_ms=NOW_MS).outcome is Outcome.ROUTED for i in range(SESSIONS))


def test_where_the_failover_is_down_too_other_slots_are_tried_as_without_one() -> None:
    made = router(lost_b())
    for engine in ("a", "b"):
        made.set_health(engine, up=False)
    assert {engine for engine, _ in answers(made)} == {"c"}
    made.set_health("c", up=False)
    assert {engine for engine, _ in answers(made)} == {None}


def test_the_propensity_of_a_failover_is_about_the_share_of_sessions_that_get_it() -> None:
    made = router(lost_b())
    made.set_health("b", up=False)
    decisions = [made.route(MODEL, key=f"s-{i}", now_ms=NOW_MS) for i in range(SESSIONS)]
    counts = Counter(d.engine_id for d in decisions)
    for decision in decisions[:50]:
        assert decision.propensity == pytest.approx(counts[decision.engine_id] / SESSIONS, abs=0.06)


def test_a_failover_of_nobody_picks_nobody() -> None:
    assert Failover((), {}, {}, 16_381).pick(7, (), 1_000) is None


def test_where_everybody_with_room_is_down_too_the_fallback_is_asked_and_nobody_is_shed() -> None:
    made = router(replace(lost_b(kept=0.0), fallback=(FallbackTarget("z", None, PPM),)))
    for engine in ("a", "b", "c"):
        made.set_health(engine, up=False)
    assert set(answers(made)) == {("z", DecisionReason.FALLBACK_DOWN)}


def test_a_snapshot_past_its_time_to_live_sheds_nobody_for_want_of_room() -> None:
    made = router(lost_b(kept=0.0))
    made.set_health("b", up=False)
    late = [made.route(MODEL, key=f"s-{i}", now_ms=NOW_MS + 10_000_000) for i in range(100)]
    assert {d.reason for d in late} == {DecisionReason.STALE_WEIGHTS}


def test_the_propensity_is_how_often_an_engine_is_picked_also_where_another_wins_what_the_failover_has() -> None:
    made = router(lost_b())
    made.set_health("b", up=False)
    decisions = [made.route(MODEL, key=f"s-{i}", now_ms=NOW_MS) for i in range(SESSIONS)]
    picked = Counter(d.engine_id for d in decisions)
    said = {d.engine_id: d.propensity for d in decisions}
    assert set(said) == {"a", "c"}
    assert sum(p or 0.0 for p in said.values()) == pytest.approx(1.0, abs=0.01)
    assert said["a"] == pytest.approx(picked["a"] / SESSIONS, abs=0.03)


def test_the_propensity_counts_what_goes_to_an_engine_that_has_no_share() -> None:
    made = route_weights({"b": 200_000, "k": 800_000})
    targets = tuple(replace(t, failover_kept=1.0) for t in made.targets)
    made_router = router(replace(made, targets=targets, failover=(FallbackTarget("a", None, PPM),)))
    made_router.set_health("b", up=False)
    decisions = [made_router.route(MODEL, key=f"s-{i}", now_ms=NOW_MS) for i in range(SESSIONS)]
    picked = Counter(d.engine_id for d in decisions)
    for engine in ("a", "k"):
        (said,) = {d.propensity for d in decisions if d.engine_id == engine}
        assert said == pytest.approx(picked[engine] / SESSIONS, abs=0.03)


def test_a_pinned_engine_gets_nothing_of_a_lost_one_unless_the_failover_says_so() -> None:
    made = route_weights({"b": 600_000, "c": 300_000, "pinned": 100_000})
    targets = tuple(replace(t, reason=Reason.PINNED) if t.engine_id == "pinned" else t for t in made.targets)

    def brought(**shares: int) -> float:
        failover = tuple(FallbackTarget(e, None, w) for e, w in shares.items())
        found = router(replace(made, targets=targets, failover=failover))
        before = answers(found)
        found.set_health("b", up=False)
        after = answers(found)
        gone = [now for was, now in zip(before, after, strict=True) if was[0] == "b"]
        return sum(engine == "pinned" for engine, _ in gone) / SESSIONS

    assert brought(c=PPM) == 0.0
    assert brought(c=900_000, pinned=100_000) == pytest.approx(0.06, abs=0.02)
