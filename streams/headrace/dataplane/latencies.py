"""Latencies and outcomes as seen from here, per engine and model: what the data plane tells of engines.

Their vantage is GATEWAY. Latencies include the network, which the solver's program adds again; so they are kept apart
from what engines say of themselves. Outcomes are of use as they are: an engine that cannot be reached says nothing
itself. Failed are errors and timeouts; that an engine is full, or that a client went away, is no outcome of it.

`note()` only appends to a bounded deque, so any number of request threads may call it; `close()` gives one record per
engine that was heard from, or failed, since the close before. Silence is not reported: an engine without a record was
not asked, or has not answered. Values that are no positive finite number of seconds are dropped and counted.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.dataplane.instant import is_instant
from headrace.schemas.histogram import pack
from headrace.schemas.ids import is_identifier
from headrace.schemas.signals import Distribution, EngineSignals, Metric, Outcomes, Vantage

MAX_PENDING: Final = 100_000
"""Attempts noted between two calls of `close()`; further ones are dropped and counted in `dropped`."""
MAX_PERIOD_MS: Final = 60_000
"""A gap longer than this was not measured (the process was suspended): the record covers its last part."""
MAX_S: Final = 1e6
_FAILED: Final = {AttemptOutcome.OK: False, AttemptOutcome.ERROR: True, AttemptOutcome.TIMEOUT: True}


class LatencyCounter:
    """Latencies of one data plane. One caller closes; any number note.

    Attributes:
        dropped: latencies and outcomes that were not counted: too many pending, no finite positive number, or no
            identifier.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.dropped = 0
        self._pending: deque[tuple[Any, Any, Metric | None, Any]] = deque(maxlen=MAX_PENDING)
        self._open_ms: int | None = None

    def note(
        self,
        engine_id: str,
        model: str,
        ttft_s: float | None,
        tbot_s: float | None,
        now_ms: int,
        outcome: AttemptOutcome | None = None,
    ) -> None:
        """Note one attempt; None is not measured. The first one's `now_ms` begins the first period."""
        if self._open_ms is None and is_instant(now_ms):
            self._open_ms = now_ms
        failed = None if outcome is None else _FAILED.get(outcome)
        for metric, value in ((Metric.TTFT, ttft_s), (Metric.TBOT, tbot_s), (None, failed)):
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
        ended: dict[str, dict[str, list[int]]] = {}
        for _ in range(len(self._pending)):
            engine_id, model, metric, value = self._pending.popleft()
            if not all(isinstance(n, str) and is_identifier(n) for n in (engine_id, model)):
                self.dropped += 1
            elif metric is None:
                ended.setdefault(engine_id, {}).setdefault(model, [0, 0])[value] += 1
            elif _is_latency(value):
                seen.setdefault(engine_id, {}).setdefault((model, metric), []).append(float(value))
            else:
                self.dropped += 1
        return tuple(
            EngineSignals(
                engine_id,
                self.source,
                Vantage.GATEWAY,
                start_ms,
                now_ms,
                _distributions(seen.get(engine_id, {})),
                None,
                outcomes=_outcomes(ended.get(engine_id)),
            )
            for engine_id in sorted(seen.keys() | ended.keys())
        )


def _outcomes(of: dict[str, list[int]] | None) -> tuple[Outcomes, ...] | None:
    return None if of is None else tuple(Outcomes(model, *counts) for model, counts in sorted(of.items()))


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
