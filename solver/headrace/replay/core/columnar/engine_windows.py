"""The newest window of each engine, as columns: pooled by engine, for a tick, and by model, for what a tick tells.

    pooled(engines)      requests-weighted means of each engine               as `solver.core.inputs.pooled_window`
    Standing.pooled()    sums of each model and metric over all engines       as `replay.core.told.pooled`

Both to the bit: numpy's `bincount` and `cumsum` add one after the other, in the order in which the others do.
"""

from collections.abc import Iterator

import numpy as np

from headrace.replay.core.columnar.cursor import Floats, Ints
from headrace.replay.core.columnar.state_columns import StateColumns, measured
from headrace.replay.core.told import Pool
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState
from headrace.solver.core.inputs.pooled_window import PooledWindow


def pooled_windows(columns: StateColumns) -> Iterator[tuple[bytes, PooledWindow]]:
    """Give each engine's window, by key."""
    of_metric = {metric: _Series(columns, metric) for metric in (Metric.TTFT, Metric.TBOT, Metric.E2E)}
    ttft, e2e = of_metric[Metric.TTFT], of_metric[Metric.E2E]
    requests = np.where(e2e.number > 0, e2e.requests, ttft.requests)
    means = [measured(mean) for series in of_metric.values() for mean in (series.mean_s, series.smoothed_s)]
    rows = zip(requests.astype(np.int64).tolist(), *means, strict=True)
    return zip(columns.keys, map(PooledWindow._make, rows), strict=True)


class _Series:
    """The series of one metric that count, pooled by engine, (n,): their number, requests, means; NaN where none is."""

    def __init__(self, columns: StateColumns, metric: Metric) -> None:
        of_name = np.array([each is metric for _, each in columns.names], dtype=np.bool_)
        some = np.flatnonzero(of_name[columns.series] & (columns.count > 0))
        engine, count = np.repeat(np.arange(len(columns.keys)), columns.series_of)[some], columns.count[some]
        self.number = np.bincount(engine, minlength=len(columns.keys))
        self.requests = np.bincount(engine, count, len(columns.keys))
        self.mean_s = self._mean(engine, count, columns.mean_s[some])
        self.smoothed_s = self._mean(engine, count, columns.smoothed_s[some])

    def _mean(self, engine: Ints, count: Ints, value: Floats) -> Floats:
        known = ~np.isnan(value)
        total = np.bincount(engine[known], count[known] * value[known], len(self.number))
        counted = np.bincount(engine[known], count[known], len(self.number))
        return np.where(self.number > 0, np.where(counted > 0, total / np.maximum(counted, 1), 0.0), np.nan)


class EngineWindows:
    """The newest window of each engine that was seen; `told.pooled` of all their states, without these."""

    def __init__(self) -> None:
        self._row: dict[bytes, int] = {}
        self._series: dict[tuple[str, Metric], int] = {}
        self._count: Ints = np.zeros((0, 0), dtype=np.int64)
        self._mean_s: Floats = np.zeros((0, 0))
        self._middle_ms: Floats = np.zeros(0)
        self._by_key: Ints = np.zeros(0, dtype=np.int64)

    def take(self, columns: StateColumns) -> None:
        """Take states' windows for those that stood."""
        series = np.array([self._series.setdefault(name, len(self._series)) for name in columns.names], dtype=np.int64)
        row = np.array([self._row.setdefault(key, len(self._row)) for key in columns.keys], dtype=np.int64)
        self._make_room()
        self._count[row] = 0
        self._middle_ms[row] = columns.as_of_ms - columns.covered_ms / 2
        engine = np.repeat(np.arange(len(row)), columns.series_of)
        counts = (columns.count > 0) & ~np.isnan(columns.mean_s) & (columns.covered_ms[engine] > 0)
        place = row[engine[counts]], series[columns.series[counts]]
        self._count[place], self._mean_s[place] = columns.count[counts], columns.mean_s[counts]

    def put(self, key: bytes, state: EngineState) -> None:
        """Take the window of a state that is in no columns."""
        row = self._row.setdefault(key, len(self._row))
        told = [each for each in state.latencies if each.count and each.mean_s is not None and state.covered_ms]
        series = [self._series.setdefault((each.model, each.metric), len(self._series)) for each in told]
        self._make_room()
        self._count[row] = 0
        self._middle_ms[row] = state.as_of_ms - (state.covered_ms or 0) / 2
        for number, each in zip(series, told, strict=True):
            self._count[row, number], self._mean_s[row, number] = each.count, each.mean_s or 0.0

    def forget(self, key: bytes) -> None:
        """Drop an engine's; its row waits for it to come back."""
        if key in self._row:
            self._count[self._row[key]] = 0

    def pooled(self) -> dict[str, dict[Metric, Pool]]:
        """Add up the windows of all engines by model and metric, in the order of their keys."""
        pools: dict[str, dict[Metric, Pool]] = {}
        if len(self._by_key) < len(self._row):
            self._by_key = np.array([row for _, row in sorted(self._row.items())], dtype=np.int64)
        row = self._by_key
        count = self._count[row]
        requests: list[int] = count.sum(axis=0).tolist()
        if not any(requests):
            return pools
        total = np.cumsum(count * self._mean_s[row], axis=0)[-1].tolist()
        middle = np.cumsum(count * self._middle_ms[row, None], axis=0)[-1].tolist()
        for (model, metric), number in self._series.items():
            if requests[number]:
                pools.setdefault(model, {})[metric] = Pool(requests[number], total[number], middle[number])
        return pools

    def _make_room(self) -> None:
        rows, series = self._count.shape
        if rows >= len(self._row) and series >= len(self._series):
            return
        size = max(rows, 2 * len(self._row)), max(series, len(self._series))
        count, mean_s, middle_ms = np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size[0])
        count[:rows, :series], mean_s[:rows, :series], middle_ms[:rows] = self._count, self._mean_s, self._middle_ms
        self._count, self._mean_s, self._middle_ms = count, mean_s, middle_ms
