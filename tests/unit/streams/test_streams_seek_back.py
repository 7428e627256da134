"""Where a partition is taken up after a recovery, by what is committed and what its states hold."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.streams.seek_back import MOST_BACK, of_another_log, start_offset


def test_states_of_one_writer_are_taken_up_where_the_group_is() -> None:
    assert start_offset(16, [5, 9, 12, 15]) == 16


def test_a_state_that_is_older_than_one_before_it_is_read_again_from_its_own_offset_on() -> None:
    assert start_offset(16, [5, 9, 12, 7, 15]) == 8
    assert start_offset(16, [5, 12, 7, 9, 15]) == 8, "the oldest of several"
    assert start_offset(16, [5, 9, 15, 12]) == 13


def test_signals_behind_all_states_are_read_again_where_they_were_acknowledged() -> None:
    assert start_offset(16, [5, 9]) == 10


def test_without_states_what_is_committed_stands() -> None:
    assert start_offset(16, []) == 16


def test_states_ahead_of_what_is_committed_do_not_skip_anything() -> None:
    assert start_offset(10, [5, 9, 12]) == 10


def test_the_way_back_is_bounded() -> None:
    assert start_offset(5 * MOST_BACK, [3, 5 * MOST_BACK, 7]) == 4 * MOST_BACK


@given(st.permutations(range(12)), st.integers(0, 12))
def test_no_hidden_state_is_passed_over(applied: list[int], committed: int) -> None:
    """A state that is older than one written before it is never at or behind the start."""
    start = start_offset(committed, applied)
    assert start <= committed
    for place, offset in enumerate(applied):
        if any(before > offset for before in applied[:place]):
            assert start <= offset + 1


def test_states_ahead_of_the_logs_end_are_of_another_log() -> None:
    assert of_another_log([3, 9], end=9)
    assert not of_another_log([3, 8], end=9)
    assert not of_another_log([], end=0)
