"""Overrides: who says what, why and until when; what would break is refused with numbers; they end when they expire."""

from dataclasses import replace

import pytest

from headrace.infra.overrides.heard import silence_of
from headrace.infra.overrides.records import sound
from headrace.infra.overrides.rules import Stands, shed
from headrace.infra.past_tick.again import differing
from headrace.infra.what_if.answer import WhatIf, what_if
from headrace.infra.what_if.edits import Asked, parse_edits
from headrace.schemas.codec import decode, encode
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind, is_override_key
from headrace.schemas.weights import Reason, SnapshotStatus
from headrace.solver.core.decide import Decided, decide
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.state_view import StateFold
from headrace.solver.core.problem import Exclusion
from headrace.solver.core.tick import TickStamp
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from past_ticks import solved, three_regions
from solver_inputs import NOW_MS, TOPICS, engine_state, profile, raw, spec

HOUR_MS = 3_600_000
SAID = Override(OverrideKind.DRAIN, "e1", "ann", "driver upgrade", NOW_MS, NOW_MS + HOUR_MS)


def drained(*engines: str, demand: tuple[str, ...] = ()) -> WhatIf:
    again = solved(three_regions())
    edits = parse_edits(Asked(drain=engines, demand=demand), again.problem)
    return what_if(again, edits, SolverSettings(), Glop(), proved=True)


def exclusion_at(now_ms: int) -> Exclusion | None:
    fold = StateFold(TOPICS)
    for record in (spec("e1"), profile(), engine_state("e1", now_ms)):
        fold.offer(raw(record))
    sent = raw(spec("e1"))
    fold.offer(type(sent)(sent.topic, 0, 9, 0, SAID.key, encode(SAID)))
    (engine,) = assemble(fold.view(), SolverSettings(), now_ms).engines
    return engine.exclusion


def test_an_override_comes_back_as_it_went_under_a_key_that_no_engine_can_have() -> None:
    assert decode(Override, encode(SAID), ()) == SAID
    assert SAID.key == b"!drain|e1"
    assert is_override_key(SAID.key)
    assert not is_override_key(b"e1")
    assert not is_override_key(None)


def test_a_drained_engine_is_out_from_when_it_is_said_until_it_expires_with_who_and_why() -> None:
    assert exclusion_at(NOW_MS - 1) is None
    out = exclusion_at(NOW_MS)
    assert out is not None
    assert out.reason is Reason.DRAINED
    assert out.sentence.startswith("drained by ann until 1970-01-01 01:16:40")
    assert out.sentence.endswith("UTC: driver upgrade")
    assert exclusion_at(NOW_MS + HOUR_MS - 1) == out
    assert exclusion_at(NOW_MS + HOUR_MS) is None


def test_what_would_be_shed_for_it_refuses_it_with_the_numbers() -> None:
    said = shed.broken(Stands((), None, drained("engine-b")), SAID)
    assert said is not None
    assert said.startswith("if engine-b is drained, 70.0 of 250.0 RPS would be shed, 0.0 now (")
    assert "loses" in said


def test_what_leaves_room_is_not_refused_nor_is_what_was_shed_before() -> None:
    for demand in (("cluster-b=20", "cluster-a=50"), ("cluster-b*0",)):
        assert shed.broken(Stands((), None, drained("engine-b", demand=demand)), SAID) is None


def test_everything_that_is_wrong_with_it_is_told_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        sound(Override(OverrideKind.DRAIN, "e 1", "", "two\nlines", NOW_MS, NOW_MS + 1_000))
    assert caught.value.problems == (
        "target is 'e 1'; allowed are 1 to 200 of A-Z a-z 0-9 . _ : / @ -",
        "author is ''; 1 to 100 printable characters",
        "reason is 'two\\nlines'; 1 to 300 printable characters",
        "--for is 1 s; 1 minute to 30 days",
    )
    assert sound(SAID) == SAID


