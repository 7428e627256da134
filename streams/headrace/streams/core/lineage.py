"""How far each source partition was read into one key: what makes the bridge's at-least-once delivery count once.

    at or below (offset, index), and not newer than the newest event time from there     a repetition: dropped
    at or below, but newer than anything that came from there                            the log was made anew: applied

The bridge goes through each source partition in order, and repeats itself only from a point that is already here; so
the highest (offset, index) says it all. A reading that is repeated was noted before, its event time with it.
"""

from typing import Any, Final, NamedTuple

MAX_SOURCES: Final = 1_024
"""Source partitions remembered; of more, the one that was silent longest is forgotten."""


class Place(NamedTuple):
    """Where one reading stood: its source partition, the record, and `at` which place in it."""

    topic: str
    partition: int
    offset: int
    at: int


class _Read(NamedTuple):
    offset: int
    at: int
    newest_ms: int


class Sources:
    """The source partitions of one key, folded in place."""

    __slots__ = ("_read",)

    def __init__(self) -> None:
        self._read: dict[tuple[str, int], _Read] = {}

    def is_repeated(self, place: Place, at_ms: int) -> bool:
        """Say whether this reading was applied before."""
        known = self._read.get(place[:2])
        return known is not None and place[2:] <= known[:2] and at_ms <= known.newest_ms

    def note(self, place: Place, at_ms: int) -> None:
        """Take note of a reading that was not a repetition."""
        known = self._read.get(place[:2])
        if known is None or (place[2:] <= known[:2] and at_ms > known.newest_ms):
            self._read[place[:2]] = _Read(place.offset, place.at, at_ms)
        else:
            offset, index = max(place[2:], known[:2])
            self._read[place[:2]] = _Read(offset, index, max(at_ms, known.newest_ms))
        if len(self._read) > MAX_SOURCES:
            del self._read[min(self._read, key=lambda source: (self._read[source].newest_ms, source))]

    def rows(self) -> list[list[Any]]:
        """Give what is remembered as plain lists, sorted."""
        return [[*source, *read] for source, read in sorted(self._read.items())]

    @classmethod
    def of(cls, rows: list[list[Any]]) -> "Sources":
        """Take up what `rows` gave."""
        found = cls()
        for topic, partition, offset, index, newest_ms in rows:
            found._read[str(topic), int(partition)] = _Read(int(offset), int(index), int(newest_ms))
        return found
