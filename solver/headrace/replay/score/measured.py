"""What the recorded fleet showed: the windows of its engines' states, each second of an engine counted once.

    windows of one engine that overlap one already taken are left out
    pooled mean = sum count x mean / sum count                             exact
    pooled mass = sum count x (log-linear between 0, p50, p95, p99)        for p95, and the spread of lengths

Latencies are the engines' own (E2E, without the network). Bounded by the number of engines.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from headrace.replay.score.latency_mass import Floats, mass_of, no_mass, quantile_s
from headrace.replay.score.length_spread import LengthSpread, assumed_spread, spread_of_mass
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState, LatencyState

_AT: Floats = (np.arange(50) + 0.5) / 50
FEWEST = 200
"""Requests below which no spread of lengths is read from history."""
FEWEST_IN_WINDOW = 20


@dataclass(frozen=True, slots=True)
class Shown:
    """Requests that one engine, or all of them, finished, and how long these took, in seconds; None of none."""

    count: int
    mean_s: float | None
    p95_s: float | None


@dataclass(frozen=True, slots=True)
class MeasuredFleet:
    """What history shows, and what scoring takes from it.

    Attributes:
        fleet: all engines together.
        engines: each engine, by id.
        spread: of the lengths of answers.
        output_tokens: mean tokens of an answer, by model; empty where TTFT or TBOT was not measured.
        from_ms, to_ms: when those that were measured left their engines; both 0 of none.
    """

    fleet: Shown
    engines: Mapping[str, Shown]
    spread: LengthSpread
    output_tokens: Mapping[str, float]
    from_ms: int = 0
    to_ms: int = 0


NOTHING_MEASURED = MeasuredFleet(Shown(0, None, None), {}, assumed_spread(), {})


@dataclass(slots=True)
class _Sum:
    count: int = 0
    total_s: float = 0.0
    mass: Floats = field(default_factory=no_mass)
    taken_to_ms: int = -1

    def shown(self) -> Shown:
        if not self.count:
            return Shown(0, None, None)
        return Shown(self.count, self.total_s / self.count, quantile_s(self.mass, 0.95))


class MeasuredFold:
    """Folds engine states, in any order that rises per engine. Windows that began before `from_ms` are left out."""

    def __init__(self, from_ms: int = -1) -> None:
        self._engines: dict[str, _Sum] = {}
        self._relative = no_mass()
        self._relative_count = 0
        self._tokens: dict[str, tuple[float, int]] = {}
        self._begin_ms = from_ms
        self._from_ms: int | None = None
        self._to_ms = 0

    def add(self, state: EngineState) -> None:
        """Take the state's window, unless some of it was taken before, or nothing was finished in it."""
        whole = [x for x in state.latencies if x.metric is Metric.E2E and x.count and x.mean_s is not None]
        kept = self._engines.setdefault(state.engine_id, _Sum(taken_to_ms=self._begin_ms))
        if not whole or not state.covered_ms or state.as_of_ms - state.covered_ms < kept.taken_to_ms:
            return
        kept.taken_to_ms = state.as_of_ms
        begun_ms = state.as_of_ms - state.covered_ms
        self._from_ms = begun_ms if self._from_ms is None else min(self._from_ms, begun_ms)
        self._to_ms = max(self._to_ms, state.as_of_ms)
        for latency in whole:
            self._take(kept, latency, waiting=(state.waiting or 0.0) > 0.0)
            self._read_tokens(state, latency)

    def finish(self) -> MeasuredFleet:
        """Give what was seen."""
        fleet = _Sum()
        for _, each in sorted(self._engines.items()):
            fleet.count += each.count
            fleet.total_s += each.total_s
            fleet.mass = fleet.mass + each.mass
        known = self._relative_count >= FEWEST
        spread = spread_of_mass(self._relative, "history's end-to-end quantiles") if known else assumed_spread()
        return MeasuredFleet(
            fleet=fleet.shown(),
            engines={engine: each.shown() for engine, each in sorted(self._engines.items()) if each.count},
            spread=spread,
            output_tokens={model: total / count for model, (total, count) in sorted(self._tokens.items())},
            from_ms=self._from_ms or 0,
            to_ms=self._to_ms,
        )

    def _take(self, kept: _Sum, latency: LatencyState, *, waiting: bool) -> None:
        mean_s = latency.mean_s or 0.0
        kept.count += latency.count
        kept.total_s += latency.count * mean_s
        values = _spread_out(latency)
        weight = np.full(values.shape, latency.count / values.size)
        kept.mass = kept.mass + mass_of(values, weight)
        if not waiting and mean_s > 0.0 and latency.count >= FEWEST_IN_WINDOW:
            self._relative = self._relative + mass_of(values / mean_s, weight)
            self._relative_count += latency.count

    def _read_tokens(self, state: EngineState, whole: LatencyState) -> None:
        parts = {x.metric: x.mean_s for x in state.latencies if x.model == whole.model and x.count}
        ttft, tbot = parts.get(Metric.TTFT), parts.get(Metric.TBOT)
        if ttft is None or not tbot or whole.mean_s is None or whole.mean_s <= ttft:
            return
        total, count = self._tokens.get(whole.model, (0.0, 0))
        tokens = (whole.mean_s - ttft) / tbot
        self._tokens[whole.model] = (total + whole.count * tokens, count + whole.count)


def measured_fleet(states: Iterable[EngineState], from_ms: int = -1) -> MeasuredFleet:
    """Fold states; of none, nothing was measured and the spread is assumed."""
    fold = MeasuredFold(from_ms)
    for state in states:
        fold.add(state)
    return fold.finish()


def _spread_out(latency: LatencyState) -> Floats:
    """Give equally likely latencies of a window: log-linear between its quantiles, mirrored below the median."""
    mean = latency.mean_s or 0.0
    p50 = latency.p50_s or mean
    p95 = max(latency.p95_s or p50, p50)
    p99 = max(latency.p99_s or p95, p95)
    if p50 <= 0.0:
        return np.array([mean])
    low = p50 * p50 / p95
    knots = np.array([0.05, 0.5, 0.95, 0.99])
    logs = np.log(np.array([low, p50, p95, p99]))
    spread: Floats = np.exp(np.interp(_AT, knots, logs))
    return spread