def test_where_no_solver_is_there_to_obey_it_that_is_said() -> None:
    commit = solved(three_regions()).tick.snapshot.commit
    assert silence_of(commit, commit.tick_ms + 10 * commit.period_ms) is None
    late = silence_of(commit, commit.tick_ms + 300_000)
    assert late is not None
    assert late.startswith(f"no solver seems to run, the newest snapshot (version {commit.version}) is 300 s old")
    assert (silence_of(None, 0) or "").startswith("no solver seems to run, there is no snapshot")


def test_while_frozen_the_weights_are_held_and_every_snapshot_says_by_whom_and_why() -> None:
    problem, previous = three_regions(), solved(three_regions()).tick.snapshot
    busier = tuple(replace(row, demand_rps=1.2 * row.demand_rps) for row in problem.rows)
    frozen = replace(problem, rows=busier, frozen="frozen by ann until noon: hands off")
    stamp = TickStamp(1, 8, previous.commit.tick_ms + 500)
    decided = decide(frozen, previous, SolverSettings(), Glop(), stamp, 0)
    assert isinstance(decided, Decided)
    snapshot = decided.tick.snapshot
    assert (snapshot.commit.status, snapshot.commit.sentence) == (SnapshotStatus.HELD, frozen.frozen)
    assert differing(previous, snapshot) == ()
    moved = decide(replace(frozen, frozen=""), previous, SolverSettings(), Glop(), stamp, 0)
    assert isinstance(moved, Decided)
    assert differing(previous, moved.tick.snapshot) != ()


def test_a_freeze_holds_from_when_it_is_said_until_it_expires() -> None:
    fold, said = StateFold(TOPICS), replace(SAID, kind=OverrideKind.FREEZE, target=WHOLE_FLEET)
    sent = raw(spec("e1"))
    fold.offer(sent)
    fold.offer(type(sent)(sent.topic, 0, 9, 0, said.key, encode(said)))
    assert assemble(fold.view(), SolverSettings(), NOW_MS - 1).frozen == ""
    assert assemble(fold.view(), SolverSettings(), NOW_MS).frozen == f"frozen {said.words}"
    assert assemble(fold.view(), SolverSettings(), NOW_MS + HOUR_MS).frozen == ""


PINNED = replace(SAID, kind=OverrideKind.PIN, cluster="c1", least_ppm=200_000, most_ppm=200_000)


def test_a_pin_comes_back_as_it_went_under_a_key_of_engine_and_cluster() -> None:
    assert decode(Override, encode(PINNED), ()) == PINNED
    assert PINNED.key == b"!pin|e1|c1"
    assert sound(PINNED) == PINNED
    with pytest.raises(InvalidInputError) as caught:
        sound(replace(PINNED, cluster="c 1", least_ppm=300_000))
    assert caught.value.problems == (
        "least_ppm is 30 % and most_ppm 20 %; 0 % <= least <= most <= 100 %",
        "cluster is 'c 1'; allowed are 1 to 200 of A-Z a-z 0-9 . _ : / @ -",
    )


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [(20, 20, "exactly 20 %"), (5, 100, "at least 5 %"), (0, 30, "at most 30 %"), (5, 30, "5 to 30 %")],
)
def test_a_pin_says_its_bounds_in_words(least: int, most: int, words: str) -> None:
    assert replace(PINNED, least_ppm=10_000 * least, most_ppm=10_000 * most).share_words == words


def test_a_pin_holds_from_when_it_is_said_until_it_expires_or_is_taken_back() -> None:
    fold = StateFold(TOPICS)
    sent = raw(spec("e1"))
    fold.offer(sent)
    fold.offer(type(sent)(sent.topic, 0, 9, 0, PINNED.key, encode(PINNED)))
    view = fold.view()
    (pin,) = assemble(view, SolverSettings(), NOW_MS).pins
    assert (pin.cluster, pin.engine_id, pin.least, pin.most) == ("c1", "e1", 0.2, 0.2)
    assert pin.sentence == f"pinned to exactly 20 % {PINNED.words}"
    assert assemble(view, SolverSettings(), NOW_MS - 1).pins == ()
    assert assemble(view, SolverSettings(), NOW_MS + HOUR_MS).pins == ()
    fold.offer(type(sent)(sent.topic, 0, 10, 0, PINNED.key, None))
    assert assemble(fold.view(), SolverSettings(), NOW_MS).pins == ()
