"""What a router does about engines that it suspects: from the outcomes told to it to the next request's engine."""

from collections import Counter
from collections.abc import Iterator

import pytest

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, TICK_MS, TTL_MS, route_weights, shares, snapshot
from headrace.dataplane import Decision, DecisionReason, Outcome, Router
from headrace.dataplane.guards.contract import AttemptOutcome, Cause
from headrace.dataplane.settings import DataPlaneSettings, GuardSettings
from headrace.schemas.errors import InvalidInputError

KEYS = [f"session-{i}" for i in range(1_000)]
FIVE = shares(a=1, b=1, c=1, d=1, e=1)
ERROR, REJECTED, OK = AttemptOutcome.ERROR, AttemptOutcome.REJECTED, AttemptOutcome.OK


def router(ppm: dict[str, int] = FIVE, **guards: float) -> Router:
    made = Router(DataPlaneSettings(guards=GuardSettings(**guards)), CLUSTER)
    made.apply(snapshot(route_weights(ppm)))
    return made


def ask(made: Router, key: str = "session-1", now_ms: int = NOW_MS, **more: object) -> Decision:
    return made.route(MODEL, key=key, now_ms=now_ms, **more)


def engines(made: Router, now_ms: int = NOW_MS) -> dict[str, str | None]:
    return {key: ask(made, key, now_ms).engine_id for key in KEYS}


def tell(made: Router, engine: str, outcome: AttemptOutcome, times: int = 6, **more: object) -> None:
    decision = Decision(Outcome.ROUTED, engine, None, DecisionReason.SLOT)
    for _ in range(times):
        made.end(MODEL, "default", decision, outcome, **({"now_ms": NOW_MS} | more))


def test_an_engine_that_fails_is_left_out_and_only_its_sessions_move_and_come_back() -> None:
    made = router()
    before = engines(made)
    tell(made, "a", ERROR)
    (ejection,) = made.ejections(NOW_MS)
    assert (ejection.engine_id, ejection.cause, ejection.times) == ("a", Cause.ERRORS, 1)
    during = engines(made)
    assert "a" not in during.values()
    assert {k: e for k, e in during.items() if before[k] != "a"} == {k: e for k, e in before.items() if e != "a"}
    assert engines(made, ejection.until_ms - 1) == during
    assert engines(made, ejection.until_ms) == before
    assert made.ejections(ejection.until_ms) == ()


def test_answers_to_what_was_sent_before_an_ejection_do_not_lengthen_it() -> None:
    made = router()
    tell(made, "a", ERROR)
    tell(made, "a", ERROR, times=100)
    assert [e.times for e in made.ejections(NOW_MS)] == [1]


def test_one_request_of_a_clock_that_stepped_back_does_not_end_an_ejection() -> None:
    made = router()
    tell(made, "a", ERROR)
    during = engines(made)
    engines(made, NOW_MS - 3_600_000)
    assert engines(made) == during


def test_the_second_ejection_lasts_longer() -> None:
    made = router(ejection_jitter=0.0)
    tell(made, "a", ERROR)
    back_ms = NOW_MS + 30_000
    tell(made, "a", ERROR, now_ms=back_ms)
    assert [e.until_ms for e in made.ejections(back_ms)] == [back_ms + 60_000]


def test_report_teaches_too() -> None:
    made = router()
    decision = next(d for key in KEYS if (d := ask(made, key)).engine_id == "a")
    for _ in range(6):
        made.report(MODEL, "default", decision, outcome=ERROR, now_ms=NOW_MS)
    assert [e.engine_id for e in made.ejections(NOW_MS)] == ["a"]


def test_an_engine_slower_to_its_first_token_than_the_snapshot_expects_is_left_out() -> None:
    # The snapshot of these tests expects 0.050 s and 0.001 s of network.
    made = router(ttft_requests=10)
    tell(made, "a", OK, times=10, ttft_s=0.1)
    assert made.ejections(NOW_MS) == ()
    tell(made, "a", OK, times=10, ttft_s=0.051 * 4)
    assert [(e.engine_id, e.cause) for e in made.ejections(NOW_MS)] == [("a", Cause.SLOW_FIRST_TOKEN)]


