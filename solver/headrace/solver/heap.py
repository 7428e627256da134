"""Python's collector of cycles, told what ticks are like: a hundred thousand objects each, and hardly a cycle.

A tick of a large fleet holds a million objects that stay. Each time their number has grown by a quarter the collector
looks at all of them, and frees nothing: a tick is made of values, which go when nobody holds them. Looking took a
quarter of a tick.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager

COLLECT_AFTER = 200_000
"""Objects made and not freed before the collector looks at the youngest; Python's own is 700."""


@contextmanager
def seldom_collected() -> Generator[None]:
    """Look for cycles seldom while this lasts; of the whole process, so it is for who owns one."""
    usual = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
