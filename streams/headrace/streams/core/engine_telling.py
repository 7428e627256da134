"""What an engine's accumulator says: its `EngineState`, over whatever is counted at the moment; nothing is changed."""

from itertools import starmap
from operator import attrgetter
from typing import Protocol

from headrace.schemas.series import TbotKind
from headrace.schemas.signals import EngineStatus, Metric
from headrace.schemas.state import EngineState, Invalid, LatencyState
from headrace.streams.core.completions import finished_rps
from headrace.streams.core.differencing.book import SeriesBook
from headrace.streams.core.engine_gauges import merged, status_of
from headrace.streams.core.engine_pane import EnginePane
from headrace.streams.core.ledger import Ledger
from headrace.streams.core.outcomes import OutcomePanes
from headrace.streams.core.series import Entry, Series, latency_of, smoothed_by
from headrace.streams.core.window import Window
from headrace.streams.settings import StreamsSettings

_MODEL_AND_METRIC = attrgetter("model", "metric")
STATUS_HELD = "STATUS_HELD"
"""Rule: the newest signal had no status; the status of an older period is shown."""
SERIES_DROPPED = "SERIES_DROPPED"
"""Rule: the newest signal with latencies named more series, or larger ones, than a state holds; some are not in it."""
HISTOGRAMS_DROPPED = "HISTOGRAMS_DROPPED"
"""Rule: histograms of the window were larger than MAX_ENTRY_BYTES; quantiles are those of what is left."""
GATEWAY_APART = "GATEWAY_APART"
"""Rule: latencies of the window were also seen from a gateway or client; they include the network and are not in it."""
SERIES_FOLDED = "SERIES_FOLDED"
"""Rule: since its beginning the engine once had more series than are told apart; those beyond were left out."""
PERIOD_BEYOND_WINDOW = "PERIOD_BEYOND_WINDOW"
"""Rule: series are read less often than the window is long; its newest difference stands for all of it."""


class Folded(Protocol):
    """What an engine's fold holds; see `EngineAccumulator`."""

    engine_id: str
    settings: StreamsSettings
    window: Window[EnginePane]
    status: EngineStatus
    status_end_ms: int
    dropped: bool
    period_ms: int | None
    ledger: Ledger | None
    tbot_kinds: dict[str, TbotKind]
    outcomes: OutcomePanes

    @property
    def series(self) -> list[Series]:
        """Latency series by number."""
        ...


def engine_state(of: Folded, packed: bytes, book: SeriesBook | None) -> EngineState:
    """Give the state that an accumulator says.

    Args:
        of: the accumulator.
        packed: its panes, packed.
        book: its series' levels and gauges; None where it has none.
    """
    window, progress = of.window, of.window.progress
    status, status_end_ms = of.status, of.status_end_ms
    found = None if book is None else status_of(book, of.period_ms)
    if found is not None:
        status, status_end_ms = merged(status, found[0]), max(status_end_ms, found[1])
    panes = window.ordered()
    covered_total = sum(pane.covered_ms for _, pane in panes)
    length_ms = window.grid.window_ms(window.watermark_ms)
    coverage = covered_total / length_ms if progress.watermark_ms is not None else 0.0
    return EngineState(
        engine_id=of.engine_id,
        as_of_ms=window.grid.as_of_ms(window.watermark_ms),
        last_signal_ms=window.watermark_ms,
        signal_timestamp_ms=progress.signal_timestamp_ms,
        health=status.health,
        replicas_desired=status.replicas_desired,
        replicas_ready=status.replicas_ready,
        replicas_reporting=status.replicas_reporting,
        running=status.running,
        waiting=status.waiting,
        kv_usage=status.kv_usage,
        latencies=_latencies(of, panes),
        coverage=coverage,
        filled=_filled(of, panes, status_end_ms),
        invalid=_invalid(of, coverage),
        late=progress.late,
        applied_offset=progress.applied_offset,
        panes=packed,
        period_ms=of.period_ms,
        covered_ms=covered_total,
        finished_rps=finished_rps(window.grid, window.watermark_ms, of.period_ms, of.series, panes),
        outcomes=of.outcomes.states(window.watermark_ms),
    )


def _latencies(of: Folded, panes: list[tuple[int, EnginePane]]) -> tuple[LatencyState, ...]:
    series = of.series
    entries: list[list[Entry]] = [[] for _ in series]
    for _, pane in panes:
        for number, entry in pane.entries.items():
            entries[number].append(entry)
    smoothed = [one.base for one in series]
    watermark_ms = of.window.watermark_ms
    for index, pane in of.window.open(panes):
        at_ms = min(of.window.grid.end_ms(index), watermark_ms)
        for number, entry in pane.entries.items():
            smoothed[number] = smoothed_by(smoothed[number], entry, at_ms, of.settings)
    kinds = [of.tbot_kinds.get(one.model) if one.metric is Metric.TBOT else None for one in series]
    found = list(starmap(latency_of, zip(series, entries, smoothed, kinds, strict=True)))
    found.sort(key=_MODEL_AND_METRIC)
    return tuple(found)


def _filled(of: Folded, panes: list[tuple[int, EnginePane]], status_end_ms: int) -> tuple[str, ...]:
    window = of.window
    held = 0 <= status_end_ms < window.watermark_ms
    thinned = any(entry.thinned for _, pane in panes for entry in pane.entries.values())
    found = {SERIES_DROPPED: of.dropped, HISTOGRAMS_DROPPED: thinned, STATUS_HELD: held}
    if of.ledger is not None:
        apart_ms, length_ms = of.ledger.apart_ms, of.settings.window_ms
        found[GATEWAY_APART] = apart_ms is not None and apart_ms > window.watermark_ms - length_ms
        found[SERIES_FOLDED] = of.ledger.book.tally.folded > 0
        found[PERIOD_BEYOND_WINDOW] = bool(of.ledger.book.levels) and (of.period_ms or 0) > length_ms
    return tuple(rule for rule, applies in found.items() if applies)


def _invalid(of: Folded, coverage: float) -> Invalid:
    if of.window.progress.watermark_ms is None:
        return Invalid.NO_SIGNAL_YET
    return Invalid.LOW_COVERAGE if coverage < of.settings.min_coverage else Invalid.NO
