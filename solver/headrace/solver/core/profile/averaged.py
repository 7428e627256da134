"""Stages of one load -> their average: repeats always, neighbours where there are more than 32 loads.

In a closed loop a stage that by chance took 10 % longer also completed 10 % less, and near the wall a rate that is 10 %
lower should have halved the latency: noise looks like a curve that is wrong. Averaging before the regression is what
helps, and windows of a running engine come by the hundred. Means are geometric, so that rate x e2e stays what was in
service.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from headrace.solver.core.profile.load_test import LoadStage

MAX_POINTS = 32


def averaged(stages: Sequence[LoadStage]) -> tuple[LoadStage, ...]:
    """Give at most 32 stages of either loop, by rising load; every number finite and above 0."""
    open_loop = [s for s in stages if s.concurrency is None]
    closed_loop = [s for s in stages if s.concurrency is not None]
    return (
        *_averaged(open_loop, lambda s: s.offered_rps or 0.0),
        *_averaged(closed_loop, lambda s: s.concurrency or 0.0),
    )


def _averaged(stages: Sequence[LoadStage], load: Callable[[LoadStage], float]) -> list[LoadStage]:
    by_load: dict[float, list[LoadStage]] = {}
    for stage in sorted(stages, key=lambda s: (load(s), s.e2e_s, s.ttft_s)):
        by_load.setdefault(load(stage), []).append(stage)
    repeats = list(by_load.values())
    bins = min(MAX_POINTS, len(repeats))
    edges = [len(repeats) * i // bins for i in range(bins + 1)] if bins else [0]
    return [_mean([stage for same in repeats[start:end] for stage in same]) for start, end in pairwise(edges)]


def _mean(stages: Sequence[LoadStage]) -> LoadStage:
    first = stages[0]
    if len(stages) == 1:
        return first
    return LoadStage(
        offered_rps=None if first.offered_rps is None else _geometric([s.offered_rps or 0.0 for s in stages]),
        completed_rps=_geometric([s.completed_rps for s in stages]),
        output_tokens=_geometric([s.output_tokens for s in stages]),
        ttft_s=_geometric([s.ttft_s for s in stages]),
        e2e_s=_geometric([s.e2e_s for s in stages]),
        concurrency=None if first.concurrency is None else _geometric([s.concurrency or 0.0 for s in stages]),
        place=f"{first.place or 'a stage'} and {len(stages) - 1} more",
    )


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(np.array(values)))))
