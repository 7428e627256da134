"""What was asked for lately: a bounded memory whose floods push out what is new, not what is in use.

    two halves: what is asked for in the older half moves to the newer; a full newer half becomes the older one

Labels made from user input come once each. A memory that is emptied when it is full forgets the engines with them, at
every turn; here whatever is asked for again within half of the bound stays.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most `limit` entries, whose weights together are at most `max_weight`; in place."""

    __slots__ = ("_half", "_half_weight", "_new", "_old", "_weight")

    def __init__(self, limit: int, max_weight: int = 0) -> None:
        self._half = max(1, limit // 2)
        self._half_weight = max_weight // 2
        self._new: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}
        self._weight = 0

    def __len__(self) -> int:
        return len(self._new.keys() | self._old.keys())

    def get(self, key: K) -> V | None:
        """Give what was put there, None where it is not remembered."""
        found = self._new.get(key)
        if found is not None:
            return found[0]
        found = self._old.get(key)
        if found is None:
            return None
        self.put(key, *found)
        return found[0]

    def put(self, key: K, value: V, weight: int = 0) -> None:
        """Remember a value, which is not None; one too heavy for its half is not remembered."""
        if self._half_weight and weight > self._half_weight:
            return
        if len(self._new) >= self._half or (self._half_weight and self._weight + weight > self._half_weight):
            self._old, self._new, self._weight = self._new, {}, 0
        self._new[key] = value, weight
        self._weight += weight
