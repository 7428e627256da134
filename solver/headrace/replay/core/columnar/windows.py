"""The windows of many engines as arrays: what `EngineAccumulator` holds of a regular engine, and the fold over it.

    engine e, series s (a model's metric), slot q mod C of pane q, C panes a window
    count, sum_s   (E, S, C)   requests and seconds of the entries        held   (E, C)  which pane a slot holds
    base, base_ms  (E, S)      smoothed up to the last closed pane        cover  (E, C)  the one span that is covered

Regular is an engine whose periods follow each other: each ends after the one before and begins no earlier than that one
ended, and none is so late that a pane would be lost before it is smoothed. Then every sum is taken in the order in
which the scalar fold takes it, and every value is the same to the bit; exponentials are Python's, once for each length
of time. Mutable inside for speed; nothing outside sees it but through `Rows`.
"""

import math

import numpy as np

from headrace.replay.core.columnar.cursor import Floats, Ints, Marks
from headrace.streams.core.panes import PaneGrid
from headrace.streams.settings import StreamsSettings

NOWHERE = -(1 << 62)
UNKNOWN_PERIOD = -1
_FIRST_ENGINES, _FIRST_SERIES = 64, 4
_LONGEST_MS = 10_000
"""Between two panes' ends, of those for which an exponential is remembered."""


