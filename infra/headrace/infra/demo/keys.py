"""Single keys from a terminal, without Enter and without waiting; the terminal is as it was at the end of the block."""

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Self


class Keys:
    """A context manager over standard input. Ctrl-C still interrupts.

    Keys are neither shown nor lost from the beginning of the block on, however late they are asked for.

    Args:
        enabled: whether to take keys at all.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._before: list[int | list[bytes | int]] | None = None

    def __enter__(self) -> Self:
        if self._enabled and sys.stdin.isatty():
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin, termios.TCSADRAIN)  # what was typed before is kept
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def pressed(self) -> str | None:
        """Give the next key that was pressed, or None where none was."""
        if self._before is None or not select.select([sys.stdin], [], [], 0.0)[0]:
            return None
        # Not sys.stdin.read: what Python has buffered, select does not see.
        return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace")
