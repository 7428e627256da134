"""One engine's pane: entries by series number, and the instants that periods covered."""

import struct

from headrace.streams.core import packing
from headrace.streams.core.panes import Cover, PaneGrid, covered, covered_ms
from headrace.streams.core.series import Entry, read_entry

_PANE = struct.Struct("<qH")  # index, number of entries


class EnginePane:
    """One engine's entries by series number, and the instants covered. `packed` is kept until something changes."""

    __slots__ = ("cover", "covered_ms", "entries", "packed")

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.cover: Cover = ()
        self.covered_ms = 0
        self.packed: bytes | None = None

    def copy(self) -> "EnginePane":
        """Give a pane that changes without this one."""
        pane = EnginePane()
        pane.entries, pane.cover, pane.covered_ms = dict(self.entries), self.cover, self.covered_ms
        return pane

    def add_cover(self, from_ms: int, to_ms: int) -> None:
        """Count instants of this pane as covered."""
        cover = covered(self.cover, from_ms, to_ms)
        if cover != self.cover:
            self.cover, self.covered_ms, self.packed = cover, covered_ms(cover), None

    def pack(self, index: int, start_ms: int) -> bytes:
        """Give the pane's bytes, encoding only what changed since the last time."""
        if self.packed is None:
            entries = b"".join(entry.pack(series) for series, entry in self.entries.items())
            self.packed = _PANE.pack(index, len(self.entries)) + packing.pack_cover(self.cover, start_ms) + entries
        return self.packed


def read_pane(reader: packing.Reader, grid: PaneGrid) -> tuple[int, EnginePane]:
    """Read what `EnginePane.pack` wrote, as (index, pane)."""
    pane, start = EnginePane(), reader.at
    index, entry_count = reader.take(_PANE)
    pane.cover = packing.read_cover(reader, index * grid.pane_ms)
    pane.covered_ms = covered_ms(pane.cover)
    for _ in range(entry_count):
        number, entry = read_entry(reader)
        pane.entries[number] = entry
    pane.packed = reader.packed[start : reader.at]
    return int(index), pane
