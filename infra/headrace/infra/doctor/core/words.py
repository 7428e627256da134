"""How findings put numbers and names: durations, some of many names, a command's arguments."""

import shlex
from collections.abc import Iterable

MOST_NAMED = 5


def duration(ms: float) -> str:
    """Give a time span in the unit that suits it: `350 ms`, `4.2 s`, `12 min`, `3.5 h`, `7 d`."""
    size = abs(ms)
    for above, unit_ms, unit in (
        (2 * 86_400_000, 86_400_000, "d"),
        (2 * 3_600_000, 3_600_000, "h"),
        (120_000, 60_000, "min"),
    ):
        if size >= above:
            return f"{_short(ms / unit_ms)} {unit}"
    return f"{_short(ms / 1000)} s" if size >= 1_000 else f"{ms:.0f} ms"


def some(names: Iterable[str]) -> str:
    """Give the first few names, and how many more there are."""
    every = sorted(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def count(number: int, noun: str) -> str:
    """Give a number of things: `1 engine`, `3 engines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def quoted(text: str) -> str:
    """Give a command's argument as a shell takes it."""
    return shlex.quote(text)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
