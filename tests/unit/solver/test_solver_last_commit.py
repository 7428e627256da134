"""Whose commit stands last: a younger writer's is told from the writer's own and from records by another hand."""

import pytest

from headrace.schemas.check_snapshot import MAX_NUMBER
from headrace.schemas.codec import encode
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.raw import RawRecord
from headrace.solver.core.answer.last_commit import LastCommit, Sent
from solver_ticks import stamp, tick_of

Numbers = tuple[int, int]


def commit(epoch: int, version: int) -> RawRecord:
    return record(encode(tick_of({"A|m|default": {"e1": 1_000_000}}, stamp(epoch, version)).snapshot.commit))


def record(value: bytes | None, key: bytes = COMMIT_KEY) -> RawRecord:
    return RawRecord("weights", 0, 0, 0, key, value)


def last_of(*records: RawRecord) -> LastCommit:
    last = LastCommit()
    for each in records:
        last.offer(each)
    return last


@pytest.mark.parametrize(
    ("commits", "why"),
    [
        ([], "nobody has written"),
        ([(5, 9)], "the last that was answered"),
        ([(5, 9), (5, 10)], "its own, whose answer was lost"),
        ([(4, 11)], "an older writer's"),
        ([(7, 99), (5, 9)], "its own, after a record by another hand"),
    ],
)
def test_nobody_has_gone_beyond_a_writer_whose_own_commit_or_an_older_one_stands_last(
    commits: list[Numbers], why: str
) -> None:
    assert last_of(*(commit(*each) for each in commits)).beyond(Sent(5, 10)) is None, why


@pytest.mark.parametrize(
    ("commits", "why"),
    [
        ([(5, 9), (6, 10)], "a younger writer's"),
        ([(5, 9), (5, 11)], "one's that began within the same second"),
        ([(6, 1)], "one's whose topic was made anew: its versions begin again"),
    ],
)
def test_a_younger_writer_has_gone_beyond_it(commits: list[Numbers], why: str) -> None:
    said = last_of(*(commit(*each) for each in commits)).beyond(Sent(5, 10))
    assert said is not None, why
    epoch, version = commits[-1]
    assert said == (
        f"epoch {epoch}, version {version} is the last in the topic; this solver came to epoch 5, version 10"
    )


OUT_OF_BOUNDS = commit(MAX_NUMBER + 1, 11)


@pytest.mark.parametrize("junk", [record(b"junk"), record(None), record(b"junk", b"A|m|default"), OUT_OF_BOUNDS])
def test_what_is_no_sound_commit_counts_for_nothing(junk: RawRecord) -> None:
    assert last_of(commit(5, 10), junk).beyond(Sent(5, 10)) is None
    assert last_of(commit(6, 11), junk).beyond(Sent(5, 10)) is not None
