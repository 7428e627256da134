"""What counts as an instant: whole or broken milliseconds, finite. Callers of a data plane may pass anything.

`True` is an integer to Python and NaN is below no time to live, so both would pass for an instant for ever.
"""

import math
import operator
from typing import Any


def is_instant(now_ms: Any) -> bool:  # noqa: ANN401 - judging any object is what it is for
    """Say whether `now_ms` may be reckoned with. Raises nothing that an object's own methods do not."""
    if isinstance(now_ms, bool):
        return False
    if isinstance(now_ms, int):
        return True
    if isinstance(now_ms, float):
        return math.isfinite(now_ms)
    try:
        operator.index(now_ms)
    except TypeError:
        return False
    return True


def checked_instant(now_ms: int) -> int:
    """Give it back.

    Raises:
        TypeError: it is none.
    """
    if type(now_ms) is not int and not is_instant(now_ms):
        raise TypeError(f"now_ms is {now_ms!r}; milliseconds since the epoch")
    return now_ms
