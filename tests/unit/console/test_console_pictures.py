"""What the desk answers: numbers of a version, the log, weights as rows and over time, engines as columns."""

import pytest

from console_inputs import PERIOD_MS, ROOMY, TABLE, Town, feed, override_record, raw, settled_desk
from headrace.infra.console.core.decision import MAX_MOVES
from headrace.infra.console.core.flows import OTHERS
from headrace.infra.console.core.status import Link
from headrace.infra.console.core.timeline import Bounds
from headrace.infra.console.core.totals import MAX_POINTS
from headrace.infra.console.core.weight_history import MAX_LINES
from headrace.infra.console.desk import Desk
from headrace.infra.console.past import NotHeldError
from headrace.schemas.ids import RouteKey
from headrace.schemas.overrides import Override, OverrideKind
from headrace.schemas.topics import STATE_ENGINE
from headrace.schemas.weights import PPM, SnapshotStatus
from solver_inputs import engine_state

NOW_MS = 1_700_000_000_000
TOWN = {"clusters": 4, "engines": 8, "fanout": 3}


@pytest.fixture
def town() -> Town:
    return Town(**TOWN)


@pytest.fixture
def desk(town: Town) -> Desk:
    return settled_desk(town, ticks=6, at_ms=NOW_MS)


def test_the_newest_version_is_shown_where_none_is_asked_for(desk: Desk) -> None:
    assert desk.overview(None) == desk.overview(6)
    assert desk.overview(None).tick_ms == NOW_MS


def test_a_past_version_is_shown_as_it_was(town: Town) -> None:
    desk = settled_desk(town, ticks=1, at_ms=NOW_MS)
    first = desk.weight_rows(None, None, None, 100)
    feed(desk, town.tick(NOW_MS + PERIOD_MS, changed=4))
    assert desk.weight_rows(None, None, None, 100).rows != first.rows
    assert desk.weight_rows(1, None, None, 100) == first


def test_a_version_that_is_not_held_is_refused_with_those_that_are(desk: Desk) -> None:
    with pytest.raises(NotHeldError, match="version is 99; held are 1 to 6"):
        desk.overview(99)


def test_before_the_first_snapshot_there_is_none(town: Town) -> None:
    with pytest.raises(NotHeldError, match="there is no snapshot yet"):
        settled_desk(town, ticks=0).overview(None)


def test_every_engine_is_counted_once(desk: Desk) -> None:
    found = desk.overview(None)
    assert sum(each.engines for each in found.standings) == 8
    assert {each.reason: each.engines for each in found.reasons}["STALE"] == 1


def test_the_decision_record_knows_capacity_and_what_moved(desk: Desk) -> None:
    found = desk.overview(None).totals
    assert (found.capacity_rps, found.moved_rps, found.took_ms) == (800.0, 3.0, 2.9)
    assert found.demand_rps == pytest.approx(sum(c.demand_rps for c in desk.overview(None).clusters))


def test_a_version_whose_decision_is_not_held_has_its_weights_numbers(town: Town) -> None:
    desk = Desk(TABLE, ROOMY)
    feed(desk, (r for r in town.tick(NOW_MS) if not r.topic.endswith("decisions")))
    found = desk.overview(None).totals
    assert found.demand_rps == sum(40.0 + 20.0 * (c % 4) for c in range(4))
    assert found.capacity_rps is None
    assert found.moved_rps is None


def test_an_override_stands_in_the_overview_with_its_author_until_it_ends(desk: Desk) -> None:
    made = Override(OverrideKind.DRAIN, "h100-00-0", "ann", "driver", NOW_MS - 1_000, NOW_MS + 1_000)
    desk.offer(override_record(made))
    (told,) = desk.overview(None).overrides
    assert (told.kind, told.target, told.author, told.holds) == ("DRAIN", "h100-00-0", "ann", True)
    (before,) = desk.overview(1).overrides
    assert not before.holds


def test_engines_own_words_stand_only_in_the_newest_version(desk: Desk) -> None:
    newest, past = desk.engine_table(None), desk.engine_table(3)
    assert newest.live
    assert dict(zip(newest.engine_id, newest.replicas_ready, strict=True))["h100-00-3"] == 3
    assert not past.live
    assert set(past.replicas_ready) == {None}


def test_the_newest_word_of_an_engine_is_shown(desk: Desk, town: Town) -> None:
    for ready in (3, 1):
        desk.offer(raw(STATE_ENGINE, engine_state(town.names[0], NOW_MS, replicas_ready=ready)))
    card = desk.engine_card(town.names[0], None)
    assert card.own is not None
    assert card.own.replicas_ready == 1
    assert card.nominal_rps == 25.0


def test_an_engine_that_nobody_knows_is_refused_by_name(desk: Desk) -> None:
    with pytest.raises(NotHeldError, match="'nobody'"):
        desk.engine_card("nobody", None)


def test_rows_are_the_largest_and_those_left_out_are_counted(desk: Desk) -> None:
    every, some = desk.weight_rows(None, None, None, 1_000), desk.weight_rows(None, None, None, 5)
    assert every.left_out == 0
    assert some.rows == every.rows[:5]
    assert some.left_out == len(every.rows) - 5
    assert [row.rps for row in every.rows] == sorted((row.rps for row in every.rows), reverse=True)


