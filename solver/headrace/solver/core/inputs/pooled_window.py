"""An engine's window, its latencies pooled over models: what a tick measures an engine by.

    pooled mean = sum count x mean / sum count        of those that were measured; 0 where none was
                                                      None where no request counts

Sums go in the order of the latencies, one after the other, so that whoever pools columns comes to the same bits.
"""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.schemas.signals import Metric
from headrace.schemas.state import LatencyState


class PooledWindow(NamedTuple):
    """Means over a window and smoothed ones, s; `requests` are those timed end to end, else to the first token."""

    requests: int
    ttft_s: float | None
    ttft_smoothed_s: float | None
    tbot_s: float | None
    tbot_smoothed_s: float | None
    e2e_s: float | None
    e2e_smoothed_s: float | None


def pooled_window(latencies: Iterable[LatencyState]) -> PooledWindow:
    """Pool the latencies of a state."""
    ttft, tbot, e2e = list[LatencyState](), list[LatencyState](), list[LatencyState]()
    for latency in latencies:
        if latency.count > 0:
            metric = latency.metric
            if metric is Metric.TTFT:
                ttft.append(latency)
            elif metric is Metric.TBOT:
                tbot.append(latency)
            elif metric is Metric.E2E:
                e2e.append(latency)
    requests = sum([latency.count for latency in e2e or ttft])
    return PooledWindow(requests, *_means(ttft), *_means(tbot), *_means(e2e))


def _means(latencies: list[LatencyState]) -> tuple[float | None, float | None]:
    """Give the mean over the window, and the smoothed one."""
    if not latencies:
        return None, None
    if len(latencies) == 1:
        only = latencies[0]
        count, mean, smoothed = only.count, only.mean_s, only.smoothed_s
        return 0.0 if mean is None else count * mean / count, 0.0 if smoothed is None else count * smoothed / count
    return (
        _weighted([(latency.count, latency.mean_s) for latency in latencies]),
        _weighted([(latency.count, latency.smoothed_s) for latency in latencies]),
    )


def _weighted(values: Iterable[tuple[int, float | None]]) -> float:
    total, counted = 0.0, 0
    for count, value in values:
        if value is not None:
            total += count * value
            counted += count
    return total / counted if counted else 0.0
