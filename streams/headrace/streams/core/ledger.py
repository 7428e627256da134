"""What one key knows of its series: how far each source was read, readings that may still be reordered, levels.

    signal.series ─► sources: repeated? ─► late? ─► held, in one order ─► book: difference ─► Gain
                       dropped              counted     until the watermark is beyond them by the grace

A reading is final once event time has passed it by the grace: only then does its difference enter the fold's memory.
Until then `told` takes the differences of what is held on a copy, so that a state is up to date and yet the same
whatever order readings came in, over however many partitions: a series over several is as right as over one.

What was told is kept: readings that only follow it are added to it, and what becomes final as it was told is not taken
a second time. A state thus costs what came since the one before, not what is held.

Histograms that come sample by sample are put together here. Before they are final they are told only where all samples
of the histogram before are there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple, cast

import msgpack  # type: ignore[import-untyped]  # msgpack ships no types

from headrace.schemas.series import Lineage, SeriesPart, SeriesReading
from headrace.streams.core.decode.contract import Explicit
from headrace.streams.core.differencing.book import SeriesBook, UnreadableBookError
from headrace.streams.core.differencing.level import Delta
from headrace.streams.core.held import Held, assembled, held_of, of_row, order, row
from headrace.streams.core.lineage import Place, Sources
from headrace.streams.core.mapping.reading import Identity, Reading
from headrace.streams.core.packing import UNREADABLE, PackingError
from headrace.streams.core.series import Entry

MAX_HELD: Final = 8_192
MAX_HELD_SIZE: Final = 400_000
"""Readings, and numbers in them, that wait; beyond, the oldest are taken as final at once."""
_FORM: Final = 1


@dataclass(slots=True, eq=False)
class Gain:
    """What one reading told: the difference, and of which model it counts; `entry` is that in a pane, once made."""

    reading: Reading
    model: str
    delta: Delta
    entry: Entry | None = None


class Taken(NamedTuple):
    """What became of a signal's readings; `newest_ms` of those that were held, None where none was."""

    fresh: int
    late: int
    newest_ms: int | None


