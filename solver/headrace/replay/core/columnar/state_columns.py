"""What regular engines' states say, as columns: small to send to another process, and made into states where read.

    engine    (n,)   times, counts, gauges; NaN where nothing was measured
    series    (m,)   the series of the first engine, then those of the second; `series_of` says how many each has

Without panes, percentiles and what only the fold goes on from, which no tick reads.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat, starmap
from typing import Any

import numpy as np

from headrace.replay.core.columnar.cursor import Floats, Ints, Marks
from headrace.replay.core.columnar.outcome_panes import OutcomeColumns
from headrace.replay.core.columnar.signals import HEALTHS
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState, Invalid, LatencyState
from headrace.streams.core.engine_telling import GATEWAY_APART, STATUS_HELD

_FILLED = {
    (held, apart): (*((STATUS_HELD,) if held else ()), *((GATEWAY_APART,) if apart else ()))
    for held in (False, True)
    for apart in (False, True)
}
INVALIDS = tuple(Invalid)


@dataclass(frozen=True, slots=True, eq=False)
class StateColumns:
    """States of n engines with m series.

    Attributes:
        keys: of each engine.
        names: model and metric of each series, by number.
        as_of_ms, last_signal_ms, signal_timestamp_ms, late, applied_offset, covered_ms: (n,)
        period_ms: (n,) below 0 where none is known.
        health: (n,) numbers.
        numbers: (n, 6) desired, ready, reporting replicas; running, waiting, KV use.
        coverage, finished_rps: (n,)
        is_held, is_apart: (n,) whether its status is an older one, and whether a gateway's latencies were kept apart.
        invalid: (n,) numbers.
        series_of: (n,)
        series, count: (m,)
        mean_s, smoothed_s: (m,)
        outcomes: of the same engines; None where nobody counted at any of them.
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
    is_apart: Marks
    invalid: Ints
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
    outcomes: OutcomeColumns | None

    def states(self) -> Iterator[tuple[bytes, EngineState]]:
        """Give them as states, by key."""
        latencies = self._latencies()
        end = np.cumsum(self.series_of)
        spans = zip((end - self.series_of).tolist(), end.tolist(), strict=True)
        return self._states(tuple(latencies[begin:end]) for begin, end in spans)

    def bare_states(self) -> Iterator[tuple[bytes, EngineState]]:
        """Give them without latencies, which are most of what there is to make: `engine_windows` has what is read."""
        return self._states(repeat((), len(self.keys)))

    def _states(self, latencies: Iterable[tuple[LatencyState, ...]]) -> Iterator[tuple[bytes, EngineState]]:
        replicas = [_maybe(np.nan_to_num(column).astype(np.int64), np.isnan(column)) for column in self.numbers.T[:3]]
        gauges = [measured(column) for column in self.numbers.T[3:]]
        columns = zip(
            [key.decode() for key in self.keys],
            self.as_of_ms.tolist(),
            self.last_signal_ms.tolist(),
            self.signal_timestamp_ms.tolist(),
            [HEALTHS[number] for number in self.health.tolist()],
            *replicas,
            *gauges,
            latencies,
            self.coverage.tolist(),
            [_FILLED[each] for each in zip(self.is_held.tolist(), self.is_apart.tolist(), strict=True)],
            [INVALIDS[number] for number in self.invalid.tolist()],
            self.late.tolist(),
            self.applied_offset.tolist(),
            [b""] * len(self.keys),
            _maybe(self.period_ms, self.period_ms < 0),
            self.covered_ms.tolist(),
            measured(self.finished_rps),
            repeat(None, len(self.keys)),
            repeat(None, len(self.keys)) if self.outcomes is None else self.outcomes.states(),
            strict=True,
        )
        return zip(self.keys, starmap(EngineState, columns), strict=True)

    def _latencies(self) -> list[LatencyState]:
        numbers: list[int] = self.series.tolist()
        named = [self.names[number] for number in numbers]
        told = zip(named, self.count.tolist(), measured(self.mean_s), measured(self.smoothed_s), strict=True)
        return [
            LatencyState(model, metric, count, mean, smoothed, None, None, None)
            for (model, metric), count, mean, smoothed in told
        ]


def measured(values: Floats) -> list[float | None]:
    """Give values of a column; None where they are NaN."""
    return _maybe(values, np.isnan(values))


def _maybe(values: Ints | Floats, missing: Marks) -> list[Any]:  # whole numbers or not
    """Give values of a column; None where they are missing."""
    told: list[Any] = values.tolist()
    for n in np.flatnonzero(missing).tolist():
        told[n] = None
    return told
