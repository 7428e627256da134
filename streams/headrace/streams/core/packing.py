"""The bytes of `panes`: little-endian, a version first; only the fold that wrote them reads them.

    version u8 | pane_ms u32 | open_from i64 | the fold's own part

Counts of a histogram are packed in the narrowest of 1, 2, 4 or 8 bytes that holds the largest: a one-second histogram
of a busy engine fits in single bytes. Reading is strict: anything that is left over or missing raises `PackingError`,
and the fold then starts its window anew (its offset, and so the guard against duplicates, is a field of its own).
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.schemas.errors import HeadraceError
from headrace.streams.core.panes import Cover

VERSION = 1
HEAD = struct.Struct("<BIq")

Counts = npt.NDArray[np.int64]
DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}
"""How counts of each width are packed."""
_COUNT = struct.Struct("<H")
_SPAN = struct.Struct("<HH")


class PackingError(HeadraceError):
    """Bytes that this version did not write."""


UNREADABLE = (PackingError, ArithmeticError, LookupError, ValueError, TypeError)
"""What reading damaged bytes raises: numbers that point at nothing, overflow, or divide by zero, among others."""


class Reader:
    """A cursor over packed bytes."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed
        self.at = 0

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Read one struct.

        Raises:
            PackingError: fewer bytes are left.
        """
        try:
            values = layout.unpack_from(self.packed, self.at)
        except struct.error as error:
            raise PackingError(f"at byte {self.at} of {len(self.packed)}: {error}") from error
        self.at += layout.size
        return values

    def take_bytes(self, length: int) -> bytes:
        """Read `length` bytes.

        Raises:
            PackingError: fewer bytes are left.
        """
        found = self.packed[self.at : self.at + length]
        if len(found) != length:
            raise PackingError(f"at byte {self.at} of {len(self.packed)}: {length} bytes expected")
        self.at += length
        return found

    def end(self) -> None:
        """Say that nothing may follow.

        Raises:
            PackingError: something does.
        """
        if self.at != len(self.packed):
            raise PackingError(f"{len(self.packed) - self.at} bytes follow")


def head(pane_ms: int, open_from: int) -> bytes:
    """Give the common beginning."""
    return HEAD.pack(VERSION, pane_ms, open_from)


def read_head(reader: Reader, pane_ms: int) -> int:
    """Read the common beginning and give `open_from`.

    Raises:
        PackingError: another version, or panes of another length: they cannot be told apart into ours.
    """
    version, found_ms, open_from = reader.take(HEAD)
    if version != VERSION:
        raise PackingError(f"version {version}; this is {VERSION}")
    if found_ms != pane_ms:
        raise PackingError(f"panes of {found_ms} ms; pane_ms is {pane_ms}")
    return int(open_from)


def pack_counts(counts: Sequence[int]) -> tuple[int, bytes]:
    """Give (width, bytes) of non-negative counts, in the narrowest width that holds the largest."""
    largest = max(counts, default=0)
    if largest < 256:
        return 1, bytes(counts)
    width = 2 if largest < 1 << 16 else 4 if largest < 1 << 32 else 8
    return width, np.array(counts, dtype=DTYPES[width]).tobytes()


def view_counts(width: int, packed: bytes) -> npt.NDArray[Any]:
    """Give packed counts as an array that shares their bytes.

    Raises:
        PackingError: there is no such width, or the bytes are no multiple of it.
    """
    if width not in DTYPES or len(packed) % width:
        raise PackingError(f"counts of width {width} in {len(packed)} bytes")
    found: npt.NDArray[Any] = np.frombuffer(packed, dtype=DTYPES[width])
    return found


def pack_cover(cover: Cover, start_ms: int) -> bytes:
    """Give a cover's bytes, relative to its pane's start; a pane is at most 60,000 ms long."""
    spans = b"".join(_SPAN.pack(from_ms - start_ms, to_ms - start_ms) for from_ms, to_ms in cover)
    return _COUNT.pack(len(cover)) + spans


def read_cover(reader: Reader, start_ms: int) -> Cover:
    """Read what `pack_cover` wrote."""
    (count,) = reader.take(_COUNT)
    spans = (reader.take(_SPAN) for _ in range(count))
    return tuple((from_ms + start_ms, to_ms + start_ms) for from_ms, to_ms in spans)
