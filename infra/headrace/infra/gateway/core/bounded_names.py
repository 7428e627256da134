"""Names from outside, bounded, for metric labels: the first `limit` names keep theirs, every further one is `other`.

A client can invent model names without end; each would be a time series for ever.
"""

from typing import Final

OTHER: Final = "other"


class BoundedNames:
    """The names seen so far."""

    __slots__ = ("_limit", "_seen")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: set[str] = set()

    def name(self, wanted: str) -> str:
        """Give the name itself, or OTHER where there is no room for one more."""
        if wanted in self._seen:
            return wanted
        if len(self._seen) >= self._limit:
            return OTHER
        self._seen.add(wanted)
        return wanted
