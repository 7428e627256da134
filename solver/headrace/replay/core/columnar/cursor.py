"""Reads the same field of many Avro bodies at once: one position a body, moved along together.

    long, int, enum   zig-zag varint        string   length, bytes        double   8 bytes, little-endian
    union             branch as a varint    array    count, items, 0      (one block, as fastavro writes it)

Hostile bytes: a body whose position leaves its end is marked and stays there; nothing is read beyond the padding.
Source: Avro specification, "Binary Encoding".
"""

import numpy as np
import numpy.typing as npt

from headrace.schemas.ids import MAX_IDENTIFIER, is_identifier

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Marks = npt.NDArray[np.bool_]

PADDING = 128
WIDE = 64
_MORE = 0x80
_LONGEST = 70
_EIGHT = 8
_STRANGE = np.array([not is_identifier(chr(byte)) for byte in range(256)])
_NOT_SMALL = _MORE | 1
"""Bits of a byte that is no varint of its own, or one below 0."""


def spans_of(data: bytes, size: int) -> Bytes:
    """Give `size` bytes from every position of some data on, (positions, size); nothing is copied."""
    return np.ndarray((max(0, len(data) - size + 1), size), np.uint8, data, 0, (1, 1))


class Cursor:
    """Positions in the bodies of N messages. Every method reads for the messages `of`, and moves them on.

    Args:
        data: bytes that hold all of them.
        start, end: (N,) where each lies.
        skip: bytes at the beginning of each that are not of its body.
    """

    def __init__(self, data: bytes, start: Ints, end: Ints, skip: int) -> None:
        self._whole = data + bytes(PADDING)
        self.buffer: Bytes = np.frombuffer(self._whole, dtype=np.uint8)
        self.end = end
        self.at: Ints = np.minimum(start + skip, end)
        self.sound: Marks = end - start > skip

    def longs(self, of: Ints) -> Ints:
        """Read a long, an int or an enum's number."""
        at = self.at[of]
        values, at = self._varints(at)
        self._move(of, at)
        return values

    def doubles(self, of: Ints) -> Floats:
        """Read a double."""
        at = self.at[of]
        raw = self.windows(_EIGHT)[at]
        self._move(of, at + _EIGHT)
        return raw.view("<f8")[:, 0].astype(np.float64)

    def maybe_doubles(self, of: Ints) -> Floats:
        """Read null or a double; NaN for null. A double that is not finite marks its message."""
        there = self._branch(of)
        values = np.full(len(of), np.nan)
        read = self.doubles(of[there])
        self.sound[of[there][~np.isfinite(read)]] = False
        values[there] = read
        return values

    def maybe_longs(self, of: Ints) -> tuple[Ints, Marks]:
        """Read null or an int: values, and whether there is one."""
        there = self._branch(of)
        values = np.zeros(len(of), dtype=np.int64)
        values[there] = self.longs(of[there])
        return values, there

    def branches(self, of: Ints) -> Marks:
        """Read a union of null and something: whether there is something, which is still to be read."""
        return self._branch(of)

    def strings(self, of: Ints) -> tuple[Ints, Ints]:
        """Pass over a string; give where its bytes begin and end."""
        length = self.longs(of)
        start = self.at[of]
        self.sound[of[length < 0]] = False
        self._move(of, start + np.maximum(length, 0))
        return start, self.at[of]

    def long_arrays(self, of: Ints) -> tuple[Ints, Ints, Ints]:
        """Read arrays of longs: how many, their sum, and the least; 0 of an empty one."""
        count = self.longs(of)
        self.sound[of[count < 0]] = False
        # Every item takes a byte at least: a larger count is no array of this body.
        count = np.where(self.sound[of], np.minimum(np.maximum(count, 0), self.end[of] - self.at[of]), 0)
        least = np.zeros(len(of), dtype=np.int64)
        start = self.at[of]
        # Small counts, as nearly all are, take a byte each.
        total = np.zeros(len(of), dtype=np.int64)
        small = count <= WIDE
        wide = int(count[small].max(initial=0))
        held = self.windows(wide)[start[small]] * (np.arange(wide) < count[small][:, None])
        total[small] = (held >> 1).sum(axis=1, dtype=np.int64)
        small[small] = ~(held & _NOT_SMALL).any(axis=1)
        self._move(of[small], (start + count)[small])
        large = np.flatnonzero(~small)
        if len(large):
            total[large], least[large] = self._items(of[large], count[large])
        self._close(of[count > 0])
        return count, total, least

    def close_arrays(self, of: Ints) -> None:
        """Read the end of an array that had items: a block of 0; another block marks its message."""
        self._close(of)

    def identifiers(self, spans: tuple[Ints, Ints]) -> Marks:
        """Say which spans are identifiers, as `headrace.schemas.ids.is_identifier` says."""
        start, end = spans
        length = end - start
        plain: Marks = (length > 0) & (length <= MAX_IDENTIFIER)
        for size in np.unique(length[plain]).tolist():
            of = np.flatnonzero(length == size)
            plain[of] = ~_STRANGE[self.windows(size)[start[of]]].any(axis=1)
        return plain

    def windows(self, size: int) -> Bytes:
        """Give the bytes from every position on, `size` of each: rows of it are taken much quicker than bytes."""
        return spans_of(self._whole, size)

    def text(self, start: int, end: int) -> bytes:
        """Give the bytes between two positions."""
        return self._whole[start:end]

    def _items(self, of: Ints, count: Ints) -> tuple[Ints, Ints]:
        """Read `count` varints of each, all at once: an item ends where a byte has no further one behind it."""
        first = self.at[of]
        low, high = int(first.min()), int(self.end[of].max())
        ends = np.flatnonzero(self.buffer[low:high] < _MORE) + low
        if not len(ends):
            # No item ends anywhere: every one of these bodies was cut off inside its array.
            self.sound[of] = False
            return np.zeros(len(of), dtype=np.int64), np.zeros(len(of), dtype=np.int64)
        rank = np.searchsorted(ends, first)
        last = rank + count - 1
        broken = last >= len(ends)
        self.sound[of[broken]] = False
        last = np.minimum(last, len(ends) - 1)
        begin = np.repeat(np.cumsum(count) - count, count)
        number = np.arange(int(count.sum())) - begin + np.repeat(rank, count)
        item_end = ends[np.minimum(number, len(ends) - 1)]
        starts = np.concatenate(([0], item_end[:-1] + 1))
        heads = np.cumsum(count) - count
        starts[heads] = first
        values, _ = self._varints(starts)
        self._move(of, ends[last] + 1)
        return np.add.reduceat(values, heads), np.minimum.reduceat(values, heads)

    def _close(self, of: Ints) -> None:
        self.sound[of[self.longs(of) != 0]] = False

    def _branch(self, of: Ints) -> Marks:
        branch = self.longs(of)
        self.sound[of[(branch != 0) & (branch != 1)]] = False
        there: Marks = branch == 1
        return there

    def _varints(self, at: Ints) -> tuple[Ints, Ints]:
        byte = self.buffer[at]
        value = (byte & 0x7F).astype(np.uint64)
        at = at + 1
        more = np.flatnonzero(byte >= _MORE)
        shift = 7
        while len(more) and shift < _LONGEST:
            byte = self.buffer[np.minimum(at[more], len(self.buffer) - 1)]
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[more] += 1
            more = more[byte >= _MORE]
            shift += 7
        signed = (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
        return signed, at

    def _move(self, of: Ints, at: Ints) -> None:
        """Go to new positions; a message that leaves its body is marked, and goes no further."""
        end = self.end[of]
        beyond = at > end
        self.sound[of[beyond]] = False
        self.at[of] = np.where(beyond, end, at)