class Ledger:
    """The series of one key, folded in place."""

    __slots__ = ("_ahead", "_in_parts", "_told", "apart_ms", "book", "held", "size", "sources")

    def __init__(self, book: SeriesBook | None = None, sources: Sources | None = None) -> None:
        self.book = SeriesBook() if book is None else book
        self.sources = Sources() if sources is None else sources
        self.held: list[Held] = []
        self.size = 0
        # What the first readings that are held told, one by one, and the book as it is with them.
        self._told: list[Gain | None] = []
        self._ahead: SeriesBook | None = None
        self._in_parts = 0
        self.apart_ms: int | None = None
        """Newest instant of a signal that was kept apart; None where none was."""

    def first_told(self, lineage: Lineage | None, at_ms: int) -> bool:
        """Take note of a signal that counts by itself; False where it was applied before. Without a lineage, True."""
        if lineage is None:
            return True
        place = _place(lineage)
        if self.sources.is_repeated(place, at_ms):
            return False
        self.sources.note(place, at_ms)
        return True

    def hold(
        self,
        series: Sequence[SeriesReading],
        lineage: Lineage | None,
        who: Identity,
        offset: int,
        frontier_ms: int | None,
    ) -> Taken:
        """Hold what is new of a signal's readings.

        Args:
            series: the readings.
            lineage: of the signal.
            who: the key's identity; model, instance and rank are each reading's own.
            offset: of the signal, which orders readings that have no source record.
            frontier_ms: what is at or before it is late; None before the key's first signal.
        """
        fresh: list[Held] = []
        source = None if lineage is None else (lineage.topic, lineage.partition)
        for i, found in enumerate(series):
            place = Place("", 0, offset, i)
            if source is not None and found.offset is not None and found.index is not None:
                place = Place(*source, found.offset, found.index)
                if self.sources.is_repeated(place, found.at_ms):
                    continue
            identity = who._replace(model=found.model, instance=found.instance, rank=found.rank)
            held = held_of(found, identity, place)
            if held is not None:
                fresh.append(held)
        late, newest_ms, kept = 0, None, list[Held]()
        for held in fresh:
            at_ms = held.reading.time_ms
            if held.place.topic:
                self.sources.note(held.place, at_ms)
            if frontier_ms is not None and at_ms <= frontier_ms:
                late += 1
                continue
            newest_ms = at_ms if newest_ms is None else max(newest_ms, at_ms)
            kept.append(held)
            self.size += held.size
            self._in_parts += held.part is not SeriesPart.WHOLE
        self._keep(kept)
        return Taken(len(fresh), late, newest_ms)

    def _keep(self, kept: list[Held]) -> None:
        kept.sort(key=order)
        is_behind = bool(kept and self.held and order(kept[0]) < order(self.held[-1]))
        self.held += kept
        if is_behind:
            self.held.sort(key=order)
            self._untell()

    def _untell(self) -> None:
        self._told, self._ahead = [], None

    def due(self, frontier_ms: int) -> list[Gain]:
        """Take what can no longer be reordered, oldest first, and give what it told."""
        count, size = 0, self.size
        for held in self.held:
            is_over = len(self.held) - count > MAX_HELD or size > MAX_HELD_SIZE
            if held.reading.time_ms > frontier_ms and not is_over:
                break
            count += 1
            size -= held.size
        final, self.held, self.size = self.held[:count], self.held[count:], size
        if self._in_parts:
            self._in_parts -= sum([held.part is not SeriesPart.WHOLE for held in final])
            self._untell()
            return list(_gains(self.book, final, whole=False))
        told, self._told = self._told[:count], self._told[count:]
        if self._ahead is not None and not self.held and len(told) == count:
            self.book, self._ahead = self._ahead.adopt(), None
            return [gain for gain in told if gain is not None]
        found: list[Gain] = []
        for i, held in enumerate(final):
            gain = _gain(self.book, held.reading, told[i] if i < len(told) else None)
            if gain is not None:
                found.append(gain)
        if len(told) < count:
            self._untell()
        return found

    def told(self) -> tuple[SeriesBook, list[Gain]]:
        """Give what the readings that are held tell as it stands, and the book as it would be; changes neither."""
        if self._in_parts:
            book = self.book.fork(remembers=False)
            return book, list(_gains(book, self.held, whole=True))
        ahead = self._ahead
        if ahead is None:
            ahead, self._told = self.book.fork(), []
            self._ahead = ahead
        for held in self.held[len(self._told) :]:
            self._told.append(_gain(ahead, held.reading, None))
        return ahead, [gain for gain in self._told if gain is not None]

    def pack(self, own: Sequence[Any]) -> bytes:
        """Give the ledger as bytes: the same signals in the same order give the same bytes.

        `own` are plain values of the fold that keeps it, and come back from `read`.
        """
        held = [row(each) for each in self.held]
        return cast("bytes", msgpack.packb([_FORM, self.book.pack(), self.sources.rows(), held, self.apart_ms, own]))

    @classmethod
    def resume(cls, packed: bytes | None) -> "Ledger | None":
        """Give the ledger of a state that has no values of its own in it; None where there is none to be read."""
        if packed is None:
            return None
        try:
            return cls.read(packed)[0]
        except UNREADABLE:
            return None  # of another hand: its series begin with a baseline

    @classmethod
    def read(cls, packed: bytes) -> "tuple[Ledger, list[Any]]":
        """Give the ledger that `pack` packed, and the fold's own values.

        Raises:
            PackingError: the bytes are something else.
        """
        try:
            form, book, sources, held, apart_ms, own = cast("list[Any]", msgpack.unpackb(packed, strict_map_key=False))
            if form != _FORM:
                raise PackingError(f"series of form {form}; this build reads {_FORM}")
            found = cls(SeriesBook.read(book), Sources.of(sources))
            found.held = [of_row(each) for each in held]
        except (ValueError, TypeError, LookupError, msgpack.UnpackException, UnreadableBookError) as error:
            raise PackingError(f"no series: {type(error).__name__}: {error}") from error
        found.size = sum(each.size for each in found.held)
        found._in_parts = sum(each.part is not SeriesPart.WHOLE for each in found.held)
        found.apart_ms = apart_ms
        return found, own


def _gain(book: SeriesBook, reading: Reading, told: Gain | None) -> Gain | None:
    """Give what a reading tells; `told` itself, where that says the same."""
    outcome = book.take(reading)
    if not isinstance(outcome, Delta):
        return None
    model = book.model_of(reading)
    if told is not None and told.delta is outcome and told.model == model:
        return told
    return Gain(reading, model, outcome)


def _gains(book: SeriesBook, held: Sequence[Held], *, whole: bool) -> Iterator[Gain]:
    for reading in _readings(book, held, whole=whole):
        gain = _gain(book, reading, None)
        if gain is not None:
            yield gain


def _readings(book: SeriesBook, held: Sequence[Held], *, whole: bool) -> Iterator[Reading]:
    for (_, _, in_parts), group in groupby(held, key=_instant):
        if not in_parts:
            yield from (each.reading for each in group)
            continue
        reading = assembled(list(group))
        if reading is None:
            book.tally.missing += 1
        elif not whole or _is_whole(book, reading):
            yield reading


def _instant(held: Held) -> tuple[int, int, bool]:
    return held.reading.time_ms, held.reading.series, held.part is not SeriesPart.WHOLE


def _is_whole(book: SeriesBook, reading: Reading) -> bool:
    level, histogram = book.levels.get(reading.series), reading.histogram
    before = None if level is None else level.histogram
    if not isinstance(before, Explicit) or not isinstance(histogram, Explicit):
        return False
    return histogram.bounds == before.bounds and histogram.total is not None


def _place(lineage: Lineage) -> Place:
    return Place(lineage.topic, lineage.partition, lineage.offset, lineage.index)
