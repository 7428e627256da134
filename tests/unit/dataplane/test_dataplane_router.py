"""One request at a time: which step answers, and what a refusal says."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, TICK_MS, TTL_MS, route_weights, shares, snapshot
from headrace.dataplane import AttemptOutcome, Decision, DecisionReason, Outcome, Router
from headrace.dataplane.retry_budget import Retry
from headrace.dataplane.settings import DataPlaneSettings, FallbackEngine
from headrace.dataplane.staleness import Staleness
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import RouteWeights

KEYS = [f"session-{i}" for i in range(2_000)]
ENDED: dict[str, Any] = {"outcome": AttemptOutcome.OK, "now_ms": NOW_MS}
PAST_TTL_MS = TICK_MS + TTL_MS


def router(*routes: RouteWeights, **settings: object) -> Router:
    made = Router(DataPlaneSettings(**settings), CLUSTER)
    if routes:
        made.apply(snapshot(*routes))
    return made


def ask(made: Router, key: object = "session-1", **more: object) -> Decision:
    return made.route(MODEL, key=key, **({"now_ms": NOW_MS} | more))


def engines(made: Router, **more: object) -> dict[str, str | None]:
    return {key: ask(made, key, **more).engine_id for key in KEYS}


def test_a_request_gets_an_engine_its_address_and_the_version_of_the_weights() -> None:
    decision = ask(router(route_weights({"a": 1_000_000}, epoch=3, version=7)))
    assert decision == Decision(Outcome.ROUTED, "a", "http://a:8000", DecisionReason.SLOT, 3, 7, None, 1.0)


def test_sessions_are_shared_by_the_weights_and_stay_where_they_are() -> None:
    made = router(route_weights(shares(a=3, b=1)))
    first = engines(made)
    # 2,000 sessions at 3/4: 1,500 expected, standard deviation sqrt(2000 x 3/4 x 1/4) = 19.4.
    assert abs(Counter(first.values())["a"] - 1_500) < 5 * 19.4
    assert engines(made) == first


def test_two_routers_agree_without_talking() -> None:
    weights = route_weights(shares(a=3, b=1, c=1))
    assert engines(router(weights)) == engines(router(weights, source="another"))


def test_text_and_its_utf8_bytes_are_the_same_session() -> None:
    made = router(route_weights(shares(a=1, b=1)))
    assert all(ask(made, key) == ask(made, key.encode()) for key in KEYS[:100])


@pytest.mark.parametrize("key", [None, "", b""])
def test_requests_without_a_session_are_spread_by_the_weights(key: object) -> None:
    made = router(route_weights(shares(a=3, b=1)))
    counts = Counter(ask(made, key).engine_id for _ in range(2_000))
    assert abs(counts["a"] - 1_500) < 5 * 19.4


def test_replicas_spread_requests_without_a_session_in_different_orders() -> None:
    weights = route_weights(shares(a=1, b=1))
    one, other = router(weights, source="replica-1"), router(weights, source="replica-2")
    assert [ask(one, None).engine_id for _ in range(64)] != [ask(other, None).engine_id for _ in range(64)]


def test_a_down_engine_gets_nothing_at_once_and_only_its_sessions_move_and_come_back() -> None:
    made = router(route_weights(shares(a=2, b=1, c=1)))
    before = engines(made)
    made.set_health("a", up=False)
    during = engines(made)
    assert made.is_down("a")
    assert "a" not in during.values()
    assert {k: e for k, e in during.items() if before[k] != "a"} == {k: e for k, e in before.items() if e != "a"}
    made.set_health("a", up=True)
    assert engines(made) == before


def test_an_ejected_engines_sessions_are_shared_by_the_others_weights() -> None:
    made = router(route_weights(shares(a=2, b=2, c=1)))
    moved = [key for key, engine in engines(made).items() if engine == "a"]
    made.set_health("a", up=False)
    decisions = [ask(made, key) for key in moved]
    assert {d.reason for d in decisions} == {DecisionReason.REHASH}
    share = Counter(d.engine_id for d in decisions)["b"] / len(moved)
    # 2 : 1 over about 800 sessions: standard deviation sqrt(2/9 / 800) = 0.017.
    assert abs(share - 2 / 3) < 5 * 0.017


def test_a_new_snapshot_does_not_bring_a_down_engine_back() -> None:
    made = router(route_weights(shares(a=1, b=1)))
    made.set_health("a", up=False)
    made.apply(snapshot(route_weights({"a": 1_000_000}, version=2)))
    decision = ask(made)
    assert (decision.outcome, decision.reason, decision.retry_after_s) == (
        Outcome.REFUSED,
        DecisionReason.ALL_DOWN,
        1.0,
    )


def test_an_engine_the_router_has_never_heard_of_may_be_down() -> None:
    made = router(route_weights({"a": 1_000_000}))
    made.set_health("z", up=False)
    made.set_health("y", up=True)
    assert ask(made).engine_id == "a"


def test_a_retry_goes_to_another_engine_and_says_so() -> None:
    made = router(route_weights(shares(a=1, b=1)))
    first = ask(made)
    second = ask(made, exclude=(first.engine_id,))
    assert {first.engine_id, second.engine_id} == {"a", "b"}
    assert second.reason is DecisionReason.REHASH


def test_a_retry_with_nowhere_to_go_is_no_other_engine_and_not_all_down() -> None:
    made = router(route_weights(shares(a=1, b=1)))
    assert ask(made, exclude=("a", "b")).reason is DecisionReason.NO_OTHER_ENGINE
    made.set_health("b", up=False)
    assert ask(made, exclude=("a",)).reason is DecisionReason.NO_OTHER_ENGINE
    made.set_health("a", up=False)
    assert ask(made).reason is DecisionReason.ALL_DOWN


def test_a_small_engine_is_found_by_the_scan_where_every_other_slot_is_down() -> None:
    made = router(route_weights({"a": 999_900, "b": 100}), rehash_max=2)
    made.set_health("a", up=False)
    decisions = [ask(made, key) for key in KEYS]
    assert {d.engine_id for d in decisions} == {"b"}
    assert DecisionReason.SCAN in {d.reason for d in decisions}


def test_the_fallback_answers_where_every_weighted_engine_is_down() -> None:
    made = router(route_weights({"a": 1_000_000, "b": 0}, fallback=shares(a=1, b=1)))
    assert "b" not in engines(made).values()
    made.set_health("a", up=False)
    decision = ask(made)
    assert (decision.engine_id, decision.reason) == ("b", DecisionReason.FALLBACK_DOWN)


def test_an_excluded_engine_is_not_used_even_as_a_fallback() -> None:
    made = router(route_weights({"a": 1_000_000}, excluded=("b",), fallback=shares(a=1, b=1)))
    made.set_health("a", up=False)
    assert ask(made).reason is DecisionReason.ALL_DOWN


def test_a_hint_is_followed_while_its_engine_has_a_weight_is_up_and_was_not_tried() -> None:
    made = router(route_weights({"a": 999_000, "b": 1_000, "c": 0}))
    assert (ask(made, hint="b").engine_id, ask(made, hint="b").reason) == ("b", DecisionReason.HINT)
    assert ask(made, hint="c").engine_id == "a"
    assert ask(made, hint="nobody").engine_id == "a"
    assert ask(made, hint="b", exclude=("b",)).engine_id == "a"
    made.set_health("b", up=False)
    assert ask(made, hint="b").engine_id == "a"


def test_shedding_keeps_or_refuses_whole_sessions_and_more_of_them_as_the_ratio_grows() -> None:
    shed_before: set[str] = set()
    for version, ratio in enumerate((0.0, 0.1, 0.25, 0.9, 1.0), start=1):
        made = router(route_weights(shares(a=1, b=1), shed_ratio=ratio, version=version))
        shed = {key for key in KEYS if ask(made, key).outcome is Outcome.SHED}
        assert shed_before <= shed
        # Standard deviation of a share of 2,000 sessions is at most sqrt(1/4 / 2000) = 0.0112.
        assert abs(len(shed) / len(KEYS) - ratio) < 5 * 0.0112
        shed_before = shed
    assert shed_before == set(KEYS)


def test_shedding_leaves_the_others_where_they_were_and_says_when_to_come_back() -> None:
    before = engines(router(route_weights(shares(a=1, b=1))))
    made = router(route_weights(shares(a=1, b=1), shed_ratio=0.5))
    for key in KEYS:
        decision = ask(made, key)
        if decision.outcome is Outcome.SHED:
            assert (decision.engine_id, decision.retry_after_s) == (None, 5.0)
        else:
            assert decision.engine_id == before[key]


def test_a_less_important_request_is_shed_first_and_a_more_important_one_last() -> None:
    made = router(route_weights({"a": 1_000_000}, shed_ratio=0.01, tier=1))
    assert all(ask(made, key, tier=2).outcome is Outcome.SHED for key in KEYS)
    assert all(ask(made, key, tier=0).outcome is Outcome.ROUTED for key in KEYS)
    assert [ask(made, key, tier=1) for key in KEYS] == [ask(made, key) for key in KEYS]
    everything = router(route_weights({"a": 1_000_000}, shed_ratio=1.0, tier=1))
    assert ask(everything, tier=0).outcome is Outcome.SHED
    nothing = router(route_weights({"a": 1_000_000}, tier=1))
    assert ask(nothing, tier=9).outcome is Outcome.ROUTED


def test_a_route_without_an_eligible_engine_is_refused_and_not_called_shed() -> None:
    made = router(route_weights({}, excluded=("a",), shed_ratio=1.0))
    decision = ask(made)
    assert (decision.outcome, decision.reason) == (Outcome.REFUSED, DecisionReason.NO_ELIGIBLE_ENGINE)
    assert ask(made, now_ms=PAST_TTL_MS).reason is DecisionReason.NO_ELIGIBLE_ENGINE


def test_a_route_the_snapshot_does_not_have_is_refused_not_guessed() -> None:
    made = router(route_weights({"a": 1_000_000}), route_weights({"a": 1_000_000}, cluster="B", model="elsewhere"))
    for model, request_class in (("other", "default"), (MODEL, "batch"), ("elsewhere", "default")):
        decision = made.route(model, request_class, now_ms=NOW_MS)
        assert (decision.reason, decision.retry_after_s) == (DecisionReason.UNKNOWN_ROUTE, 1.0)


def test_before_any_snapshot_a_request_is_refused_with_the_reason() -> None:
    made = router()
    assert (ask(made).reason, made.staleness(NOW_MS)) == (DecisionReason.NO_SNAPSHOT, Staleness.ABSENT)
    assert made.installation is None


def test_before_any_snapshot_the_configured_fallback_answers_flagged_and_never_after() -> None:
    made = router(fallback={MODEL: (FallbackEngine("f", "http://f", 3.0), FallbackEngine("g"))})
    decisions = [ask(made, key) for key in KEYS]
    assert {d.reason for d in decisions} == {DecisionReason.FALLBACK_CONFIGURED}
    assert {d.version for d in decisions} == {None}
    assert abs(Counter(d.engine_id for d in decisions)["f"] - 1_500) < 5 * 19.4
    assert ask(made, exclude=("f", "g")).reason is DecisionReason.NO_OTHER_ENGINE
    made.set_health("f", up=False)
    assert {ask(made, key).engine_id for key in KEYS} == {"g"}
    made.set_health("g", up=False)
    assert ask(made).reason is DecisionReason.ALL_DOWN
    made.apply(snapshot(route_weights({"a": 1_000_000})))
    assert ask(made).engine_id == "a"


def test_weights_grow_old_in_three_steps_and_age_alone_refuses_nothing() -> None:
    # Ticks every 500 ms: fresh for three of them, frozen to the time to live of 60 s, then the fallback.
    made = router(route_weights(shares(a=1, b=1), fallback={"c": 1_000_000}))
    before = engines(made)
    for age_ms, expected in ((0, Staleness.FRESH), (1_500, Staleness.FRESH), (1_501, Staleness.FROZEN)):
        assert made.staleness(TICK_MS + age_ms) is expected
        assert engines(made, now_ms=TICK_MS + age_ms) == before
    assert engines(made, now_ms=PAST_TTL_MS - 1) == before
    assert made.staleness(PAST_TTL_MS) is Staleness.FALLBACK
    decision = ask(made, now_ms=PAST_TTL_MS)
    assert (decision.engine_id, decision.reason) == ("c", DecisionReason.FALLBACK_STALE)


def test_a_commit_that_changes_no_weight_makes_the_weights_fresh_again() -> None:
    weights = route_weights({"a": 1_000_000}, fallback={"c": 1_000_000})
    made = router(weights)
    made.apply(snapshot(weights, version=2, tick_ms=PAST_TTL_MS))
    assert ask(made, now_ms=PAST_TTL_MS).engine_id == "a"


def test_past_its_time_to_live_without_a_fallback_the_last_weights_stand_flagged() -> None:
    made = router(route_weights(shares(a=1, b=1)))
    before = engines(made)
    assert engines(made, now_ms=PAST_TTL_MS) == before
    assert ask(made, now_ms=PAST_TTL_MS).reason is DecisionReason.STALE_WEIGHTS


def test_a_dead_engine_is_not_used_past_the_time_to_live_either() -> None:
    made = router(route_weights({"a": 1_000_000}, fallback={"c": 1_000_000}))
    made.set_health("c", up=False)
    assert ask(made, now_ms=PAST_TTL_MS).engine_id == "a"
    made.set_health("a", up=False)
    assert ask(made, now_ms=PAST_TTL_MS).reason is DecisionReason.ALL_DOWN


def test_nothing_is_shed_by_a_measure_past_its_time_to_live() -> None:
    made = router(route_weights({"a": 1_000_000}, shed_ratio=1.0))
    assert ask(made).outcome is Outcome.SHED
    assert ask(made, now_ms=PAST_TTL_MS).outcome is Outcome.ROUTED


@pytest.mark.parametrize("key", ["\ud800", "schlüssel", "🔥" * 1_000, b"\xff\x00", bytearray(b"x"), "\x00", "a|b"])
def test_any_text_or_bytes_is_a_session(key: object) -> None:
    made = router(route_weights(shares(a=1, b=1)))
    assert ask(made, key) == ask(made, key)
    assert ask(made, key).outcome is Outcome.ROUTED


@pytest.mark.parametrize(
    "arguments",
    [
        {"key": 5},
        {"key": object()},
        {"key": ["x"]},
        {"model": ["m"]},
        {"request_class": {}},
        {"exclude": None},
        {"exclude": b"a"},
        {"exclude": [["a"]]},
        {"now_ms": None},
        {"now_ms": float("nan")},
        {"now_ms": float("inf")},
        {"now_ms": True},
        {"now_ms": str(NOW_MS)},
        {"hint": []},
    ],
)
def test_arguments_of_other_types_are_an_invalid_request_never_an_exception(arguments: dict[str, Any]) -> None:
    made = router(route_weights(shares(a=1, b=1)))
    decision = made.route(**({"model": MODEL, "now_ms": NOW_MS} | arguments))
    assert (decision.outcome, decision.reason) == (Outcome.REFUSED, DecisionReason.INVALID_REQUEST)
    assert made.invalid == 1


@pytest.mark.parametrize("snapshots", [0, 1])
def test_an_engine_named_by_itself_is_excluded_and_not_its_letters(snapshots: int) -> None:
    routes = [route_weights(shares(a=1, bc=1))] * snapshots
    made = router(*routes, fallback={MODEL: (FallbackEngine("a"), FallbackEngine("bc"))})
    for key in KEYS[:50]:
        home = str(ask(made, key).engine_id)
        assert ask(made, key, exclude=home).engine_id not in (home, None)
        assert ask(made, key, exclude=home) == ask(made, key, exclude=[home])


def test_very_many_excluded_engines_are_those_of_them_that_the_route_has() -> None:
    made = router(route_weights(shares(a=2, b=1, c=1), fallback=shares(d=1)))
    others = [f"engine-{i}" for i in range(100_000)]
    for key in KEYS[:5]:
        assert ask(made, key, exclude=["a", *others]) == ask(made, key, exclude=["a"])
    assert ask(made, exclude=["a", "b", "c", *others]).engine_id == "d"
    assert ask(made, exclude=["a", "b", "c", "d", *others]).reason is DecisionReason.NO_OTHER_ENGINE


class Hostile:
    """Raises whatever it is asked."""

    __hash__ = None  # type: ignore[assignment] - the point

    def __eq__(self, _: object) -> bool:
        raise RuntimeError("as it happens")

    __bool__ = __len__ = __iter__ = __index__ = __eq__  # type: ignore[assignment] - the point


ODD: list[Any] = [None, True, 1.5, float("nan"), "", b"x", "\ud800", [], {}, (), object(), Hostile(), 2**70, -1]


@pytest.mark.parametrize("odd", ODD, ids=[type(odd).__name__ for odd in ODD])
def test_no_call_raises_whatever_it_is_given_and_the_router_goes_on(odd: Any) -> None:  # noqa: ANN401 - the point
    made = router(route_weights(shares(a=1, b=1)))
    usual = {"model": MODEL, "request_class": "default", "decision": ask(made), "now_ms": NOW_MS}
    calls: list[tuple[Any, dict[str, Any]]] = [
        (made.report, usual | {"retry": False, "outcome": AttemptOutcome.OK, "ttft_s": 0.1}),
        (made.begin, usual),
        (made.end, usual | {"outcome": AttemptOutcome.ERROR, "ttft_s": 0.1, "tbot_s": 0.1}),
        (made.may_retry, {"model": MODEL, "request_class": "default", "tried": ["a"]}),
        (made.set_health, {"engine_id": "z", "up": False}),
    ]
    for call, arguments in calls:
        for name in arguments:
            call(**(arguments | {name: odd}))
    assert made.invalid > 0
    assert ask(made).outcome is Outcome.ROUTED
    made.report(MODEL, "default", ask(made), now_ms=NOW_MS)
    assert sum(record.offered for record in made.demand.close(NOW_MS + 1_000)) > 0


def test_an_attempt_ended_with_odd_arguments_is_no_longer_under_way() -> None:
    made = router(route_weights({"a": 1_000_000}))
    for odd in ({"now_ms": None}, {"outcome": "FINE"}, {"ttft_s": "quick"}):
        decision = ask(made)
        made.begin(MODEL, "default", decision, now_ms=NOW_MS)
        made.end(**({"model": MODEL, "request_class": "default", "decision": decision} | ENDED | odd))
        assert made.in_flight(MODEL, "default", "a") == 0
    assert made.invalid == 3


def test_a_retry_is_asked_for_with_the_engine_by_itself_too() -> None:
    made = router(route_weights(shares(engine=1, b=1), retry_ratio=0.1))
    assert made.may_retry(MODEL, "default", "engine") is Retry.GRANTED
    assert made.may_retry(MODEL, "default", None) is Retry.INVALID_REQUEST  # type: ignore[arg-type] - the point
    assert not Retry.INVALID_REQUEST


def test_a_router_says_everything_that_is_wrong_with_its_settings_at_once() -> None:
    settings = DataPlaneSettings(source="a|b", table_size=16_380, fallback={"m": (FallbackEngine("not an id"),)})
    with pytest.raises(InvalidInputError) as raised:
        Router(settings, "")
    assert len(raised.value.problems) == 4
    assert "dataplane.table_size is 16380; a prime, such as 16381 or 65537" in raised.value.problems


def test_a_decision_cannot_be_changed() -> None:
    decision = ask(router(route_weights({"a": 1_000_000})))
    with pytest.raises(AttributeError):
        decision.engine_id = "b"  # type: ignore[misc] - the point of the test
    assert replace(decision, engine_id="b").engine_id == "b"