class Windows:
    """Arrays by engine; `grow` makes room."""

    watermark_ms: Ints
    open_from: Ints
    covered_to: Ints
    period_ms: Ints
    held: Ints
    cover_from: Ints
    cover_to: Ints
    count: Ints
    sum_s: Floats
    known: Marks
    base: Floats
    base_ms: Ints

    def __init__(self, settings: StreamsSettings) -> None:
        self.settings = settings
        self.grid = PaneGrid.of(settings)
        self.engines = self.series = 0
        self._factors: Floats = np.full((2, _LONGEST_MS + 1), np.nan)
        self._allocate(_FIRST_ENGINES, _FIRST_SERIES)

    def grow(self, engines: int, series: int) -> None:
        """Make room for so many engines and series."""
        rows, columns = self.known.shape
        if engines > rows or series > columns:
            self._allocate(2 * engines if engines > rows else rows, 2 * series if series > columns else columns)
        self.engines, self.series = max(self.engines, engines), max(self.series, series)

    def clear(self, e: int) -> None:
        """Make an engine's row as if it had never been heard of."""
        for name, (_, empty) in self._shapes(0, 0).items():
            getattr(self, name)[e] = empty

    def _shapes(self, rows: int, columns: int) -> dict[str, tuple[tuple[int, ...], float]]:
        """Give each array's shape and what stands where nothing is."""
        panes = self.grid.count
        return {
            "watermark_ms": ((rows,), NOWHERE),
            "open_from": ((rows,), NOWHERE),
            "covered_to": ((rows,), NOWHERE),
            "period_ms": ((rows,), UNKNOWN_PERIOD),
            "held": ((rows, panes), NOWHERE),
            "cover_from": ((rows, panes), 0),
            "cover_to": ((rows, panes), 0),
            "count": ((rows, columns, panes), 0),
            "sum_s": ((rows, columns, panes), 0.0),
            "known": ((rows, columns), False),
            "base": ((rows, columns), math.nan),
            "base_ms": ((rows, columns), NOWHERE),
        }

    def _allocate(self, rows: int, columns: int) -> None:
        for name, (shape, empty) in self._shapes(rows, columns).items():
            made = np.full(shape, empty)
            old = getattr(self, name, None)
            if old is not None:
                made[tuple(slice(length) for length in old.shape)] = old
            setattr(self, name, made)

    def regular(self, e: Ints, start_ms: Ints, end_ms: Ints) -> Marks:
        """Say which engines stay regular with these periods, one each."""
        grid, watermark = self.grid, self.watermark_ms[e]
        fresh = watermark == NOWHERE
        pane, before = self._index(end_ms), self._index(watermark)
        # A pane's slot is taken anew after `count` panes; by then it must have been smoothed.
        room = grid.count - 2 - (-(-grid.grace_ms // grid.pane_ms))
        to_ms = self.covered_to[e]
        # A gap inside a pane would leave two spans of it.
        gap = (start_ms > to_ms) & (start_ms // grid.pane_ms == (to_ms - 1) // grid.pane_ms)
        follows = (end_ms > watermark) & (start_ms >= to_ms) & ~gap & (pane - before <= room)
        stays: Marks = fresh | follows
        return stays

    def apply(self, e: Ints, start_ms: Ints, end_ms: Ints) -> None:
        """Move the watermarks of engines, one period each, and cover its panes; entries come next, then `close`."""
        self.watermark_ms[e] = end_ms
        self.period_ms[e] = end_ms - start_ms
        pane = self._index(end_ms)
        first = np.maximum(start_ms // self.grid.pane_ms, pane - self.grid.count + 1)
        for step in range(int((pane - first).max(initial=-1)) + 1):
            at = first + step
            some = at <= pane
            self._cover(e[some], at[some], start_ms[some], end_ms[some])
        # A period without length covers nothing, and its entries still have a pane.
        self._hold(e, pane)
        self.covered_to[e] = np.maximum(self.covered_to[e], end_ms)

    def enter(self, e: Ints, series: Ints, count: Ints, sum_s: Floats) -> None:
        """Add entries to the panes in which their periods end; each (engine, series) at most once."""
        self.known[e, series] = True
        some = count > 0
        e, series = e[some], series[some]
        slot = self._index(self.watermark_ms[e]) % self.grid.count
        self.sum_s[e, series, slot] += sum_s[some]
        self.count[e, series, slot] += count[some]

    def close(self, e: Ints) -> None:
        """Smooth the panes that can no longer change, oldest first."""
        first_open = self._index(self.watermark_ms[e] - self.grid.grace_ms)
        begun = self.open_from[e] != NOWHERE
        start = np.where(begun, self.open_from[e], first_open)
        for step in range(int((first_open - start).max(initial=0))):
            at = start + step
            some = at < first_open
            self._smooth_pane(e[some], at[some])
        self.open_from[e] = np.maximum(first_open, start)

    def smoothed(self, e: Ints) -> tuple[Floats, Ints]:
        """Give the smoothed means with the open panes on top, and when they are of, (n, S); nothing is changed."""
        value, at_ms = self.base[e, : self.series], self.base_ms[e, : self.series]
        start = self.open_from[e]
        # An engine that said nothing itself has no pane to be smoothed.
        last = np.where(start == NOWHERE, start - 1, self.newest(e))
        for step in range(int((last - start).max(initial=-1)) + 1):
            pane = start + step
            row = np.flatnonzero(pane <= last)
            row = row[self.held[e[row], pane[row] % self.grid.count] == pane[row]]
            end_ms = np.minimum((pane[row] + 1) * self.grid.pane_ms, self.watermark_ms[e[row]])
            self._smooth(e[row], pane[row], end_ms, (value, at_ms, row))
        return value, at_ms

    def summed(self, e: Ints, row: Ints, series: Ints, window: tuple[Ints, Marks]) -> tuple[Ints, Floats]:
        """Give the requests and seconds of windows, of some series of some of the engines `e`, (m,) each.

        Args:
            e: engines, (n,).
            row: (m,) which of them.
            series: (m,) which series of it.
            window: as `ordered` gives it.
        """
        slots, held = window
        count, sum_s = np.zeros(len(row), dtype=np.int64), np.zeros(len(row))
        engine = e[row]
        for pane in range(self.grid.count):
            slot, some = slots[row, pane], held[row, pane]
            count += np.where(some, self.count[engine, series, slot], 0)
            sum_s += np.where(some, self.sum_s[engine, series, slot], 0.0)
        return count, sum_s

    def ordered(self, e: Ints) -> tuple[Ints, Marks]:
        """Give the slots of each window, oldest pane first, (n, C), and which hold their pane."""
        first = self._index(self.watermark_ms[e]) - self.grid.count + 1
        panes = first[:, None] + np.arange(self.grid.count)
        slots = panes % self.grid.count
        return slots, self.held[e[:, None], slots] == panes

    def newest(self, e: Ints) -> Ints:
        """Give the panes of the engines' newest signals; that of instant 0 before the first, as in the live fold."""
        watermark = self.watermark_ms[e]
        return self._index(np.where(watermark == NOWHERE, 0, watermark))

    def _index(self, end_ms: Ints) -> Ints:
        return -(-end_ms // self.grid.pane_ms) - 1

    def _hold(self, e: Ints, pane: Ints) -> None:
        """Give panes their slots; what a slot held before has left the window."""
        slot = pane % self.grid.count
        new = self.held[e, slot] != pane
        e, slot, pane = e[new], slot[new], pane[new]
        self.held[e, slot] = pane
        self.cover_from[e, slot] = self.cover_to[e, slot] = 0
        self.count[e, :, slot] = 0
        self.sum_s[e, :, slot] = 0.0

    def _cover(self, e: Ints, pane: Ints, start_ms: Ints, end_ms: Ints) -> None:
        self._hold(e, pane)
        slot, width = pane % self.grid.count, self.grid.pane_ms
        from_ms, to_ms = np.maximum(start_ms, pane * width), np.minimum(end_ms, (pane + 1) * width)
        empty = self.cover_to[e, slot] == self.cover_from[e, slot]
        some = to_ms > from_ms
        begin = np.where(empty, from_ms, self.cover_from[e, slot])
        self.cover_from[e[some], slot[some]] = begin[some]
        self.cover_to[e[some], slot[some]] = to_ms[some]

    def _smooth_pane(self, e: Ints, pane: Ints) -> None:
        there = self.held[e, pane % self.grid.count] == pane
        e, pane = e[there], pane[there]
        self._smooth(e, pane, (pane + 1) * self.grid.pane_ms, (self.base, self.base_ms, e))

    def _smooth(self, e: Ints, pane: Ints, end_ms: Ints, into: tuple[Floats, Ints, Ints]) -> None:
        """Move smoothed values towards a pane's means: rows `into[2]` of `into[0]` and `into[1]`."""
        values, at, rows = into
        of, s = np.nonzero(self.count[e, : self.series, pane % self.grid.count])
        if not len(of):
            return
        slot, row = (pane % self.grid.count)[of], rows[of]
        mean = self.sum_s[e[of], s, slot] / self.count[e[of], s, slot]
        before, before_ms, now_ms = values[row, s], at[row, s], end_ms[of]
        first = before_ms == NOWHERE
        dt_ms = np.where(first, 1, now_ms - before_ms)
        gain = self._gains(dt_ms, mean > before)
        moved = np.where(first, mean, before - gain * (mean - before))
        newer = dt_ms > 0
        row, s = row[newer], s[newer]
        values[row, s] = moved[newer]
        at[row, s] = now_ms[newer]

    def _gains(self, dt_ms: Ints, worse: Marks) -> Floats:
        """Give expm1(-dt / tau) of each; worse news has a tau of its own."""
        table, longest = self._factors, self._factors.shape[1] - 1
        dt_ms, which = np.maximum(dt_ms, 0), worse.astype(np.int64)
        gains: Floats = table[which, np.minimum(dt_ms, longest)]
        for n in np.flatnonzero(np.isnan(gains) | (dt_ms > longest)).tolist():
            dt, tau_ms = int(dt_ms[n]), self.settings.tau_bad_ms if worse[n] else self.settings.tau_good_ms
            gains[n] = math.expm1(-dt / tau_ms)
            if dt <= longest:
                table[which[n], dt] = gains[n]
        return gains
