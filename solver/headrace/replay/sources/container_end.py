"""How a container file ends, by its framing alone: nothing is unpacked, so that even a large one is soon looked at.

    "Obj" 1, metadata, marker of 16 bytes      {count, size, bytes, marker} ...

Source of the form: Avro specification, "Object Container Files".
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

MAGIC = b"Obj\x01"
MARKER = 16
MOST_BYTES = 10
"""Of a number of 64 bits, seven in each byte."""


class Ends(StrEnum):
    """How a file ends."""

    WHOLE = "WHOLE"
    CUT = "CUT"
    DAMAGED = "DAMAGED"


@dataclass(frozen=True, slots=True)
class End:
    """How a file ends, and how many records its whole blocks say they hold."""

    ends: Ends
    records: int


class _CutError(Exception):
    """The file ends where something had to follow."""


class _DamagedError(Exception):
    """What stands there cannot have been written."""


def read_end(path: Path) -> End:
    """Follow a file's blocks to its end.

    Raises:
        OSError: the file cannot be read.
    """
    records = 0
    with path.open("rb") as file:
        size = path.stat().st_size
        try:
            marker = _marker(file, size)
            while file.tell() < size:
                records += _block(file, size, marker)
        except _CutError:
            return End(Ends.CUT, records)
        except _DamagedError:
            return End(Ends.DAMAGED, records)
    return End(Ends.WHOLE, records)


def _block(file: IO[bytes], size: int, marker: bytes) -> int:
    """Go past a block; gives how many records it says it holds."""
    count, length = _long(file), _long(file)
    if count < 0:
        raise _DamagedError
    _skip(file, length, size)
    if _bytes(file, MARKER) != marker:
        raise _DamagedError
    return count


def _marker(file: IO[bytes], size: int) -> bytes:
    """Give the marker that ends each block, which stands after the metadata."""
    begin = file.read(len(MAGIC))
    if not MAGIC.startswith(begin):
        raise _DamagedError
    if begin != MAGIC:
        raise _CutError
    while count := _long(file):
        if count < 0:
            _long(file)  # such a block of a map says its size, too
        for _ in range(2 * abs(count)):
            _skip(file, _long(file), size)
    return _bytes(file, MARKER)


def _skip(file: IO[bytes], length: int, size: int) -> None:
    if length < 0:
        raise _DamagedError
    if file.tell() + length > size:
        raise _CutError
    file.seek(length, 1)


def _bytes(file: IO[bytes], length: int) -> bytes:
    found = file.read(length)
    if len(found) < length:
        raise _CutError
    return found


def _long(file: IO[bytes]) -> int:
    value = 0
    for n in range(MOST_BYTES):
        (byte,) = _bytes(file, 1)
        value |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise _DamagedError