def test_at_most_three_tenths_of_the_weight_are_left_out_the_first_ones() -> None:
    made = router()
    for i, engine in enumerate("bac"):
        tell(made, engine, ERROR, now_ms=NOW_MS + i)
    given = set(engines(made, NOW_MS + 10).values())
    assert given == {"a", "c", "d", "e"}


def test_more_is_left_out_while_the_solver_is_not_heard_from() -> None:
    made = router(ejected_max=0.2, ejected_max_frozen=0.4)
    tell(made, "a", ERROR)
    tell(made, "b", ERROR)
    assert set(engines(made).values()) == {"b", "c", "d", "e"}
    # Fresh for three periods of 500 ms after the tick.
    assert set(engines(made, TICK_MS + 1_500).values()) == {"b", "c", "d", "e"}
    assert set(engines(made, TICK_MS + 1_501).values()) == {"c", "d", "e"}


def test_in_panic_suspicions_are_ignored_and_death_is_not() -> None:
    made = router()
    tell(made, "a", ERROR)
    made.set_health("b", up=False)
    assert set(engines(made).values()) == {"c", "d", "e"}
    made.set_health("c", up=False)
    assert set(engines(made).values()) == {"a", "d", "e"}


def test_a_request_that_only_suspects_could_take_goes_to_one_in_panic() -> None:
    made = router()
    tell(made, "a", ERROR)
    decision = ask(made, exclude=("b", "c", "d", "e"))
    assert (decision.engine_id, decision.reason, decision.propensity) == ("a", DecisionReason.PANIC, 1.0)


def test_a_hint_at_a_suspect_is_not_followed() -> None:
    made = router()
    assert ask(made, hint="a").engine_id == "a"
    tell(made, "a", ERROR)
    assert ask(made, hint="a").engine_id != "a"


def test_a_suspect_of_one_route_is_left_out_of_every_route() -> None:
    made = Router(DataPlaneSettings(), CLUSTER)
    made.apply(snapshot(route_weights(FIVE), route_weights(FIVE, model="other")))
    tell(made, "a", ERROR)
    assert "a" not in {made.route("other", key=key, now_ms=NOW_MS).engine_id for key in KEYS}


def test_an_engine_that_left_the_fleet_is_forgotten() -> None:
    made = router()
    tell(made, "a", ERROR)
    made.apply(snapshot(route_weights(shares(b=1, c=1), version=2)))
    made.apply(snapshot(route_weights(FIVE, version=3)))
    assert made.ejections(NOW_MS) == ()
    assert "a" in engines(made).values()


def test_an_engine_that_rejects_is_asked_by_fewer_sessions_and_the_same_ones() -> None:
    made = router()
    before = engines(made)
    tell(made, "a", REJECTED, times=90)
    # (90 - 2 x 0) / (90 + 10)
    assert made.throttled(NOW_MS) == {"a": pytest.approx(0.9)}
    during = engines(made)
    kept = sum(engine == "a" for engine in during.values()) / sum(engine == "a" for engine in before.values())
    # About 200 sessions: standard deviation sqrt(0.1 x 0.9 / 200) = 0.021.
    assert abs(kept - 0.1) < 5 * 0.021
    assert all(during[key] == engine for key, engine in before.items() if engine != "a")
    assert made.ejections(NOW_MS) == ()


def test_what_is_under_way_counts_as_accepted_so_late_answers_throttle_nobody() -> None:
    # 20 requests are sent; 8 are rejected at once and the others are still at work: 20 - 2 x 12 is below zero.
    made = router()
    crowd(made, "a", 20)
    tell(made, "a", REJECTED, times=8)
    assert made.throttled(NOW_MS) == {}
    # (20 - 2 x 9) / (20 + 10)
    tell(made, "a", REJECTED, times=3)
    assert made.throttled(NOW_MS) == {"a": pytest.approx(2 / 30)}
    tell(made, "a", OK, times=9)
    assert made.throttled(NOW_MS) == {"a": pytest.approx(2 / 30)}


def test_asking_changes_no_throttle_and_reporting_what_was_throttled_everywhere_does() -> None:
    made = router(shares(a=1, b=1))
    for engine in "ab":
        tell(made, engine, REJECTED, times=30)
    before = made.throttled(NOW_MS)
    throttled = [d for key in KEYS if (d := ask(made, key)).reason is DecisionReason.THROTTLED]
    assert made.throttled(NOW_MS) == before == {"a": pytest.approx(30 / 40), "b": pytest.approx(30 / 40)}
    for decision in throttled[:60]:
        made.report(MODEL, "default", decision, now_ms=NOW_MS)
    assert made.throttled(NOW_MS) == {"a": pytest.approx(90 / 100), "b": pytest.approx(90 / 100)}


