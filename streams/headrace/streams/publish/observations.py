"""What an engine observes of its requests, until a period is closed: bounded, and no caller ever waits."""

import math
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.schemas.histogram import pack
from headrace.schemas.ids import identifier_problem
from headrace.schemas.signals import Distribution, Metric

MAX_WAITING: Final = 100_000
MAX_SECONDS: Final = 1e7


class Observed(NamedTuple):
    """One request's model and latencies in seconds, as whoever calls has them: they are judged when a period closes.

    None where the request has no such latency.
    """

    model: object
    ttft_s: object
    tbot_s: object
    e2e_s: object
    queue_s: object


_METRICS: Final = (Metric.TTFT, Metric.TBOT, Metric.E2E, Metric.QUEUE)


class Observations:
    """Requests that no period has taken yet. Any number of threads observe, one closes.

    `dropped` counts what came while `most` were waiting, `invalid` what is no latency: not finite, negative, too long.
    """

    def __init__(self, most: int = MAX_WAITING) -> None:
        self._most = most
        self._waiting: deque[Observed] = deque()
        self.dropped = 0
        self.invalid = 0

    def observe(self, observed: Observed) -> None:
        """Take one request; never waits, never raises."""
        if len(self._waiting) >= self._most:
            self.dropped += 1
            return
        # One append, which no other thread can come between.
        self._waiting.append(observed)

    def close(self) -> tuple[Distribution, ...]:
        """Give what waits as one distribution for each model and metric, and begin anew."""
        seen: dict[tuple[str, Metric], list[float]] = {}
        for _ in range(len(self._waiting)):
            model, *latencies = self._waiting.popleft()
            if not isinstance(model, str) or identifier_problem("model", model) is not None:
                self.invalid += 1
                continue
            for metric, seconds in zip(_METRICS, latencies, strict=True):
                if seconds is None:
                    continue
                latency = _latency(seconds)
                if latency is None:
                    self.invalid += 1
                else:
                    seen.setdefault((model, metric), []).append(latency)
        return _distributions(seen)


def _latency(seconds: object) -> float | None:
    """Give the number, or None where it is no latency."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return float(seconds) if 0 <= seconds <= MAX_SECONDS and math.isfinite(seconds) else None


def _distributions(seen: Mapping[tuple[str, Metric], list[float]]) -> tuple[Distribution, ...]:
    found: list[Distribution] = []
    for (model, metric), seconds in sorted(seen.items()):
        zeros, first, counts = pack(seconds)
        found.append(
            Distribution(
                model, metric, len(seconds), math.fsum(seconds), min(seconds), max(seconds), zeros, first, counts
            )
        )
    return tuple(found)
