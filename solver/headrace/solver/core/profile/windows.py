"""Windows of running engines -> stages of load tests, so that a profile can be fitted to what is on Kafka.

    rate       = finished / (seconds x ready replicas)            of one replica, as every profile is
    in service = rate x e2e                                       Little's law: a closed loop of that many
    tokens     = (e2e - TTFT) / TBOT; without an e2e those of the profile the engine has, and e2e follows from them

An EngineState is a window by itself; EngineSignals, where they hold distributions, are added up to windows of
`WINDOW_MS`. A window counts once: those of one engine do not overlap. Left out, each counted by its reason: windows
that are not valid, of few requests, of a load that changes (the smoothed latency is off the mean), seen from a gateway,
or without TTFT and TBOT. Engines of one profile are one load test; an engine that the fleet does not know is one of its
own.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.signals import EngineSignals, Metric, Vantage
from headrace.schemas.state import EngineState, Invalid
from headrace.solver.core.profile.load_test import LoadStage, LoadTest, ProfileLabels

FEWEST = 20
DRIFT = 0.1
"""As for the trim: a smoothed latency further off the window's mean is of an engine on its way to another load."""
WINDOW_MS = 10_000
MAX_WINDOWS = 100_000
"""Of one load test; more are left out, the oldest first, and counted."""
UNKNOWN = "unknown"
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class _Sums:
    """What finished over a span of event time, by metric: (requests, sum of seconds)."""

    start_ms: int
    end_ms: int
    replicas: int
    of: Mapping[Metric, tuple[int, float]]

    def mean_s(self, metric: Metric) -> float | None:
        count, total = self.of.get(metric, (0, 0.0))
        return total / count if count else None


