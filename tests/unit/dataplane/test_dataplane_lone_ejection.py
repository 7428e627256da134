"""When one engine may be left out though it weighs more than the share that may be: for errors, and with a way out."""

from dataclasses import replace

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, snapshot
from headrace.dataplane import Decision, DecisionReason, Outcome, Router
from headrace.dataplane.guards.contract import AttemptOutcome, Cause
from headrace.dataplane.guards.ejection import Ejection, within_share
from headrace.dataplane.settings import DataPlaneSettings, GuardSettings
from headrace.schemas.weights import FallbackTarget, RouteWeights

KEYS = [f"session-{i}" for i in range(500)]
THREE = {"a": 333_334, "b": 333_333, "c": 333_333}
HEAVY = {"a": 800_000, "b": 100_000, "c": 100_000}


def with_failover(ppm: dict[str, int], **kept: float) -> RouteWeights:
    """Give a route whose failover is over b and c, with the shares of sessions that would find room."""
    made = route_weights(ppm)
    targets = tuple(replace(t, failover_kept=kept.get(t.engine_id, 1.0)) for t in made.targets)
    failover = tuple(FallbackTarget(e, None, 500_000) for e in ("b", "c"))
    return replace(made, targets=targets, failover=failover)


def engines(weights: RouteWeights, *failing: str, down: str = "", ejected_max: float = 0.3) -> set[str | None]:
    """Give the engines that are used once the failing ones have failed six requests each, in their order."""
    made = Router(DataPlaneSettings(guards=GuardSettings(ejected_max=ejected_max)), CLUSTER)
    made.apply(snapshot(weights))
    if down:
        made.set_health(down, up=False)
    for n, engine in enumerate(failing):
        decision = Decision(Outcome.ROUTED, engine, None, DecisionReason.SLOT)
        for _ in range(6):
            made.end(MODEL, "default", decision, AttemptOutcome.ERROR, now_ms=NOW_MS + n)
    return {made.route(MODEL, key=key, now_ms=NOW_MS + 100).engine_id for key in KEYS}


def test_one_of_three_equals_is_left_out_for_its_errors() -> None:
    assert engines(route_weights(THREE), "a") == {"b", "c"}


def test_the_second_of_three_equals_is_not() -> None:
    assert engines(route_weights(THREE), "b", "a") == {"a", "c"}


def test_at_a_share_of_nothing_nobody_is_left_out() -> None:
    assert engines(route_weights(THREE), "a", ejected_max=0.0) == {"a", "b", "c"}


def test_the_only_engine_of_a_route_is_never_left_out() -> None:
    assert engines(route_weights({"a": 1_000_000}), "a") == {"a"}


def test_an_engine_that_serves_most_of_a_route_is_left_to_the_solver() -> None:
    assert "a" in engines(with_failover(HEAVY), "a")


def test_an_engine_without_a_place_for_its_sessions_is_kept() -> None:
    assert engines(with_failover(THREE), "a") == {"b", "c"}
    assert engines(with_failover(THREE, a=0.9), "a") == {"a", "b", "c"}


def test_while_another_engine_is_down_the_room_may_be_taken() -> None:
    assert engines(with_failover(THREE), "a", down="b") == {"a", "c"}


def test_late_first_tokens_leave_out_no_more_than_the_share() -> None:
    def out(cause: Cause) -> frozenset[str]:
        return within_share([Ejection("a", cause, 0, 10**6, 1)], THREE, 0.3, THREE)

    assert (out(Cause.ERRORS), out(Cause.SLOW_FIRST_TOKEN)) == ({"a"}, frozenset())
