"""How many requests an engine finished per second just now: over the newest periods that add up to RECENT_MS or more.

    finished_rps = requests of the periods that end in the newest panes / the time of these periods

A period's requests are counted in the pane where it ends, so what they are divided by is whole periods, not panes: of a
period of 15 s it is those 15 s. None where nothing says so: no period is known, or part of that time is not covered,
since a report that is missing is not an engine that finished nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from headrace.schemas.signals import Metric
from headrace.streams.core.panes import PaneGrid
from headrace.streams.core.series import Entry, Series

RECENT_MS = 3_000
COVERED = 0.95


class Covering(Protocol):
    """What a pane must tell: its entries by series number, and how much of it is covered."""

    entries: dict[int, Entry]
    covered_ms: int


def finished_rps(
    grid: PaneGrid,
    watermark_ms: int,
    period_ms: int | None,
    series: Sequence[Series],
    panes: Iterable[tuple[int, Covering]],
) -> float | None:
    """Give finished requests per second; whole requests where they are measured, else first tokens.

    Args:
        grid: of the window.
        watermark_ms: end of the newest period.
        period_ms: length of the newest period.
        series: of the engine, by number.
        panes: of the window.
    """
    if not period_ms:
        return None
    first = max(grid.index(watermark_ms - RECENT_MS) + 1, grid.first_in_window(watermark_ms))
    newest = [pane for index, pane in panes if index >= first]
    start_ms = first * grid.pane_ms
    if sum(pane.covered_ms for pane in newest) < COVERED * (watermark_ms - start_ms):
        return None
    periods = (watermark_ms - start_ms - 1) // period_ms + 1
    for metric in (Metric.E2E, Metric.TTFT):
        numbers = {number for number, one in enumerate(series) if one.metric is metric}
        if numbers:
            counted = sum(e.observations for pane in newest for n, e in pane.entries.items() if n in numbers)
            return counted * 1000 / (periods * period_ms)
    return None
