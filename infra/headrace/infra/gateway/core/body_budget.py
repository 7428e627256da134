"""Memory for request bodies: each reserves its size before it is read, and all together stay below a bound.

reserved = content-length, or the largest body allowed where a client does not say (chunked, compressed).
"""


class BodyBudget:
    """Bytes reserved for bodies held now. For one thread: the loop's."""

    __slots__ = ("_limit", "_reserved")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._reserved = 0

    @property
    def reserved(self) -> int:
        """Bytes reserved now."""
        return self._reserved

    def reserve(self, size: int) -> bool:
        """Reserve, and say whether there was room."""
        if self._reserved + size > self._limit:
            return False
        self._reserved += size
        return True

    def release(self, size: int) -> None:
        """Give back what was reserved."""
        self._reserved -= size