def test_rows_of_one_cluster_add_up_to_its_route(desk: Desk) -> None:
    rows = desk.weight_rows(None, "cluster-002", None, 100).rows
    assert {row.cluster for row in rows} == {"cluster-002"}
    assert sum(row.weight_ppm for row in rows) == PPM


def test_a_routes_history_has_a_point_for_each_time_it_was_written_and_shares_that_add_up(town: Town) -> None:
    desk = settled_desk(town, ticks=1, at_ms=NOW_MS)
    for i in range(1, 4):
        feed(desk, town.tick(NOW_MS + i * PERIOD_MS, changed=4))
    found = desk.weight_history(RouteKey("cluster-000", "model-0", "default"))
    assert found.versions == (1, 2, 3, 4)
    for i in range(4):
        assert sum(line.shares[i] for line in found.lines) == pytest.approx(1.0, abs=1e-5)


def test_a_route_of_many_engines_has_its_largest_as_lines_and_the_others_as_one() -> None:
    desk = settled_desk(Town(clusters=1, engines=20, fanout=12), ticks=3, at_ms=NOW_MS)
    found = desk.weight_history(RouteKey("cluster-000", "model-0", "default"))
    assert len(found.lines) == MAX_LINES + 1
    assert found.lines[-1].engine_id == OTHERS
    for i in range(len(found.versions)):
        assert sum(line.shares[i] for line in found.lines) == pytest.approx(1.0, abs=1e-5)


def test_a_route_that_nobody_has_is_refused(desk: Desk) -> None:
    with pytest.raises(NotHeldError, match="no version held has it"):
        desk.weight_history(RouteKey("nowhere", "m", "default"))


def test_the_log_tells_what_moved_newest_first_and_leaves_quiet_ticks_out(town: Town) -> None:
    desk = settled_desk(town, ticks=1, at_ms=NOW_MS)
    feed(desk, town.tick(NOW_MS + 500, changed=0))
    feed(desk, town.tick(NOW_MS + 1_000, changed=2))
    log = desk.decision_log(None, 10, quiet=False)
    assert [line.version for line in log.lines] == [3]
    assert log.quiet == 2
    assert len(log.lines[0].moves) == 2
    assert all(move.cause for move in log.lines[0].moves)
    assert [line.version for line in desk.decision_log(None, 10, quiet=True).lines] == [3, 2, 1]
    assert [line.version for line in desk.decision_log(2, 10, quiet=True).lines] == [2, 1]


def test_only_the_largest_moves_of_a_tick_are_told_and_the_others_counted() -> None:
    town = Town(clusters=9, engines=30, fanout=3)
    desk = settled_desk(town, ticks=1, at_ms=NOW_MS)
    feed(desk, town.tick(NOW_MS + 500, changed=9))
    (line,) = desk.decision_log(None, 10, quiet=False).lines
    assert len(line.moves) == MAX_MOVES
    assert line.more_moves == 9 - MAX_MOVES


def test_a_long_past_is_thinned_and_no_spike_is_lost(town: Town) -> None:
    desk = settled_desk(town, ticks=2 * MAX_POINTS + 10, at_ms=NOW_MS)
    found = desk.totals_series()
    assert found.every == 3
    assert len(found.versions) <= MAX_POINTS
    assert found.versions[-1] == 2 * MAX_POINTS + 10
    assert max(m for m in found.moved_rps if m is not None) == 3.0


def test_nothing_is_held_beyond_the_bound(town: Town) -> None:
    desk = settled_desk(town, ticks=20, bounds=Bounds(5, 10_000_000), at_ms=NOW_MS)
    status = desk.status(NOW_MS)
    assert (status.versions_held, status.oldest_version, status.version) == (5, 16, 20)
    assert len(desk.totals_series().versions) == 5
    assert len(desk.decision_log(None, 100, quiet=True).lines) == 5


def test_topics_made_anew_begin_a_new_past(desk: Desk) -> None:
    desk.begin_anew()
    feed(desk, Town(**TOWN).tick(NOW_MS + 60_000))
    assert desk.status(NOW_MS).version == 1


@pytest.mark.parametrize(
    ("link", "age_ms", "fields", "word"),
    [
        (Link(None, "", caught_up=True), 100, {}, "LIVE"),
        (Link(None, "", caught_up=True), 3_600, {}, "STALE"),
        (Link(None, "", caught_up=True), 61_000, {}, "EXPIRED"),
        (Link(None, "", caught_up=True), 100, {"status": SnapshotStatus.HELD, "sentence": "telemetry lost"}, "HELD"),
        (Link(NOW_MS, "refused", caught_up=True), 100, {}, "BROKER_LOST"),
        (Link(None, "", caught_up=False), 90_000, {}, "READING"),
    ],
)
def test_the_state_is_a_word_with_a_sentence(
    town: Town, link: Link, age_ms: int, fields: dict[str, object], word: str
) -> None:
    desk = settled_desk(town, ticks=0)
    feed(desk, town.tick(NOW_MS, **fields))
    desk.link(link)
    status = desk.status(NOW_MS + age_ms)
    assert status.liveness == word
    assert status.sentence


def test_without_a_snapshot_the_state_says_what_to_look_at(town: Town) -> None:
    status = settled_desk(town, ticks=0).status(NOW_MS)
    assert (status.liveness, status.version) == ("NO_SNAPSHOT", None)
    assert "headrace solver" in status.sentence
