"""Latencies as seen from here, per engine and model: what the data plane tells of engines (vantage GATEWAY).

They include the network, which the solver's program adds again; so their vantage keeps them apart from what engines say
of themselves. `note()` only appends to a bounded deque, so any number of request threads may call it; `close()` gives
one record per engine that was heard from since the close before. Silence is not reported: an engine without a record
was not asked, or has not answered. Values that are no positive finite number of seconds are dropped and counted.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from headrace.dataplane.instant import is_instant
from headrace.schemas.histogram import pack
from headrace.schemas.ids import is_identifier
from headrace.schemas.signals import Distribution, EngineSignals, Metric, Vantage

MAX_PENDING: Final = 100_000
"""Attempts noted between two calls of `close()`; further ones are dropped and counted in `dropped`."""
MAX_PERIOD_MS: Final = 60_000
"""A gap longer than this was not measured (the process was suspended): the record covers its last part."""
MAX_S: Final = 1e6


class LatencyCounter:
    """Latencies of one data plane. One caller closes; any number note.

    Attributes:
        dropped: latencies that were not counted: too many pending, no finite positive number, or no identifier.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.dropped = 0
        self._pending: deque[tuple[Any, Any, Metric, Any]] = deque(maxlen=MAX_PENDING)
        self._open_ms: int | None = None

    def note(self, engine_id: str, model: str, ttft_s: float | None, tbot_s: float | None, now_ms: int) -> None:
        """Note one attempt's latencies; None is not measured. The first one's `now_ms` begins the first period."""
        if self._open_ms is None and is_instant(now_ms):
            self._open_ms = now_ms
        for metric, value in ((Metric.TTFT, ttft_s), (Metric.TBOT, tbot_s)):
            if value is None:
                continue
            if len(self._pending) >= MAX_PENDING:
                self.dropped += 1
            else:
                self._pending.append((engine_id, model, metric, value))

    def close(self, now_ms: int) -> tuple[EngineSignals, ...]:
        """Give what was noted since the last close, by engine; nothing while no time has passed.

        Where the clock stepped back a period begins anew, and what was noted before goes into it.
        """
        if self._open_ms is None or now_ms <= self._open_ms:
            self._open_ms = None if self._open_ms is None else now_ms
            return ()
        start_ms, self._open_ms = max(self._open_ms, now_ms - MAX_PERIOD_MS), now_ms
        seen: dict[str, dict[tuple[str, Metric], list[float]]] = {}
        for _ in range(len(self._pending)):
            engine_id, model, metric, value = self._pending.popleft()
            if _is_latency(value) and all(isinstance(n, str) and is_identifier(n) for n in (engine_id, model)):
                seen.setdefault(engine_id, {}).setdefault((model, metric), []).append(float(value))
            else:
                self.dropped += 1
        return tuple(
            EngineSignals(
                engine_id, self.source, Vantage.GATEWAY, start_ms, now_ms, _distributions(seen[engine_id]), None
            )
            for engine_id in sorted(seen)
        )


def _is_latency(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 < value < MAX_S


def _distributions(of: dict[tuple[str, Metric], list[float]]) -> tuple[Distribution, ...]:
    return tuple(_distribution(model, metric, of[model, metric]) for model, metric in sorted(of))


def _distribution(model: str, metric: Metric, values: Sequence[float]) -> Distribution:
    zeros, first, counts = pack(values)
    return Distribution(
        model=model,
        metric=metric,
        count=len(values),
        sum_s=math.fsum(values),
        min_s=min(values),
        max_s=max(values),
        zero_count=zeros,
        first_bucket=first,
        bucket_counts=counts,
    )