def test_rejections_are_forgotten_in_time() -> None:
    made = router()
    before = engines(made)
    tell(made, "a", REJECTED, times=90)
    # Ten time constants: 90 e^-10 = 0.004 rejections are left.
    later_ms = NOW_MS + 59_000
    made.apply(snapshot(route_weights(FIVE), version=2, tick_ms=NOW_MS + 600_000))
    assert sum(e != before[k] for k, e in engines(made, NOW_MS + 600_000).items()) <= 1
    assert made.throttled(later_ms)["a"] < made.throttled(NOW_MS)["a"]


def test_where_every_engine_rejects_the_throttled_share_is_shed_and_says_when_to_come_back() -> None:
    made = router()
    for engine in FIVE:
        tell(made, engine, REJECTED, times=90)
    decisions = [ask(made, key) for key in KEYS]
    shed = [d for d in decisions if d.outcome is Outcome.SHED]
    # One hash decides for all engines: nine tenths of the sessions, standard deviation sqrt(0.09 / 1000) = 0.0095.
    assert abs(len(shed) / len(KEYS) - 0.9) < 5 * 0.0095
    assert {(d.reason, d.retry_after_s) for d in shed} == {(DecisionReason.THROTTLED, 1.0)}
    assert {d.reason for d in decisions if d not in shed} == {DecisionReason.SLOT}


def crowd(made: Router, engine: str, requests: int) -> None:
    for _ in range(requests):
        made.begin(MODEL, "default", Decision(Outcome.ROUTED, engine, None, DecisionReason.SLOT), now_ms=NOW_MS)


def test_a_crowded_engine_lets_new_sessions_go_and_they_stay_where_they_went() -> None:
    made = router()
    before = engines(made)
    crowd(made, "a", 5)
    during = {key: ask(made, key, established=False) for key in KEYS}
    assert {d.engine_id for d in during.values()} == {"b", "c", "d", "e"}
    assert {d.reason for k, d in during.items() if before[k] == "a"} == {DecisionReason.RELEASED}
    for _ in range(5):
        made.end(MODEL, "default", Decision(Outcome.ROUTED, "a", None, DecisionReason.SLOT), OK, now_ms=NOW_MS)
    assert made.in_flight(MODEL, "default", "a") == 0
    assert engines(made) == {key: d.engine_id for key, d in during.items()}
    moved = next(key for key in KEYS if before[key] == "a")
    assert (ask(made, moved).reason, ask(made, moved).propensity) == (DecisionReason.RELEASED, 1.0)


def test_a_session_that_has_to_move_goes_to_a_crowded_engine_rather_than_nowhere() -> None:
    made = router(shares(a=1, b=1))
    crowd(made, "a", 5)
    decision = next(d for key in KEYS if (d := ask(made, key, exclude=("b",))).reason is DecisionReason.SCAN)
    assert decision.engine_id == "a"


def test_nobody_is_moved_to_a_suspect_to_make_room_and_its_idleness_is_no_room() -> None:
    # b fails at once and so looks idle; to eject what weighs so much is a panic here.
    made = router(shares(a=2, b=2, c=1), panic_above=0.3)
    tell(made, "b", ERROR)
    before = engines(made)
    assert "b" in before.values()
    crowd(made, "a", 6)
    during = {key: ask(made, key, established=False) for key in KEYS}
    assert {d.engine_id for d in during.values() if d.reason is DecisionReason.RELEASED} == {"c"}
    assert all(during[key].engine_id == "b" for key in KEYS if before[key] == "b")
    # 6 of 9 are the share of a where b counts for nothing, and 4 where it counts.
    crowd(made, "c", 3)
    assert ask(made, next(k for k in KEYS if before[k] == "a"), established=None).outcome is Outcome.ROUTED
    assert made._live[MODEL, "default"].in_flight.crowded_for_new == frozenset()


