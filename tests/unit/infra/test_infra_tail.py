"""What `headrace tail` shows: from where, which snapshots, and what of them."""

import io
import re

import orjson
import pytest
from rich.console import Console

from headrace.infra.weights_tail.fold import Notice, Shown, TailFold
from headrace.infra.weights_tail.json_line import json_line
from headrace.infra.weights_tail.moves import Changed, Moves, Still
from headrace.infra.weights_tail.since import Since, parse_since
from headrace.infra.weights_tail.table import table
from headrace.infra.weights_tail.unmatched import unmatched
from headrace.infra.weights_tail.waiting import Waiting
from headrace.schemas.codec import encode
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import RouteKey
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import WEIGHTS
from headrace.schemas.weights import Snapshot, SnapshotStatus
from headrace.solver.core.tick import Tick
from solver_inputs import NOW_MS, TOPICS
from solver_ticks import Shares, stamp, tick_of

A, B = "tokyo|m|default", "paris|n|default"
FIRST: Shares = {A: {"e1": 1_000_000}, B: {"e2": 1_000_000}}
SECOND: Shares = {A: {"e1": 750_000, "e2": 250_000}, B: {"e2": 1_000_000}}


def everything(_: RouteKey) -> bool:
    return True


def written(tick: Tick) -> list[RawRecord]:
    routes = {route.key: route for route in tick.snapshot.routes}
    pairs = [(key, encode(routes[key])) for key in sorted(tick.changed)] + [(key, None) for key in tick.removed]
    pairs.append((tick.snapshot.commit.key, encode(tick.snapshot.commit)))
    return [RawRecord(TOPICS[WEIGHTS].name, 0, i, NOW_MS, key, value) for i, (key, value) in enumerate(pairs)]


def ticks(*shares: Shares) -> list[Tick]:
    """One tick a second in one epoch, from version 1 at NOW_MS."""
    made: list[Tick] = []
    previous: Snapshot | None = None
    for i, share in enumerate(shares):
        made.append(tick_of(share, stamp(1, i + 1, NOW_MS + 1_000 * i), previous))
        previous = made[-1].snapshot
    return made


def shown(fold: TailFold, *made: Tick) -> list[Shown | Notice]:
    outcomes = [fold.offer(record) for tick in made for record in written(tick)]
    return [outcome for outcome in outcomes if outcome is not None]


