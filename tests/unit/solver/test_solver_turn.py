"""One thread has the turn, and who comes back with an answer is the next."""

from collections.abc import Callable
from threading import Thread
from time import sleep

import pytest

from headrace.solver.turn import Turn


def waiter(turn: Turn, name: str, had: list[str], *, answered: bool) -> Thread:
    """Start a thread that takes the turn, notes it, and gives it again; it waits when this returns."""

    def run() -> None:
        turn.take(answered=answered)
        had.append(name)
        turn.give()

    before, thread = turn.waiting, Thread(target=run, daemon=True)
    thread.start()
    while turn.waiting == before:
        sleep(0.001)
    return thread


def with_three_waiting(turn: Turn, had: list[str]) -> list[Thread]:
    turn.take()
    first, second = (waiter(turn, name, had, answered=False) for name in ("first", "second"))
    return [first, second, waiter(turn, "answered", had, answered=True)]


@pytest.mark.parametrize("leaves", [Turn.give, Turn.pause])
def test_the_answered_come_first_and_the_others_in_their_order(leaves: Callable[[Turn], None]) -> None:
    turn, had = Turn(), list[str]()
    threads = with_three_waiting(turn, had)
    leaves(turn)
    if leaves is Turn.pause:
        # It waits behind those that came before.
        assert had == ["answered", "first", "second"]
        turn.give()
    for thread in threads:
        thread.join(10)
    assert had == ["answered", "first", "second"]
    assert turn.waiting == 0


def test_a_pause_is_for_those_that_have_an_answer() -> None:
    turn, had = Turn(), list[str]()
    turn.take()
    thread = waiter(turn, "other", had, answered=False)
    turn.pause()
    assert had == []
    turn.give()
    thread.join(10)
    assert had == ["other"]
    # Nobody has it: it is taken without a wait.
    turn.take()
    turn.pause()
    turn.give()