class WindowFold:
    """Folds states or signals, in the order of their topic, into load tests. Mutable inside."""

    def __init__(self, specs: Mapping[str, EngineSpec], profiles: Mapping[str, LatencyProfile], source: str) -> None:
        self._specs, self._profiles, self._source = specs, profiles, source
        self._stages: dict[str, list[LoadStage]] = {}
        self._engines: dict[str, set[str]] = {}
        self._until_ms: dict[str, int] = {}
        self._open: dict[str, _Sums] = {}
        self.left_out: Counter[str] = Counter()

    def offer_state(self, state: EngineState) -> None:
        """Take an engine's window as the streams folded it."""
        if not state.covered_ms or state.invalid is not Invalid.NO:
            self.left_out["not valid"] += 1
            return
        start_ms = state.as_of_ms - state.covered_ms
        if start_ms < self._until_ms.get(state.engine_id, start_ms):
            self.left_out["overlaps the one before"] += 1
            return
        if any(_drifts(latency.smoothed_s, latency.mean_s) for latency in state.latencies if latency.count):
            self.left_out["of a load that changes"] += 1
            return
        of: dict[Metric, tuple[int, float]] = {}
        for latency in state.latencies:
            if latency.count and latency.mean_s is not None:
                _add(of, latency.metric, latency.count, latency.count * latency.mean_s)
        replicas = state.replicas_ready if state.replicas_ready is not None else state.replicas_reporting
        self._close(state.engine_id, _Sums(start_ms, state.as_of_ms, 1 if replicas is None else replicas, of))

    def offer_signals(self, signals: EngineSignals) -> None:
        """Take an engine's period as it was published; readings of counters are for the streams to difference."""
        if signals.vantage is not Vantage.ENGINE:
            self.left_out["not seen from the engine"] += 1
            return
        if signals.series is not None:
            self.left_out["readings of counters: name the state topic instead"] += 1
            return
        name, status = signals.engine_id, signals.status
        replicas = 1 if status is None or status.replicas_ready is None else status.replicas_ready
        so_far = self._open.get(name)
        if so_far is not None and (so_far.replicas != replicas or signals.period_start_ms < so_far.end_ms):
            del self._open[name]
            so_far = None
        start_ms = signals.period_start_ms if so_far is None else so_far.start_ms
        of = {} if so_far is None else dict(so_far.of)
        for each in signals.distributions:
            _add(of, each.metric, each.count, each.sum_s)
        self._open[name] = _Sums(start_ms, signals.period_end_ms, replicas, of)
        if signals.period_end_ms - start_ms >= WINDOW_MS:
            self._close(name, self._open.pop(name))

    def tests(self) -> tuple[LoadTest, ...]:
        """Give one load test per profile, sorted by its id."""
        return tuple(self._test(profile_id, stages) for profile_id, stages in sorted(self._stages.items()))

    def _close(self, engine_id: str, sums: _Sums) -> None:
        problem, stage = self._stage(engine_id, sums)
        if stage is None:
            self.left_out[problem] += 1
            return
        self._until_ms[engine_id] = sums.end_ms
        spec = self._specs.get(engine_id)
        profile_id = engine_id if spec is None else spec.profile_id
        stages = self._stages.setdefault(profile_id, [])
        self._engines.setdefault(profile_id, set()).add(engine_id)
        stages.append(stage)
        if len(stages) > MAX_WINDOWS:
            del stages[0]
            self.left_out[f"beyond the newest {MAX_WINDOWS:,}"] += 1

    def _stage(self, engine_id: str, sums: _Sums) -> tuple[str, LoadStage | None]:
        finished = max((count for count, _ in sums.of.values()), default=0)
        if finished < FEWEST:
            return f"of fewer than {FEWEST} requests", None
        if sums.replicas <= 0:
            return "without a ready replica", None
        ttft, tbot, e2e = (sums.mean_s(metric) for metric in (Metric.TTFT, Metric.TBOT, Metric.E2E))
        tokens = self._tokens(engine_id, ttft, tbot, e2e)
        if ttft is None or tbot is None or tokens is None:
            return "without TTFT and TBOT, or a way to tell the tokens of an answer", None
        e2e_s = ttft + tokens * tbot if e2e is None else e2e
        rate = finished / ((sums.end_ms - sums.start_ms) / _MS) / sums.replicas
        place = f"{engine_id} at {sums.end_ms}"
        return "", LoadStage(None, rate, tokens, ttft, e2e_s, rate * e2e_s, place)

    def _tokens(self, engine_id: str, ttft: float | None, tbot: float | None, e2e: float | None) -> float | None:
        if e2e is not None and ttft is not None and tbot and e2e > ttft:
            return (e2e - ttft) / tbot
        spec = self._specs.get(engine_id)
        profile = None if spec is None else self._profiles.get(spec.profile_id)
        return None if profile is None or e2e is not None else profile.output_tokens

    def _test(self, profile_id: str, stages: Sequence[LoadStage]) -> LoadTest:
        known, engines = self._profiles.get(profile_id), len(self._engines[profile_id])
        source = f"{self._source}: {len(stages)} windows of {engines} engine{'' if engines == 1 else 's'}"
        hardware, model = (UNKNOWN, self._model(profile_id)) if known is None else (known.hardware, known.model)
        return LoadTest(ProfileLabels(profile_id, hardware, model, source), tuple(stages), profile_id, profile_id)

    def _model(self, profile_id: str) -> str:
        models = sorted(set(self._models(profile_id)))
        return "+".join(models) or UNKNOWN

    def _models(self, profile_id: str) -> Iterator[str]:
        for engine_id in self._engines[profile_id]:
            spec = self._specs.get(engine_id)
            yield from () if spec is None else spec.models


def _drifts(smoothed_s: float | None, mean_s: float | None) -> bool:
    if not smoothed_s or not mean_s:
        return False
    return abs(math.log(smoothed_s / mean_s)) > DRIFT


def _add(of: dict[Metric, tuple[int, float]], metric: Metric, count: int, total_s: float) -> None:
    before = of.get(metric, (0, 0.0))
    of[metric] = before[0] + count, before[1] + total_s
