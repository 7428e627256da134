"""What an engine publishes: the latencies that came to pass in the period, and its status at the period's end.

An observation is dated when it happens: TTFT when the first token leaves, TBOT and E2E at the last, QUEUE on leaving
the queue. TTFT and E2E hold the wait in the queue, as a real engine's do. One TBOT observation per request, its mean.
"""

import heapq

from headrace.schemas.histogram import pack
from headrace.schemas.signals import Distribution, EngineSignals, EngineStatus, Metric, Outcomes, Vantage

METRICS = (Metric.E2E, Metric.QUEUE, Metric.TBOT, Metric.TTFT)


class Observations:
    """Latencies in the order in which they come to pass; `take_until` hands out and forgets those that have."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._ahead: list[tuple[float, int, Metric, float]] = []
        self._added = 0
        self.failed = 0
        """Requests that the engine answered with an error since the last time, at once."""
        self.since_s = 0.0

    def add(self, at_s: float, metric: Metric, value_s: float) -> None:
        """Note a latency that comes to pass at `at_s`, now or later."""
        self._added += 1
        heapq.heappush(self._ahead, (at_s, self._added, metric, value_s))

    def reset(self, now_s: float) -> None:
        """Forget everything: the process has died."""
        self._ahead.clear()
        self.failed = 0
        self.since_s = now_s

    def take_until(self, now_s: float) -> tuple[Distribution, ...]:
        """Give the distributions of what came to pass before `now_s`, one per metric; all of them, also without any."""
        values: dict[Metric, list[float]] = {metric: [] for metric in METRICS}
        while self._ahead and self._ahead[0][0] < now_s:
            _, _, metric, value_s = heapq.heappop(self._ahead)
            values[metric].append(value_s)
        self.since_s = now_s
        return tuple(_distribution(self._model, metric, values[metric]) for metric in METRICS)

    def take_outcomes(self, distributions: tuple[Distribution, ...]) -> tuple[Outcomes, ...]:
        """Give how the requests of a period ended, of which these are the distributions, and forget the failed ones."""
        failed, self.failed = self.failed, 0
        succeeded = sum(each.count for each in distributions if each.metric is Metric.E2E)
        return (Outcomes(self._model, succeeded, failed),)


def _distribution(model: str, metric: Metric, values: list[float]) -> Distribution:
    zeros, first, counts = pack(values)
    return Distribution(
        model=model,
        metric=metric,
        count=len(values),
        sum_s=sum(values),
        min_s=min(values, default=None),
        max_s=max(values, default=None),
        zero_count=zeros,
        first_bucket=first,
        bucket_counts=counts,
    )


def signals_record(
    engine_id: str,
    period_ms: tuple[int, int],
    distributions: tuple[Distribution, ...],
    status: EngineStatus,
    outcomes: tuple[Outcomes, ...],
) -> EngineSignals:
    """Build the record of one period (start and end in ms since the epoch)."""
    return EngineSignals(
        engine_id=engine_id,
        source=f"{engine_id}/sim",
        vantage=Vantage.ENGINE,
        period_start_ms=period_ms[0],
        period_end_ms=period_ms[1],
        distributions=distributions,
        status=status,
        outcomes=outcomes,
    )
