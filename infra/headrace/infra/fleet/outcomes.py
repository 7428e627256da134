"""The count of what became of requests: by phase, cluster, engine, kind and reason; latencies by phase to 1 ms.

Bounded: one counter per distinct combination and one per distinct millisecond, whatever the number of requests.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.infra.fleet.request import Ended, Kind, Request


@dataclass(frozen=True, slots=True)
class Slice:
    """What one counter of endings is for."""

    phase: str
    cluster: str
    engine_id: str | None
    kind: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Latencies of answered requests in ms; all None where there were none."""

    count: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(slots=True)
class Tally:
    """Counts requests as they arrive and end. `open` is how many have arrived and not ended."""

    phase: str = "start"
    arrived: int = 0
    ended: Counter[Slice] = field(default_factory=Counter[Slice])
    attempts: int = 0
    retries: int = 0
    routed_to_known_dead: int = 0
    spilled: int = 0
    """Attempts that a surge sent elsewhere."""
    latency_ms: dict[str, Counter[int]] = field(default_factory=dict[str, Counter[int]])
    _phase_of_open: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def open(self) -> int:
        """Requests that have arrived and not ended."""
        return len(self._phase_of_open)

    def arrive(self, request: Request) -> None:
        """Count an arrival; the request belongs to the phase in which it arrived."""
        self.arrived += 1
        self._phase_of_open[request.number] = self.phase

    def end(self, request: Request, ended: Ended) -> None:
        """Count an ending.

        Raises:
            KeyError: the request never arrived, or has ended before: each has exactly one outcome.
        """
        phase = self._phase_of_open.pop(request.number)
        self.ended[Slice(phase, request.cluster, ended.engine_id, ended.kind, ended.reason)] += 1
        if ended.latency_s is not None:
            self.latency_ms.setdefault(phase, Counter())[round(ended.latency_s * 1000)] += 1

    def by(self, kind: Kind) -> Mapping[str, int]:
        """Give the endings of one kind by reason, sorted."""
        totals: Counter[str] = Counter()
        for part, count in self.ended.items():
            if part.kind is kind:
                totals[str(part.reason)] += count
        return dict(sorted(totals.items()))

    def latency(self, phase: str | None = None) -> LatencySummary:
        """Summarise the latencies of one phase, or of all."""
        counted: Counter[int] = Counter()
        for name, counts in self.latency_ms.items():
            if phase is None or name == phase:
                counted.update(counts)
        return summarise(counted)


def summarise(counted: Mapping[int, int]) -> LatencySummary:
    """Summarise {milliseconds: count}: mean, and the smallest value that at least the share q is at or below."""
    total = sum(counted.values())
    if total == 0:
        return LatencySummary(0, None, None, None, None)
    ordered = sorted(counted.items())
    mean = sum(ms * count for ms, count in ordered) / total
    p50, p95, p99 = (_rank(ordered, q * total) for q in (0.5, 0.95, 0.99))
    return LatencySummary(total, mean, p50, p95, p99)


def _rank(ordered: list[tuple[int, int]], rank: float) -> float:
    seen = 0
    for ms, count in ordered:
        seen += count
        if seen >= rank - 1e-9:
            return float(ms)
    return float(ordered[-1][0])