def text(event: Shown, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    told = Moves(everything, every=True).offer(event)
    assert told is not None
    console.print(table(told, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("given", "since"),
    [
        ("812", Since("812", version=812)),
        ("5m", Since("5m", at_ms=1_000_000 - 300_000)),
        ("1.5s", Since("1.5s", at_ms=998_500)),
        ("1970-01-01T00:10:00", Since("1970-01-01T00:10:00", at_ms=600_000)),
        ("1970-01-01T00:10:00+00:01", Since("1970-01-01T00:10:00+00:01", at_ms=540_000)),
    ],
)
def test_a_tail_begins_at_a_version_an_age_or_an_instant(given: str, since: Since) -> None:
    assert parse_since(given, 1_000_000) == since


def test_anything_else_is_refused_with_what_would_do() -> None:
    with pytest.raises(InvalidInputError, match="--since is 'yesterday'; expected a version"):
        parse_since("yesterday", 0)


def test_without_since_history_is_silent_and_the_newest_snapshot_comes_first_and_whole() -> None:
    fold = TailFold(None)
    one, two, three = ticks(FIRST, SECOND, FIRST)
    assert shown(fold, one, two) == []
    first = fold.reach_end()
    assert isinstance(first, Shown)
    assert (first.snapshot, first.before) == (two.snapshot, None)
    assert len(first.written()) == 2
    assert shown(fold, three) == [Shown(three.snapshot, two.snapshot)]
    assert fold.reach_end() is None


def test_before_any_snapshot_it_says_so_and_shows_the_first_that_comes() -> None:
    fold = TailFold(None)
    assert fold.reach_end() == Notice("there is no snapshot yet")
    (one,) = ticks(FIRST)
    assert shown(fold, one) == [Shown(one.snapshot, None)]


def test_since_a_version_everything_from_it_on_is_shown() -> None:
    fold = TailFold(parse_since("2", 0))
    one, two, three = ticks(FIRST, SECOND, FIRST)
    assert shown(fold, one, two, three) == [Shown(two.snapshot, None), Shown(three.snapshot, two.snapshot)]
    assert fold.reach_end() is None


def test_since_an_instant_that_lies_ahead_it_names_the_newest_and_waits() -> None:
    fold = TailFold(parse_since("1970-01-01T01:00:00Z", 0))
    assert shown(fold, *ticks(FIRST)) == []
    assert fold.reach_end() == Notice("no snapshot since 1970-01-01T01:00:00Z yet; the newest is version 1")


def test_a_set_that_cannot_be_proved_is_a_notice_only_once_history_is_over() -> None:
    one, two, three = ticks(FIRST, SECOND, FIRST)
    torn = written(two)[-1:]
    fold = TailFold(None)
    shown(fold, one)
    assert [fold.offer(record) for record in torn] == [None]
    live = TailFold(None)
    shown(live, one)
    live.reach_end()
    (notice,) = [live.offer(record) for record in torn]
    assert isinstance(notice, Notice)
    assert notice.sentence.startswith("a snapshot was refused, as every reader would: commit.digest is ")
    assert three.snapshot.commit.version == 3


def test_folding_the_lines_gives_the_snapshot() -> None:
    fold = TailFold(parse_since("0", 0))
    lines = [
        orjson.loads(json_line(event, everything))
        for event in shown(fold, *ticks(FIRST, SECOND, {A: SECOND[A]}))
        if isinstance(event, Shown)
    ]
    assert [[route["cluster"] for route in line["routes"]] for line in lines] == [["paris", "tokyo"], ["tokyo"], []]
    assert [line["removed"] for line in lines] == [[], [], [B]]
    assert [line["commit"]["version"] for line in lines] == [1, 2, 3]
    assert [t["weight_ppm"] for t in lines[1]["routes"][0]["targets"]] == [750_000, 250_000]


def test_a_filter_leaves_out_routes_and_never_lines() -> None:
    one, two = ticks(FIRST, {A: FIRST[A]})
    first, second = shown(TailFold(parse_since("0", 0)), one, two)
    assert isinstance(first, Shown)
    assert isinstance(second, Shown)
    line = orjson.loads(json_line(first, lambda route: route.model == "n"))
    assert [route["cluster"] for route in line["routes"]] == ["paris"]
    assert orjson.loads(json_line(second, lambda route: route.model == "m"))["removed"] == []


def test_the_table_shows_what_moved_with_the_weight_before_and_why() -> None:
    one, two = ticks(FIRST, SECOND)
    lines = text(Shown(two.snapshot, one.snapshot)).splitlines()
    assert "version 2, epoch 1, OPTIMAL, 00:16:41.000 UTC" in lines[0]
    assert not any("paris" in line for line in lines)
    (row,) = [line for line in lines if "tokyo|m|default" in line]
    assert [cell.strip() for cell in re.split(r"\s{2,}", row.strip())][1:5] == ["e1", "75.00", "100.00", "10.0"]


def test_a_narrow_terminal_is_spared_the_predictions_so_that_the_reason_has_room() -> None:
    (one,) = ticks(FIRST)
    assert "TTFT ms" in text(Shown(one.snapshot, None))
    narrow = text(Shown(one.snapshot, None), width=80)
    assert "TTFT ms" not in narrow
    assert "by hand" in narrow


def test_two_snapshots_without_a_difference_are_one_line() -> None:
    one, two = ticks(FIRST, FIRST)
    assert text(Shown(two.snapshot, one.snapshot)) == "version 2: nothing moved\n"


def test_a_hold_is_said_even_where_nothing_moved() -> None:
    (one,) = ticks(FIRST)
    held = tick_of(FIRST, stamp(1, 2, NOW_MS + 1_000), one.snapshot, SnapshotStatus.HELD)
    assert text(Shown(held.snapshot, one.snapshot)) == "version 2: nothing moved; HELD: by hand\n"


def test_a_route_that_is_gone_and_one_that_is_refused_are_told() -> None:
    one, two = ticks(FIRST, {A: {}})
    lines = text(Shown(two.snapshot, one.snapshot))
    assert "100.0 % refused" in lines
    assert "no engine" in lines
    assert any(B in line and "gone" in line for line in lines.splitlines())


def test_square_brackets_from_kafka_are_no_mark_up() -> None:
    (one,) = ticks({A: {"e[red]1": 1_000_000}})
    assert "e[red]1" in text(Shown(one.snapshot, None))


def test_many_engines_are_cut_and_counted() -> None:
    share = {f"e{i:03}": 40_000 for i in range(25)}
    (one,) = ticks({A: share})
    lines = text(Shown(one.snapshot, None))
    assert "and 5 more" in lines
    assert "20.00" in lines


def told_of(moves: Moves, *made: Tick) -> list[str | None]:
    """`moved`, `still` or None for each snapshot, as a tail that began with the first would tell it."""
    fold = TailFold(parse_since("0", 0))
    words = {Changed: "moved", Still: "still"}
    told = [moves.offer(event) for event in shown(fold, *made) if isinstance(event, Shown)]
    return [None if each is None else words[type(each)] for each in told]


def shifted(ppm: int) -> Shares:
    return {A: {"e1": 1_000_000 - ppm, "e2": ppm}, B: {"e2": 1_000_000}}


def test_less_than_half_a_percent_is_no_move_until_it_adds_up() -> None:
    made = ticks(*(shifted(ppm) for ppm in (100_000, 102_000, 104_000, 105_000, 106_000, 110_000)))
    # Against what was last told: 0.2, 0.4 and 0.5 %, then 0.1 and 0.5 %.
    assert told_of(Moves(everything), *made) == ["moved", None, None, "moved", None, "moved"]
    assert told_of(Moves(everything, every=True), *made) == ["moved"] * 6


def test_the_weight_before_is_the_one_that_was_last_told() -> None:
    moves, fold = Moves(everything), TailFold(parse_since("0", 0))
    made = ticks(*(shifted(ppm) for ppm in (100_000, 104_000, 106_000)))
    last = [moves.offer(event) for event in shown(fold, *made) if isinstance(event, Shown)][-1]
    assert last is not None
    console = Console(file=io.StringIO(), width=160, color_system=None)
    console.print(table(last))
    assert isinstance(console.file, io.StringIO)
    assert re.search(r"e2 +10\.60 +10\.00", console.file.getvalue())


def test_without_a_move_a_sign_of_life_comes_every_thirty_seconds_and_at_the_end() -> None:
    moves = Moves(everything)
    assert told_of(moves, *ticks(*[FIRST] * 65)) == ["moved", *[None] * 29, "still", *[None] * 29, "still", *[None] * 4]
    assert moves.last() is not None
    assert told_of(Moves(everything, every=True), *ticks(FIRST, FIRST)) == ["moved", "still"]


def test_a_change_of_status_is_told_though_nothing_moved() -> None:
    (one,) = ticks(FIRST)
    held = [tick_of(FIRST, stamp(1, n, NOW_MS + 1_000 * n), one.snapshot, SnapshotStatus.HELD) for n in (2, 3)]
    assert told_of(Moves(everything), one, *held) == ["moved", "still", None]


def test_while_it_waits_it_says_for_what_once_and_then_every_thirty_seconds() -> None:
    waiting = Waiting("topic w at k:1", 5_000, 0)
    assert waiting.say(4_999, found=False) is None
    assert waiting.say(5_000, found=False) == (
        "waiting for topic w at k:1, which is not there: `headrace topics apply` creates it"
    )
    waiting.complain("k:1: Connection refused")
    assert waiting.say(34_999, found=False) is None
    assert waiting.say(35_000, found=False) == "waiting for topic w at k:1: k:1: Connection refused"
    waiting.arrive(40_000)
    assert waiting.say(44_999, found=True) is None
    assert waiting.say(45_000, found=True) == (
        "waiting for the next snapshot on topic w at k:1: does `headrace solver` run?"
    )


def test_what_no_route_is_of_is_told_with_what_there_is() -> None:
    snapshot = ticks(FIRST)[0].snapshot
    assert unmatched(snapshot, (), ()) is None
    assert unmatched(snapshot, ("tokyo", "paris"), ("m",)) is None
    assert unmatched(snapshot, ("nowhere", "tokyo"), ()) == "no route is of cluster 'nowhere'; there are paris, tokyo"
    assert unmatched(snapshot, ("x",), ("y",)) == (
        "no route is of cluster 'x'; there are paris, tokyo; no route is of model 'y'; there are m, n"
    )
    assert unmatched(snapshot, ("tokyo",), ("n",)) == ("no route is of both; there are paris with n, tokyo with m")
