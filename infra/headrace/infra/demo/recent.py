"""What happened in the last seconds of virtual time: answers per engine, arrivals per cluster, latencies."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.infra.fleet.outcomes import LatencySummary, summarise
from headrace.infra.fleet.request import Ended, Kind, Request

WINDOW_S = 10
RATE_WINDOW_S = 3


@dataclass(slots=True)
class _Second:
    number: int
    answered: Counter[str] = field(default_factory=Counter[str])
    ended: Counter[str] = field(default_factory=Counter[str])
    unserved: Counter[str] = field(default_factory=Counter[str])
    failed: Counter[str] = field(default_factory=Counter[str])
    latency_ms: dict[str, Counter[int]] = field(default_factory=dict[str, Counter[int]])


class Recent:
    """A listener of the simulation. Counts by the second in which a request ended; keeps WINDOW_S whole seconds."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._seconds: deque[_Second] = deque(maxlen=WINDOW_S + 1)

    def __call__(self, request: Request, ended: Ended) -> None:
        """Count one ending."""
        second = self._second()
        second.ended[request.cluster] += 1
        if ended.kind is Kind.ANSWERED and ended.engine_id is not None and ended.latency_s is not None:
            second.answered[ended.engine_id] += 1
            second.latency_ms.setdefault(request.cluster, Counter())[round(ended.latency_s * 1000)] += 1
        else:
            second.unserved[request.cluster] += 1
            if ended.kind is Kind.FAILED and ended.engine_id is not None:
                second.failed[ended.engine_id] += 1

    def served_rps(self, engine_id: str) -> float:
        """Give an engine's answers per second over the last RATE_WINDOW_S whole seconds."""
        return sum(s.answered[engine_id] for s in self._whole(RATE_WINDOW_S)) / RATE_WINDOW_S

    def failed_rps(self, engine_id: str) -> float:
        """Give how many requests an engine failed per second, without those that were then served elsewhere."""
        return sum(s.failed[engine_id] for s in self._whole(RATE_WINDOW_S)) / RATE_WINDOW_S

    def ended_rps(self, cluster: str) -> float:
        """Give how many of a cluster's requests ended per second, served or refused: not how many arrive."""
        return sum(s.ended[cluster] for s in self._whole(RATE_WINDOW_S)) / RATE_WINDOW_S

    def unserved_share(self, cluster: str) -> float:
        """Give the share of a cluster's requests that ended without an answer; 0 where none ended."""
        seconds = self._whole(RATE_WINDOW_S)
        total = sum(s.ended[cluster] for s in seconds)
        return sum(s.unserved[cluster] for s in seconds) / total if total else 0.0

    def latency(self, cluster: str | None = None) -> LatencySummary:
        """Summarise the latencies of a cluster, or of all, over the last WINDOW_S seconds."""
        total: Counter[int] = Counter()
        for second in self._whole(WINDOW_S):
            for name, counts in second.latency_ms.items():
                if cluster is None or name == cluster:
                    total.update(counts)
        return summarise(total)

    def _second(self) -> _Second:
        number = int(self._now_s())
        if not self._seconds or self._seconds[-1].number != number:
            self._seconds.append(_Second(number))
        return self._seconds[-1]

    def _whole(self, seconds: int) -> list[_Second]:
        now = int(self._now_s())
        return [s for s in self._seconds if now - seconds <= s.number < now]
