"""The sample of routed requests: whole sessions, never their keys, bounded, and off unless a share is set."""

import pytest
import xxhash

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, shares, snapshot
from headrace.dataplane import Router
from headrace.dataplane import routed_sample as module
from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.codec import encode
from headrace.schemas.routed import RoutedOutcome, RoutedRequest, check_routed


def router(share: float, source: str = "g") -> Router:
    made = Router(DataPlaneSettings(source=source, routed_share=share), CLUSTER)
    made.apply(snapshot(route_weights(shares(a=3, b=1))))
    return made


def ask(by: Router, key: str | None, *, retry: bool = False, model: str = MODEL) -> None:
    decision = by.route(MODEL, key=key, now_ms=NOW_MS)
    by.begin(MODEL, "default", decision, now_ms=NOW_MS)
    by.end(
        model,
        "default",
        decision,
        AttemptOutcome.OK,
        ttft_s=0.03,
        e2e_s=2.0,
        key=key,
        retry=retry,
        now_ms=NOW_MS + 2_000,
    )


def sampled(by: Router) -> list[RoutedRequest]:
    return [request for record in by.routed.close(NOW_MS + 3_000) for request in record.requests]


def test_a_request_is_told_with_what_was_decided_and_what_became_of_it() -> None:
    by = router(1.0)
    ask(by, "session-1")
    decision = by.route(MODEL, key="session-1", now_ms=NOW_MS)
    (record,) = by.routed.close(NOW_MS + 3_000)
    assert (record.key, record.source, record.share) == (b"A|m|default", "g", 1.0)
    (request,) = record.requests
    assert (request.sent_ms, request.ttft_s, request.e2e_s) == (NOW_MS, 0.03, 2.0)
    assert (request.engine_id, request.propensity) == (decision.engine_id, decision.propensity)
    assert (request.reason, request.retry, request.outcome) == ("SLOT", False, RoutedOutcome.OK)
    assert (request.epoch, request.version) == (1, 1)
    assert request.point == xxhash.xxh3_64_intdigest(b"session-1")
    assert check_routed(record) == ()
    assert b"session-1" not in encode(record)
    assert by.routed.close(NOW_MS + 4_000) == ()


def test_nothing_is_sampled_unless_a_share_is_set() -> None:
    by = router(0.0)
    for number in range(100):
        ask(by, f"s{number}")
    assert (sampled(by), by.routed.dropped, by.invalid) == ([], 0, 0)


def test_a_session_is_in_with_all_its_requests_at_every_data_plane_or_not_at_all() -> None:
    one, other = router(0.25, "g1"), router(0.25, "g2")
    for _ in range(3):
        for number in range(2_000):
            ask(one, f"s{number}")
    for number in range(2_000):
        ask(other, f"s{number}")
    counted: dict[int | None, int] = {}
    for request in sampled(one):
        counted[request.session] = counted.get(request.session, 0) + 1
    assert set(counted.values()) == {3}
    assert set(counted) == {request.session for request in sampled(other)}
    # 2,000 x 0.25 = 500, +- 19 (one standard deviation): fixed by the hash, far inside five of them.
    assert 400 < len(counted) < 600


def test_the_sample_leans_to_no_engine() -> None:
    by = router(0.25)
    for number in range(4_000):
        ask(by, f"s{number}")
    found = sampled(by)
    share = sum(request.engine_id == "a" for request in found) / len(found)
    # 0.75, +- 0.014 (one standard deviation) of about 1,000 sessions.
    assert abs(share - 0.75) < 0.07


def test_requests_of_no_session_are_sampled_one_by_one_and_have_no_hash() -> None:
    by = router(0.5)
    for _ in range(1_000):
        ask(by, None)
    found = sampled(by)
    assert {request.session for request in found} == {None}
    assert 400 < len(found) < 600


def test_what_does_not_fit_or_has_no_name_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 3)
    by = router(1.0)
    for number in range(5):
        ask(by, f"s{number}", model=MODEL if number else "no name")
    assert by.routed.dropped == 2
    assert len(sampled(by)) == 2
    assert by.routed.dropped == 3


def test_many_requests_of_a_route_come_in_several_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REQUESTS", 2)
    by = router(1.0)
    for number in range(5):
        ask(by, f"s{number}", retry=number == 0)
    records = by.routed.close(NOW_MS + 3_000)
    assert [len(record.requests) for record in records] == [2, 2, 1]
    assert [request.retry for record in records for request in record.requests] == [True, False, False, False, False]


def test_every_outcome_of_an_attempt_has_its_name_in_the_record() -> None:
    assert {outcome.value for outcome in AttemptOutcome} == {each.value for each in RoutedOutcome} - {"UNKNOWN"}
