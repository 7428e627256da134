"""What a tick's states tell of the time before it, for whoever looks back: what arrived when, how long answers were.

    arrived   the panes of each state of demand that is new
    tokens    (end to end - TTFT of the same requests) / TBOT       by model, over the windows of all its engines

A request's TTFT is counted at its first token and its end to end at its last, so that while a queue grows those that a
window counts the TTFT of have waited longer than those that it counts the end to end of. The TTFT taken is therefore
the one of a decoding time before. Nothing is told of a window with fewer than `FEWEST` answers.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headrace.schemas.ids import RouteKey
from headrace.schemas.signals import Metric
from headrace.schemas.state import DemandState, EngineState
from headrace.streams.core.demand import arrivals

FEWEST = 20
CORRECTIONS = 3
"""How often the decoding time is read again from what it says of the TTFT; each leaves a tenth of the error or less."""
REMEMBERED = 64
"""Windows of a model that are looked back at, at most."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What arrived on one route: (begin, end, RPS) of panes, ms since the epoch, oldest first, all of one length."""

    route: RouteKey
    panes: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many tokens a model's answers had in the mean, of the requests that arrived around an instant."""

    model: str
    at_ms: int
    tokens: float


@dataclass(frozen=True, slots=True)
class Told:
    """What is new at a tick."""

    arrived: tuple[Arrived, ...] = ()
    lengths: tuple[Lengths, ...] = ()


NOTHING_TOLD = Told()


@dataclass(slots=True)
class Pool:
    """A sum of a window's values, each counted as often as it was measured; its middle, ms."""

    count: int = 0
    total: float = 0.0
    middle: float = 0.0

    def mean(self) -> float:
        """Give the mean; 0 of nothing."""
        return self.total / self.count if self.count else 0.0


@dataclass(slots=True)
class _FirstTokens:
    """Mean TTFT of a model over windows, by their middles, rising."""

    at_ms: list[float] = field(default_factory=list[float])
    mean_s: list[float] = field(default_factory=list[float])

    def add(self, at_ms: float, mean_s: float) -> bool:
        """Take the next; one that is not newer changes nothing."""
        if self.at_ms and at_ms <= self.at_ms[-1]:
            return False
        self.at_ms.append(at_ms)
        self.mean_s.append(mean_s)
        del self.at_ms[:-REMEMBERED], self.mean_s[:-REMEMBERED]
        return True

    def at(self, at_ms: float) -> float:
        """Give the mean at an instant, between its neighbours; before the first, the first."""
        after = bisect_right(self.at_ms, at_ms)
        if after in (0, len(self.at_ms)):
            return self.mean_s[max(after - 1, 0)]
        begin, end = self.at_ms[after - 1], self.at_ms[after]
        part = (at_ms - begin) / (end - begin)
        return self.mean_s[after - 1] + part * (self.mean_s[after] - self.mean_s[after - 1])


class Teller:
    """Reads the views of a run's ticks, in their order; what was read before is not told again."""

    def __init__(self) -> None:
        self._demands: dict[bytes, DemandState] = {}
        self._first: dict[str, _FirstTokens] = {}

    def tell(self, demands: Mapping[bytes, DemandState], pools: Mapping[str, Mapping[Metric, Pool]]) -> Told:
        """Give what is new in a view's demands, and in its engines' windows, `pooled`."""
        return Told(tuple(self._arrived(demands)), tuple(self._lengths(pools)))

    def _arrived(self, demands: Mapping[bytes, DemandState]) -> Iterator[Arrived]:
        read, self._demands = self._demands, dict(demands)
        for key, state in sorted(demands.items()):
            panes = () if read.get(key) is state else arrivals(state)
            if panes:
                yield Arrived(state.route, panes)

    def _lengths(self, pools: Mapping[str, Mapping[Metric, Pool]]) -> Iterator[Lengths]:
        for model, sums in sorted(pools.items()):
            whole, first, token = (sums.get(metric) for metric in (Metric.E2E, Metric.TTFT, Metric.TBOT))
            if whole is None or first is None or token is None or whole.count < FEWEST or token.total <= 0.0:
                continue
            at_ms, seen = whole.middle / whole.count, self._first.setdefault(model, _FirstTokens())
            if not seen.add(at_ms, first.mean()):
                continue
            decoding_s, begun_ms = whole.mean() - first.mean(), at_ms
            for _ in range(CORRECTIONS):
                begun_ms = at_ms - 1000.0 * max(decoding_s, 0.0)
                decoding_s = whole.mean() - seen.at(begun_ms)
            if decoding_s > 0.0:
                yield Lengths(model, round(begun_ms), decoding_s / token.mean())


def pooled(engines: Mapping[bytes, EngineState]) -> dict[str, dict[Metric, Pool]]:
    """Add up the windows of all engines by model and metric, in the order of their keys."""
    pools: dict[str, dict[Metric, Pool]] = {}
    for _, state in sorted(engines.items()):
        if not state.covered_ms:
            continue
        middle = state.as_of_ms - state.covered_ms / 2
        for latency in state.latencies:
            if latency.count and latency.mean_s is not None:
                into = pools.setdefault(latency.model, {}).setdefault(latency.metric, Pool())
                into.count += latency.count
                into.total += latency.count * latency.mean_s
                into.middle += latency.count * middle
    return pools
