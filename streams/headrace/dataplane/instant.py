"""What counts as an instant: whole or broken milliseconds, finite; and as a name. Callers may pass anything.

`True` is an integer to Python and NaN is below no time to live, so both would pass for an instant for ever.
"""

import math
import operator
from typing import Any, Final

from headrace.schemas.errors import InvalidInputError

MAX_MS: Final = 1 << 53
"""Further from the epoch than this, either way, is no instant: a float no longer tells milliseconds apart there."""


def is_instant(now_ms: Any) -> bool:  # noqa: ANN401 - judging any object is what it is for
    """Say whether `now_ms` may be reckoned with. Raises nothing that an object's own methods do not."""
    if isinstance(now_ms, bool):
        return False
    if isinstance(now_ms, float):
        return math.isfinite(now_ms) and -MAX_MS <= now_ms <= MAX_MS
    try:
        whole = operator.index(now_ms)
    except TypeError:
        return False
    return -MAX_MS <= whole <= MAX_MS


def checked_instant(now_ms: int) -> int:
    """Give it back.

    Raises:
        TypeError: it is none.
    """
    if type(now_ms) is int and -MAX_MS <= now_ms <= MAX_MS:
        return now_ms
    if not is_instant(now_ms):
        raise TypeError(f"now_ms is {now_ms!r:.80}; milliseconds since the epoch")
    return now_ms


def asked_instant(now_ms: int) -> int:
    """Give it back: for questions that are no request's, where a wrong call is to be told of.

    Raises:
        InvalidInputError: it is none.
    """
    if not is_instant(now_ms):
        raise InvalidInputError("router", (f"now_ms is {now_ms!r:.80}; milliseconds since the epoch",))
    return now_ms


def is_name(value: object) -> bool:
    """Say whether it could name a model, a class or an engine: a text."""
    return isinstance(value, str)