def test_a_released_session_whose_new_engine_dies_goes_home() -> None:
    made = router()
    moved = next(key for key, engine in engines(made).items() if engine == "a")
    crowd(made, "a", 5)
    went_to = ask(made, moved, established=False).engine_id
    for _ in range(5):
        made.end(MODEL, "default", Decision(Outcome.ROUTED, "a", None, DecisionReason.SLOT), OK, now_ms=NOW_MS)
    made.set_health(str(went_to), up=False)
    assert ask(made, moved).engine_id == "a"


def test_requests_without_a_session_are_not_remembered() -> None:
    made = router()
    crowd(made, "a", 5)
    reasons = Counter(made.route(MODEL, established=False, now_ms=NOW_MS).reason for _ in range(100))
    assert reasons[DecisionReason.RELEASED] > 0
    assert reasons.keys() <= {DecisionReason.RELEASED, DecisionReason.SLOT}
    assert len(made._live[MODEL, "default"].released) == 0


def test_a_crowded_engine_keeps_its_sessions_where_there_is_no_other() -> None:
    made = router(shares(a=1, b=1))
    crowd(made, "a", 5)
    made.set_health("b", up=False)
    decision = ask(made, established=False)
    assert (decision.engine_id, decision.reason) == ("a", DecisionReason.SLOT)


def test_in_flight_of_a_route_that_is_not_known_is_nothing() -> None:
    made = router()
    unknown = Decision(Outcome.ROUTED, "a", None, DecisionReason.SLOT)
    made.begin("other", "default", unknown, now_ms=NOW_MS)
    made.end("other", "default", unknown, OK, now_ms=NOW_MS)
    assert made.in_flight("other", "default", "a") == 0


def test_a_refusal_begins_nothing_and_teaches_nothing() -> None:
    made = router()
    refused = made.route("other", now_ms=NOW_MS)
    made.begin(MODEL, "default", refused, now_ms=NOW_MS)
    made.end(MODEL, "default", refused, ERROR, now_ms=NOW_MS)
    assert made.ejections(NOW_MS) == ()


def propensities(made: Router, **more: object) -> Iterator[tuple[str | None, float, float]]:
    """Give (engine, said, seen) for each engine, over sessions that it has not been asked about before."""
    decisions = [ask(made, f"other-{i}", **more) for i in range(5_000)]
    counts = Counter(d.engine_id for d in decisions)
    said = {d.engine_id: d.propensity for d in decisions}
    for engine, count in counts.items():
        propensity = said[engine]
        assert propensity is not None
        yield engine, propensity, count / len(decisions)


@pytest.mark.parametrize("case", ["all", "down", "ejected", "crowded", "retry", "past the time to live"])
def test_the_propensity_is_the_share_of_sessions_that_get_the_engine(case: str) -> None:
    made = router({"a": 250_000, "b": 350_000, "c": 400_000})
    more: dict[str, object] = {}
    if case == "down":
        made.set_health("a", up=False)
    elif case == "ejected":
        tell(made, "a", ERROR)
    elif case == "crowded":
        crowd(made, "a", 5)
        more = {"established": False}
    elif case == "retry":
        more = {"exclude": ["a"]}
    elif case == "past the time to live":
        made.set_health("a", up=False)
        more = {"now_ms": TICK_MS + TTL_MS}
    seen = list(propensities(made, **more))
    assert len(seen) == (3 if case == "all" else 2)
    assert sum(said for _, said, _ in seen) == pytest.approx(1.0)
    for _, said, share in seen:
        # Standard deviation of a share of 5,000 is at most sqrt(1/4 / 5000) = 0.0071.
        assert abs(said - share) < 5 * 0.0071


def test_there_is_no_propensity_without_an_engine_and_certainty_for_a_hint() -> None:
    made = router()
    assert ask(made, hint="b").propensity == 1.0
    assert made.route("other", now_ms=NOW_MS).propensity is None


def test_guard_settings_in_the_wrong_order_are_told_together() -> None:
    guards = GuardSettings(error_tolerated=0.5, error_bad=0.1, ttft_factor=4.0, ttft_clip=3.0)
    with pytest.raises(InvalidInputError) as raised:
        Router(DataPlaneSettings(guards=guards), CLUSTER)
    assert raised.value.problems == (
        "dataplane.guards.error_tolerated is 0.5; it must be below error_bad, which is 0.1",
        "dataplane.guards.ttft_factor is 4; it must be below ttft_clip, which is 3",
    )
