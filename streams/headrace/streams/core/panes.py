"""Panes: event time cut into equal steps; a period belongs to the pane in which it ends.

    pane q holds the instants (q * pane_ms, (q + 1) * pane_ms]         q = ceil(end_ms / pane_ms) - 1

    watermark W = newest event time of the key; it never goes back
    window      = the last `count` panes up to the one that holds W
    open        = the panes whose end is at or after W - grace: they may still change
    late        = a period that ends in a pane that is not open: counted, and not applied

    pane      |  q-4  |  q-3  |  q-2  |  q-1  |   q   |
                         late <--|--> open        ^ W          (grace two panes)

The watermark is per key, not per partition: what a key's state says then depends on that key's signals alone, so it is
the same after a kill, under another batching, and beside other keys.
"""

from dataclasses import dataclass

from headrace.streams.settings import StreamsSettings

Cover = tuple[tuple[int, int], ...]
"""Instants that periods covered, as disjoint spans [from, to) in ascending order, ms since the epoch."""


@dataclass(frozen=True, slots=True)
class PaneGrid:
    """The panes that a setting cuts time into: `count` panes of `pane_ms` make the window."""

    pane_ms: int
    count: int
    grace_ms: int

    @classmethod
    def of(cls, settings: StreamsSettings) -> "PaneGrid":
        """Give the grid of the settings."""
        return cls(pane_ms=settings.pane_ms, count=settings.panes, grace_ms=settings.grace_ms)

    def index(self, end_ms: int) -> int:
        """Give the pane in which a period that ends at `end_ms` is counted."""
        return -(-end_ms // self.pane_ms) - 1

    def end_ms(self, index: int) -> int:
        """Give a pane's last instant."""
        return (index + 1) * self.pane_ms

    def first_in_window(self, watermark_ms: int) -> int:
        """Give the oldest pane of the window."""
        return self.index(watermark_ms) - self.count + 1

    def first_open(self, watermark_ms: int) -> int:
        """Give the oldest pane that may still change; the settings see to it that it lies in the window."""
        return self.index(watermark_ms - self.grace_ms)

    def as_of_ms(self, watermark_ms: int) -> int:
        """Give the end of the last closed pane, the instant that a state describes; never after the watermark."""
        return watermark_ms // self.pane_ms * self.pane_ms

    def window_ms(self, watermark_ms: int) -> int:
        """Give the length of the window up to the watermark: full only where the watermark is a pane's end."""
        return watermark_ms - self.first_in_window(watermark_ms) * self.pane_ms


def covered(cover: Cover, from_ms: int, to_ms: int) -> Cover:
    """Give the union of a cover and the span [from_ms, to_ms); an empty span changes nothing."""
    if from_ms >= to_ms:
        return cover
    if not cover:
        return ((from_ms, to_ms),)
    before = tuple(span for span in cover if span[1] < from_ms)
    after = tuple(span for span in cover if span[0] > to_ms)
    touched = cover[len(before) : len(cover) - len(after)]
    if touched:
        from_ms, to_ms = min(from_ms, touched[0][0]), max(to_ms, touched[-1][1])
    return (*before, (from_ms, to_ms), *after)


def covered_ms(cover: Cover) -> int:
    """Give the length of a cover."""
    return sum(to_ms - from_ms for from_ms, to_ms in cover)
