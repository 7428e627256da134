"""A key's window: its panes, how far its event time has come, and which of its panes may still change.

This is the mutable part of the fold (a hot loop folds in place; nothing outside the fold sees it). Whatever is here can
be rebuilt from the state's bytes, exactly: the fold of a key is the same with a restart after every message.

One signal goes through it in this order, so that what the smoothing reads is there before the pane is closed:

    see(end)  ->  add to panes  ->  close(): panes that became final, oldest first  ->  evict(): panes that left
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from headrace.streams.core.panes import PaneGrid

P = TypeVar("P")


class Outcome(StrEnum):
    """What became of a signal."""

    APPLIED = "APPLIED"
    LATE = "LATE"
    DUPLICATE = "DUPLICATE"
    KEPT_APART = "KEPT_APART"


class Progress:
    """How far a key has come: its watermark, its highest applied offset, and what came late."""

    __slots__ = ("applied_offset", "late", "signal_timestamp_ms", "watermark_ms")

    def __init__(self) -> None:
        self.watermark_ms: int | None = None
        self.signal_timestamp_ms = 0
        self.late = 0
        self.applied_offset = -1

    @classmethod
    def resume(cls, watermark_ms: int | None, signal_timestamp_ms: int, late: int, applied_offset: int) -> "Progress":
        """Take up what a state says."""
        progress = cls()
        progress.watermark_ms = watermark_ms
        progress.signal_timestamp_ms = signal_timestamp_ms
        progress.late = late
        progress.applied_offset = applied_offset
        return progress


class Window(Generic[P]):
    """The panes of one key by index, at most `grid.count` of them, and the oldest that may still change."""

    __slots__ = ("grid", "open_from", "panes", "progress")

    def __init__(self, grid: PaneGrid, progress: Progress) -> None:
        self.grid = grid
        self.progress = progress
        self.panes: dict[int, P] = {}
        self.open_from: int | None = None

    def resume(self, progress: Progress) -> None:
        """Take up where a state ended, once its panes are read: those that left it meanwhile are dropped."""
        self.progress = progress
        if self.open_from is None:
            self.close()
        self.evict()

    def see(self, end_ms: int, offset: int, timestamp_ms: int) -> Outcome:
        """Judge a signal by its offset and its period's end, and move the watermark; the rest is for the fold."""
        progress = self.progress
        if offset <= progress.applied_offset:
            return Outcome.DUPLICATE
        progress.applied_offset = offset
        if self.open_from is not None and self.grid.index(end_ms) < self.open_from:
            progress.late += 1
            return Outcome.LATE
        progress.signal_timestamp_ms = timestamp_ms
        if progress.watermark_ms is None or end_ms > progress.watermark_ms:
            progress.watermark_ms = end_ms
        return Outcome.APPLIED

    def see_read(self, late: int, newest_ms: int | None, offset: int, timestamp_ms: int) -> Outcome:
        """Take note of a signal of readings, of which `late` came too late and the others end at `newest_ms`."""
        progress = self.progress
        progress.applied_offset = offset
        progress.late += late > 0
        if newest_ms is None:
            return Outcome.LATE
        progress.signal_timestamp_ms = timestamp_ms
        if progress.watermark_ms is None or newest_ms > progress.watermark_ms:
            progress.watermark_ms = newest_ms
        return Outcome.APPLIED

    @property
    def watermark_ms(self) -> int:
        """Newest event time of the key; 0 before the first signal."""
        return 0 if self.progress.watermark_ms is None else self.progress.watermark_ms

    def close(self, before: int | None = None) -> list[tuple[int, P]]:
        """Give the panes that can no longer change and have not been given before, oldest first.

        `before` keeps panes from that one on open, as far as they are in the window: what is spread over time reaches
        back behind the grace.
        """
        first_open = self.grid.first_open(self.watermark_ms)
        if before is not None:
            first_open = min(first_open, max(before, self.grid.first_in_window(self.watermark_ms)))
        if self.open_from is None:
            # Nothing came before: whatever the first signal put into older panes is final at once.
            final = sorted(index for index in self.panes if index < first_open)
        elif first_open <= self.open_from:
            return []
        else:
            final = sorted(index for index in self.panes if self.open_from <= index < first_open)
        self.open_from = first_open
        return [(index, self.panes[index]) for index in final]

    def evict(self) -> list[P]:
        """Take out the panes that left the window."""
        first = self.grid.first_in_window(self.watermark_ms)
        gone = [index for index in self.panes if index < first]
        return [self.panes.pop(index) for index in gone]

    def open(self, ordered: Sequence[tuple[int, P]] | None = None) -> list[tuple[int, P]]:
        """Give the panes that may still change, oldest first; `ordered` is what that gave, where it is known."""
        if self.open_from is None:
            return []
        first, newest = self.open_from, self.grid.index(self.watermark_ms)
        panes = self.ordered() if ordered is None else ordered
        return [each for each in panes if first <= each[0] <= newest]

    def ordered(self) -> list[tuple[int, P]]:
        """Give every pane, oldest first."""
        return sorted(self.panes.items())
