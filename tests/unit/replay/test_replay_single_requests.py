"""Recorded requests one by one: a bounded sample of whole sessions, warm caches by session, off-policy estimates."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import xxhash
from click.testing import CliRunner

from dataplane_inputs import CLUSTER, MODEL, route_weights, shares, snapshot
from headrace.dataplane import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.cli import headrace
from headrace.replay.core.history import Found, Span
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.routed import Sampled, SampleFold, sample_of
from headrace.replay.score.off_policy import OffPolicyEstimate, OffPolicyRefused
from headrace.replay.score.single_requests import SingleRequests
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.routed import RoutedOutcome, RoutedRequest, RoutedRequests, signed
from headrace.schemas.topics import ROUTED
from headrace.solver.core.problem import Problem
from replay_history import PERIOD_MS, START_MS, TABLE, recorded_run

NOTHING = Problem((), (), {}, {})
EVEN, TILTED, MOVED = shares(a=1, b=1), shares(a=3, b=1), shares(b=1)


def request(sent_ms: int, key: str | None, engine: str, **more: Any) -> RoutedRequest:  # noqa: ANN401 - any field
    session = None if key is None else signed(xxhash.xxh3_64_intdigest(key.encode()))
    cost_s = {"a": 0.1, "b": 0.2}.get(engine, 0.3)
    made = RoutedRequest(sent_ms, session, engine, "SLOT", False, 1, 1, 0.5, RoutedOutcome.OK, None, cost_s)  # noqa: FBT003 - a row
    return replace(made, **more)


def sampled(requests: Iterable[RoutedRequest]) -> tuple[Sampled, ...]:
    return tuple(Sampled(f"{CLUSTER}|{MODEL}|default".encode(), MODEL, each) for each in requests)


def recorded(turns: int = 2, sessions: int = 400) -> list[RoutedRequest]:
    """Sessions by even weights, each with a turn a second; a answers in 100 ms, b in 200 ms."""
    router = Router(DataPlaneSettings(), CLUSTER)
    router.apply(snapshot(route_weights(EVEN), tick_ms=0))
    found: list[RoutedRequest] = []
    for turn in range(turns):
        for number in range(sessions):
            decision = router.route(MODEL, key=f"s{number}", now_ms=1)
            sent_ms = 1_000 * turn + number
            found.append(request(sent_ms, f"s{number}", decision.engine_id or "", propensity=decision.propensity))
    return found


def single(requests: Iterable[RoutedRequest], *weights: Mapping[str, int], shed_ratio: float = 0.0) -> SingleRequests:
    """Follow a variant that decides once a second."""
    found = SingleRequests(sampled(requests), DataPlaneSettings())
    for second, ppm in enumerate(weights):
        at_ms = 1_000 * second
        decided = snapshot(route_weights(ppm, version=second + 1, shed_ratio=shed_ratio), tick_ms=at_ms)
        found.add(PlayedTick(at_ms, NOTHING, decided, None))
    found.finish()
    return found


def test_weights_that_stand_keep_every_session_and_weights_that_move_lose_those_that_they_move() -> None:
    stays, tilts, moves = (
        single(recorded(), *each).sessions for each in ((EVEN, EVEN), (EVEN, TILTED), (shares(a=1), MOVED))
    )
    assert stays is not None
    assert tilts is not None
    assert moves is not None
    assert (stays.returning, stays.lost_percent) == (400, 0.0)
    assert moves.lost_percent == 100.0
    # A quarter of the sessions moves, +- 2.2 % (one standard deviation).
    assert tilts.lost_percent == pytest.approx(25.0, abs=10.0)


def test_the_tables_are_the_data_planes_own() -> None:
    before, after = Router(DataPlaneSettings(), CLUSTER), Router(DataPlaneSettings(), CLUSTER)
    before.apply(snapshot(route_weights(EVEN), tick_ms=0))
    after.apply(snapshot(route_weights(TILTED), tick_ms=0))
    keys = [f"s{number}" for number in range(400)]
    stay = sum(
        before.route(MODEL, key=key, now_ms=1).engine_id == after.route(MODEL, key=key, now_ms=1).engine_id
        for key in keys
    )
    found = single(recorded(), EVEN, TILTED).sessions
    assert found is not None
    assert found.hits == stay


def test_sessions_that_are_shed_tell_nothing_and_few_are_no_number() -> None:
    some = single(recorded(), EVEN, EVEN, shed_ratio=0.5).sessions
    assert some is not None
    assert 130 < some.returning < 270
    assert single(recorded(sessions=99), EVEN, EVEN).sessions is None


def test_requests_outside_of_any_snapshot_tell_nothing() -> None:
    early = [replace(each, sent_ms=each.sent_ms - 5_000) for each in recorded()]
    late = [replace(each, sent_ms=each.sent_ms + 10**9) for each in recorded()]
    for requests in (early, late):
        found = single(requests, EVEN, EVEN)
        assert found.sessions is None
        assert isinstance(found.off_policy, OffPolicyRefused)


def test_the_mean_of_another_policy_is_estimated_from_what_single_requests_cost() -> None:
    found = single(recorded(), TILTED, TILTED).off_policy
    assert isinstance(found, OffPolicyEstimate)
    # 3/4 x 100 ms + 1/4 x 200 ms; self-normalised by the sample's own halves, 400 sessions.
    assert found.dr_ms == pytest.approx(125.0, abs=1.0)
    assert found.snips_ms == pytest.approx(125.0, abs=8.0)


def test_more_turns_of_the_same_sessions_are_no_more_draws() -> None:
    few, many = (single(recorded(turns), EVEN, EVEN, EVEN, EVEN).off_policy for turns in (1, 4))
    assert isinstance(few, OffPolicyEstimate)
    assert isinstance(many, OffPolicyEstimate)
    assert (few.choices, many.choices) == (400, 1_600)
    assert (few.effective, many.effective) == pytest.approx((400.0, 400.0))
    assert many.error_ms == pytest.approx(few.error_ms)


@pytest.mark.parametrize(
    "more",
    [
        {"reason": "HINT"},
        {"reason": "RELEASED"},
        {"retry": True},
        {"outcome": RoutedOutcome.ERROR},
        {"e2e_s": None},
        {"propensity": None},
    ],
)
def test_what_was_not_drawn_or_not_answered_at_once_is_no_choice(more: dict[str, Any]) -> None:
    found = single([replace(each, **more) for each in recorded()], EVEN, EVEN).off_policy
    assert isinstance(found, OffPolicyRefused)
    assert found.choices == 0


# --- the sample -----------------------------------------------------------------------------------------------------


def record(offset: int, requests: Iterable[RoutedRequest], partition: int = 0) -> RawRecord:
    made = RoutedRequests(CLUSTER, MODEL, "default", "g", 10_000, 1.0, tuple(requests))
    return RawRecord("routed", partition, offset, 10_000, made.key, encode(made))


def test_a_sample_that_is_too_large_keeps_whole_sessions_in_whatever_order_it_is_read() -> None:
    requests = recorded(turns=4)
    records = [record(at, requests[at : at + 16]) for at in range(0, len(requests), 16)]
    found: list[tuple[Sampled, ...]] = []
    for order in (records, records[::-1]):
        fold = SampleFold(Span(0, 10_000), at_most=500)
        for each in order:
            fold.offer(each)
        found.append(fold.requests())
    assert found[0] == found[1]
    counted: dict[int | None, int] = {}
    for each in found[0]:
        counted[each.request.session] = counted.get(each.request.session, 0) + 1
    assert 0 < len(found[0]) <= 500
    assert set(counted.values()) == {4}


def test_requests_come_by_their_sending_only_of_the_range_and_what_is_not_sound_is_told() -> None:
    unsound = replace(request(1, "s", "a"), propensity=7.0)
    records = [
        record(0, [request(900, "s", "a"), request(300, None, "b")]),
        record(1, [request(100, "s", "a"), request(1_000, "t", "b")], partition=1),
        record(2, [unsound]),
        RawRecord("routed", 0, 3, 10_000, b"k", b"nothing"),
    ]
    fold = sample_of(records, Span(0, 1_000))
    assert [each.request.sent_ms for each in fold.requests()] == [100, 300, 900]
    (finding,) = fold.findings()
    assert (finding.found, finding.topic, finding.count) == (Found.UNREADABLE, "routed", 2)


# --- through the command --------------------------------------------------------------------------------------------


def test_the_command_shows_sessions_and_estimates_of_every_variant(tmp_path: Path) -> None:
    run = recorded_run()
    requests = [
        request(START_MS + turn * PERIOD_MS + number, f"s{number}", f"engine-{'abc'[number % 3]}", propensity=1 / 3)
        for turn in range(12)
        for number in range(300)
    ]
    made = RoutedRequests("A", "m", "default", "g", run.now_ms, 1.0, tuple(requests))
    run.append((TABLE[ROUTED].name, 0), made.key, encode(made))
    folder, out = run.write(tmp_path / "h"), tmp_path / "out"
    typed = ("replay", "run", "--dir", folder, "--policy", "lp", "--policy", "nearest", "--out", out, "--processes", 1)
    result = CliRunner().invoke(headrace, [str(each) for each in typed])
    assert result.exit_code == 0, result.output + repr(result.exception)
    written = orjson.loads((out / "comparison.json").read_bytes())
    recorded_one, same, nearest = written["variants"]
    assert same["sessions"] == recorded_one["sessions"]
    assert recorded_one["off_policy"].items() <= same["off_policy"].items()
    assert same["off_policy"]["difference_ms"] == 0.0
    assert not same["off_policy"]["contradicts"]
    assert nearest["sessions"]["returning"] == 11 * 300
    assert nearest["sessions"]["hits"] >= same["sessions"]["hits"]
    assert {each["off_policy"]["outcome"] for each in written["variants"]} <= {"ESTIMATED", "REFUSED"}
    assert not any("History has no sessions" in each for each in written["cannot_tell"])
    assert recorded_one["off_policy"]["choices"] == 12 * 300
