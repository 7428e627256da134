"""Readings -> the Avro bytes of their signal, reading by reading: what Avro's generic writer would give, byte for byte.

    head of the series, made once │ at_ms start_ms value histogram offset index │ tail of the series
    signal = head │ how many │ readings │ 0 │ lineage

Half of a bridge's time went into handing the generic writer a dictionary for each reading. Nearly all of a reading is
the same from scrape to scrape: its names and hashes are bytes that are kept, and so are a histogram's bounds. A test
holds these bytes against fastavro's, whatever a reading holds.

Source: Avro specification, "Binary Encoding".
"""

import struct
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from headrace.schemas.series import SeriesPart
from headrace.streams.core.decode.contract import Explicit, Exponential, Temporality
from headrace.streams.core.held import SERIES_FIELDS, SERIES_KINDS, SERIES_OVERS, SERIES_TBOT_KINDS
from headrace.streams.core.mapping.reading import Reading
from headrace.streams.core.recent import Recent

MAX_HEADS: Final = 50_000
_INT63: Final = (1 << 63) - 1
"""An Avro long is signed; one bit less tells series apart just as well."""
_double = struct.Struct("<d").pack
_NULL, _SOME, _END = b"\x00", b"\x02", b"\x00"


class Told(NamedTuple):
    """One reading as it travels: its bytes, about how many numbers they hold, and what its signal says of it."""

    body: bytes
    size: int
    at_ms: int
    offset: int
    at: int


class _Ends(NamedTuple):
    """What every reading of a series begins and ends with."""

    head: bytes
    tail: bytes


class ReadingWriter:
    """Writes readings; what it remembers of series is only speed. `readings` are of one mapping."""

    def __init__(self) -> None:
        self.ends: Recent[tuple[int, Temporality, SeriesPart], _Ends] = Recent(MAX_HEADS)

    def write(self, reading: Reading, part: SeriesPart, offset: int, index: int) -> Told:
        """Give a mapped reading as it travels, with its place in its source record."""
        key = (reading.series, reading.temporality, part)
        ends = self.ends.get(key)
        if ends is None:
            ends = _ends(reading, part)
            self.ends.put(key, ends)
        time_ms, start_ms, value, histogram = reading[6:10]
        size = _READING_SIZE
        written = _NULL
        if histogram is not None:
            size += 2 * len(histogram.counts)
            written = _explicit(histogram) if isinstance(histogram, Explicit) else _exponential(histogram)
        body = b"".join(
            (
                ends.head,
                long(time_ms),
                _NULL if start_ms is None else _SOME + long(start_ms),
                _maybe(value),
                written,
                _SOME,
                long(offset),
                _SOME,
                long(index),
                ends.tail,
            )
        )
        return Told(body, size, time_ms, offset, index)


_READING_SIZE: Final = 24


def text(words: str) -> bytes:
    """Give an Avro string."""
    found = words.encode()
    return long(len(found)) + found


def readings_block(told: Sequence[Told]) -> bytes:
    """Give the optional array of readings, which are at least one."""
    return b"".join((_SOME, long(len(told)), *[each.body for each in told], _END))


def lineage_block(topic: str, partition: int, last: Told, mapping_hash: str) -> bytes:
    """Give the optional lineage of a signal whose last reading this is."""
    place = long(partition) + long(last.offset) + long(last.at)
    return _SOME + text(topic) + place + text(mapping_hash)


def _table(continued: int) -> tuple[bytes, ...]:
    """Give the variable-length forms of 0 to 16383 in at most two bytes; `continued`: in two, with more to follow."""
    two = [bytes((n & 127 | 128, n >> 7 | continued)) for n in range(1 << 14)]
    return tuple(two) if continued else tuple([bytes((n,)) for n in range(128)] + two[128:])


_SMALL: Final = _table(0)
_MORE: Final = _table(128)
_COUNTS: Final = _SMALL[::2]
"""Counts from 0 on: an Avro long is twice its number where that is not negative."""


@lru_cache(maxsize=4096)
def long(number: int) -> bytes:
    """Give an Avro int or long: zigzag, then seven bits a byte. Instants of one scrape are the same for all of it."""
    left = number << 1 if number >= 0 else (-number << 1) - 1
    parts: list[bytes] = []
    while left >= 1 << 14:
        parts.append(_MORE[left & 16383])
        left >>= 14
    parts.append(_SMALL[left])
    return b"".join(parts)


def _count(number: int) -> bytes:
    """Give a long, up to 2^27 at once."""
    twice = number << 1
    if not 0 <= twice < 1 << 28:
        return long(number)
    return _SMALL[twice] if twice < 1 << 14 else _MORE[twice & 16383] + _SMALL[twice >> 14]


def _counts(counts: Sequence[int]) -> bytes:
    if not counts:
        return _END
    body = b"".join([_COUNTS[n] if 0 <= n < 8192 else _count(n) for n in counts])
    return long(len(counts)) + body + _END


@lru_cache(maxsize=1024)
def _bounds(bounds: tuple[float, ...]) -> bytes:
    """Give an array of bounds; a source's are few."""
    return long(len(bounds)) + struct.pack(f"<{len(bounds)}d", *bounds) + _END if bounds else _END


def _maybe(value: float | None) -> bytes:
    return _NULL if value is None else _SOME + _double(value)


def _explicit(histogram: Explicit) -> bytes:
    bounds, counts, observations, total, low, high = histogram
    return b"".join(
        (
            _SOME,
            _count(observations),
            _maybe(total),
            _maybe(low),
            _maybe(high),
            _bounds(bounds),
            _counts(counts if bounds else ()),
            # No scale, no zero count, no first bucket.
            b"\x00\x00\x00",
        )
    )


def _exponential(histogram: Exponential) -> bytes:
    scale, zeros, first, counts, observations, total, low, high = histogram
    parts = (_SOME, long(observations), _maybe(total), _maybe(low), _maybe(high), _END, _counts(counts))
    return b"".join((*parts, _SOME, long(scale), long(zeros), long(first)))


def _ends(reading: Reading, part: SeriesPart) -> _Ends:
    identity = reading.identity
    head = b"".join(
        (
            long(reading.series & _INT63),
            long(reading.slot & _INT63),
            long(reading.alias),
            enum_word(SERIES_FIELDS[reading.field]),
            enum_word(SERIES_KINDS[reading.temporality]),
            enum_word(part),
            text(identity.model),
            text(identity.instance),
            text(identity.rank),
            enum_word(SERIES_OVERS[reading.over_ranks]),
            enum_word(SERIES_OVERS[reading.over_instances]),
        )
    )
    kind = SERIES_TBOT_KINDS.get(reading.tbot_kind)
    return _Ends(head, _NULL if kind is None else _SOME + enum_word(kind))


def enum_word(word: StrEnum) -> bytes:
    """Give an enum: the number of the word among all of its kind, which are declared in the schema's order."""
    every: list[Any] = list(type(word))
    return long(every.index(word))
