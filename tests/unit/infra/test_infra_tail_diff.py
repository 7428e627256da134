"""What `headrace tail --diff` tells: moves with their cause, once they add up, routes that come and go."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from headrace.infra.cli import headrace
from headrace.infra.weights_tail.decision_line import DecisionLines, decision_line
from headrace.infra.weights_tail.diff import Diff, DiffLine, Moved, Part, StatusChange
from headrace.infra.weights_tail.diff_lines import diff_lines
from headrace.infra.weights_tail.fold import Shown
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import PPM, Protected, Snapshot, SnapshotStatus
from past_ticks import solved, three_regions
from solver_ticks import Shares, snapshot_of, stamp

A, B = "tokyo|m|default", "paris|n|default"
SLOW = Protected("e1", "outlier", 0.5, "3.0 times as slow as its peers")


def wanted(route: RouteKey) -> bool:
    return route.cluster != "nowhere"


def told(*shares: Shares, protections: tuple[Protected, ...] = (), every: bool = False) -> list[DiffLine | None]:
    """Fold snapshots, a second apart, the last of them with these protections."""
    diff, before, lines = Diff(wanted, every=every), None, list[DiffLine | None]()
    for i, share in enumerate(shares):
        snapshot, _ = snapshot_of(share, stamp(1, i + 1, 1_000 * i), before)
        if i == len(shares) - 1:
            snapshot = Snapshot(replace(snapshot.commit, protections=protections), snapshot.routes)
        lines.append(diff.offer(Shown(snapshot, before)))
        before = snapshot
    return lines


def test_a_move_says_who_lost_how_much_to_whom_and_the_protection_that_caused_it() -> None:
    first, second = told({A: {"e1": 1_000_000}}, {A: {"e1": 600_000, "e2": 400_000}}, protections=(SLOW,))
    assert first is not None
    assert (first.version, first.moves) == (1, ())
    assert second is not None
    assert second.moves == (
        Moved(
            A,
            pytest.approx(0.4),
            pytest.approx(4.0),
            (Part("e1", pytest.approx(0.4)),),
            (Part("e2", 0.4),),
            "e1: 3.0 times as slow as its peers (outlier)",
        ),
    )
    assert list(diff_lines(second)) == [
        "00:00:01.000 version 2, OPTIMAL: by hand",
        f"  {A}: 40 % (4.0 RPS) from e1 to e2; e1: 3.0 times as slow as its peers (outlier)",
    ]


def test_small_steps_are_told_once_they_add_up_and_all_of_them_where_asked() -> None:
    steps: list[Shares] = [{A: {"e1": 1_000_000 - 2_000 * i, "e2": 2_000 * i}} for i in range(4)]
    lines = told(*steps)
    assert [line is not None for line in lines] == [True, False, False, True]
    assert all(line is not None for line in told(*steps, every=True))


def test_routes_come_and_go_and_those_that_are_not_wanted_are_left_out() -> None:
    other = "nowhere|m|default"
    _, second, third = told(
        {A: {"e1": 1_000_000}},
        {A: {"e1": 1_000_000}, B: {"e2": 1_000_000}, other: {"e1": 1_000_000}},
        {B: {"e2": 1_000_000}},
    )
    assert second is not None
    assert second.added == (B,)
    assert third is not None
    assert third.removed == (A,)
    assert list(diff_lines(third))[1:] == [f"  {A}: gone"]


def test_with_reasons_each_engine_of_a_move_says_why_it_has_what_it_has() -> None:
    before, _ = snapshot_of({A: {"e1": 1_000_000}}, stamp(1, 1, 0))
    after, _ = snapshot_of({A: {"e1": 600_000, "e2": 400_000}}, stamp(1, 2, 1_000), before)
    after = Snapshot(replace(after.commit, protections=(SLOW,)), after.routes)
    diff = Diff(wanted)
    diff.offer(Shown(before, None))
    line = diff.offer(Shown(after, before))
    assert line is not None
    assert list(diff_lines(line, after))[2:] == [
        "    e1 60.00 %: by hand",
        "      outlier x0.50: 3.0 times as slow as its peers",
        "    e2 40.00 %: by hand",
        "    by hand",
    ]


def test_a_decision_is_one_line() -> None:
    line = decision_line(solved(three_regions()).tick.record)
    for words in ("version 7, OPTIMAL by DUAL, within 0.0", "250.0 RPS of 280.0, 0.0 shed", "columns in 1 part,"):
        assert words in line


def test_a_tick_that_only_held_says_since_when_and_why_and_no_noughts() -> None:
    decided = solved(three_regions()).tick.record
    held = replace(decided, status=SnapshotStatus.HELD, rung="HOLD", demand_rps=0.0, sentence="telemetry lost")
    made = [replace(r, version=i, tick_ms=1_000 * i) for i, r in enumerate((decided, held, held, decided, held))]
    lines = DecisionLines()
    told = [lines.offer(record) for record in made]
    assert told[1:3] == [
        "00:00:01.000 version 1, HELD since version 1, 00:00:01.000: telemetry lost",
        "00:00:02.000 version 2, HELD since version 1, 00:00:01.000: telemetry lost",
    ]
    assert "250.0 RPS of 280.0" in told[3]
    assert "since version 4" in told[4]
    # Where the tail begins while it is held, it may have been so before.
    assert DecisionLines().offer(made[2]) == (
        "00:00:02.000 version 2, HELD since 00:00:02.000 at the latest: telemetry lost"
    )


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (("tail", "decisions", "--cluster", "a"), "are of weights, not of decisions"),
        (("tail", "dead-letters", "--diff"), "are of weights, not of dead-letters"),
        (("tail", "--explain", "--json"), "each line of --diff has its cause"),
        (("tail", "wights"), "'wights' is not one of"),
    ],
)
def test_what_does_not_go_together_is_refused(typed: tuple[str, ...], says: str) -> None:
    result = CliRunner().invoke(headrace, typed)
    assert result.exit_code == 2
    assert says in result.output


def test_where_the_causes_are_bounded_the_largest_moves_have_theirs_and_the_others_none() -> None:
    diff = Diff(wanted, causes=1)
    first, _ = snapshot_of({A: {"e1": 1_000_000}, B: {"e1": 1_000_000}}, stamp(1, 1, 0), None)
    second, _ = snapshot_of({A: {"e1": 900_000, "e2": 100_000}, B: {"e1": 0, "e2": 1_000_000}}, stamp(1, 2, 500), first)
    diff.offer(Shown(first, None))
    line = diff.offer(Shown(second, first))
    assert line is not None
    assert [(move.route, bool(move.cause)) for move in line.moves] == [(B, True), (A, False)]


def test_a_version_moves_the_same_for_the_same_cause_wherever_the_tail_begins() -> None:
    made: list[Snapshot] = []
    for i, ppm in enumerate((900_000, 898_000, 896_000, 700_000, 600_000)):
        shares: Shares = {A: {"e1": ppm, "e2": PPM - ppm}}
        snapshot, _ = snapshot_of(shares, stamp(1, i + 1, 1_000 * i), made[-1] if made else None)
        acting = (SLOW,) if i >= 3 else ()
        made.append(Snapshot(replace(snapshot.commit, protections=acting), snapshot.routes))
    told_by_start: list[list[DiffLine | None]] = []
    for start in range(4):
        diff = Diff(wanted)
        for snapshot in made[:start]:
            diff.skip(snapshot)
        told_by_start.append([diff.offer(Shown(s, None)) for s in made[start:]][-2:])
    assert all(lines == told_by_start[0] for lines in told_by_start)
    fourth, fifth = told_by_start[0]
    assert fourth is not None
    assert fifth is not None
    assert {m.cause for m in (*fourth.moves, *fifth.moves)} == {"e1: 3.0 times as slow as its peers (outlier)"}


def test_a_change_of_status_is_told_with_its_reason_though_nothing_moves() -> None:
    snapshot, _ = snapshot_of({A: {"e1": 1_000_000}}, stamp(1, 1, 0), None)
    words = ("by hand", "telemetry lost", "telemetry lost", "by hand")
    held = (SnapshotStatus.OPTIMAL, SnapshotStatus.HELD, SnapshotStatus.HELD, SnapshotStatus.OPTIMAL)
    diff = Diff(wanted)
    lines = [
        diff.offer(Shown(Snapshot(replace(snapshot.commit, version=i, status=s, sentence=w), snapshot.routes), None))
        for i, (s, w) in enumerate(zip(held, words, strict=True))
    ]
    assert [line is not None for line in lines] == [True, True, False, True]
    assert lines[1] is not None
    assert lines[1].status_change == StatusChange("OPTIMAL", "HELD", "telemetry lost")
    assert lines[3] is not None
    assert list(diff_lines(lines[3]))[1:] == ["  status HELD -> OPTIMAL: it is over: telemetry lost"]
