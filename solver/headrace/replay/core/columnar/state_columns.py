"""What regular engines' states say, as columns: small to send to another process, and made into states where read.

    engine    (n,)   times, counts, gauges; NaN where nothing was measured
    series    (m,)   the series of the first engine, then those of the second; `series_of` says how many each has

Without panes and percentiles, which no tick reads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap
from typing import Any

import numpy as np

from headrace.replay.core.columnar.cursor import Floats, Ints, Marks
from headrace.replay.core.columnar.signals import HEALTHS
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState, Invalid, LatencyState
from headrace.streams.core.engine_telling import STATUS_HELD

_FILLED = {False: (), True: (STATUS_HELD,)}
_INVALID = {False: Invalid.NO, True: Invalid.LOW_COVERAGE}


@dataclass(frozen=True, slots=True, eq=False)
class StateColumns:
    """States of n engines with m series.

    Attributes:
        keys: of each engine.
        names: model and metric of each series, by number.
        as_of_ms, last_signal_ms, signal_timestamp_ms, late, applied_offset, period_ms, covered_ms: (n,)
        health: (n,) numbers.
        numbers: (n, 6) desired, ready, reporting replicas; running, waiting, KV use.
        coverage, finished_rps: (n,)
        is_held, is_low: (n,) whether its status is an older one, and whether its window is hardly covered.
        series_of: (n,)
        series, count: (m,)
        mean_s, smoothed_s: (m,)
    """

    keys: tuple[bytes, ...]
    names: tuple[tuple[str, Metric], ...]
    as_of_ms: Ints
    last_signal_ms: Ints
    signal_timestamp_ms: Ints
    health: Ints
    numbers: Floats
    coverage: Floats
    is_held: Marks
    is_low: Marks
    late: Ints
    applied_offset: Ints
    period_ms: Ints
    covered_ms: Ints
    finished_rps: Floats
    series_of: Ints
    series: Ints
    count: Ints
    mean_s: Floats
    smoothed_s: Floats

    def states(self) -> Iterator[tuple[bytes, EngineState]]:
        """Give them as states, by key."""
        latencies = self._latencies()
        end = np.cumsum(self.series_of)
        replicas = [_maybe(np.nan_to_num(column).astype(np.int64), np.isnan(column)) for column in self.numbers.T[:3]]
        gauges = [_measured(column) for column in self.numbers.T[3:]]
        columns = zip(
            [key.decode() for key in self.keys],
            self.as_of_ms.tolist(),
            self.last_signal_ms.tolist(),
            self.signal_timestamp_ms.tolist(),
            [HEALTHS[number] for number in self.health.tolist()],
            *replicas,
            *gauges,
            [tuple(latencies[a:b]) for a, b in zip((end - self.series_of).tolist(), end.tolist(), strict=True)],
            self.coverage.tolist(),
            [_FILLED[held] for held in self.is_held.tolist()],
            [_INVALID[low] for low in self.is_low.tolist()],
            self.late.tolist(),
            self.applied_offset.tolist(),
            [b""] * len(self.keys),
            self.period_ms.tolist(),
            self.covered_ms.tolist(),
            _measured(self.finished_rps),
            strict=True,
        )
        return zip(self.keys, starmap(EngineState, columns), strict=True)

    def _latencies(self) -> list[LatencyState]:
        numbers: list[int] = self.series.tolist()
        named = [self.names[number] for number in numbers]
        told = zip(named, self.count.tolist(), _measured(self.mean_s), _measured(self.smoothed_s), strict=True)
        return [
            LatencyState(model, metric, count, mean, smoothed, None, None, None)
            for (model, metric), count, mean, smoothed in told
        ]


def _measured(values: Floats) -> list[float | None]:
    return _maybe(values, np.isnan(values))


def _maybe(values: Ints | Floats, missing: Marks) -> list[Any]:  # whole numbers or not
    """Give values of a column; None where they are missing."""
    told: list[Any] = values.tolist()
    for n in np.flatnonzero(missing).tolist():
        told[n] = None
    return told
