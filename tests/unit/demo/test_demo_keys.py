"""Keys from a terminal: kept from the beginning of the block on, and not shown."""

import os
import pty
import sys
import time

import pytest

from headrace.infra.demo.keys import Keys


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> int:
    ours, theirs = pty.openpty()
    monkeypatch.setattr(sys, "stdin", os.fdopen(theirs, "r"))
    return ours


def next_key(keys: Keys) -> str | None:
    """Give the next key; a terminal may take a moment to hand it over."""
    for _ in range(200):
        key = keys.pressed()
        if key is not None:
            return key
        time.sleep(0.01)
    return None


def test_what_is_typed_before_anybody_asks_is_kept_and_not_shown(terminal: int) -> None:
    with Keys() as keys:
        os.write(terminal, b"s2")
        assert [next_key(keys), next_key(keys)] == ["s", "2"]
        os.set_blocking(terminal, False)
        with pytest.raises(BlockingIOError):  # an echo would be here
            os.read(terminal, 10)


def test_who_takes_no_keys_leaves_the_terminal_alone(terminal: int) -> None:
    os.write(terminal, b"s\n")
    with Keys(enabled=False) as keys:
        assert keys.pressed() is None
    assert sys.stdin.readline() == "s\n"
