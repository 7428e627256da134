"""One tick's outcome as sums."""

import numpy as np

from headrace.replay.score.fleet_model import Behaviour, Engines
from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.placement import Placement
from headrace.replay.score.sums import Of, no_sums
from headrace.replay.score.world import Happened

_SOMEBODY_S = 1e-3
"""A mean wait above this is somebody waiting."""


def tick_sums(happened: Happened, placement: Placement, engines: Engines, seconds: float) -> Floats:
    """Add up what happened over some seconds; moved traffic, reversals and gaps are the caller's."""
    sums, behaviour = no_sums(), happened.behaviour
    requests = happened.served * seconds
    inside = happened.fixed_s - placement.network_s + happened.decode_s
    unmeasured = behaviour.unmeasured[placement.engine]
    sums[Of.SECONDS] = seconds
    sums[Of.OFFERED] = happened.first.sum() * seconds
    sums[Of.SERVED] = requests.sum()
    sums[Of.SHED] = happened.shed.sum() * seconds
    sums[Of.REFUSED] = happened.refused.sum() * seconds
    sums[Of.RETRIES] = happened.retried.sum() * seconds
    sums[Of.COLD] = happened.cold.sum() * seconds
    sums[Of.NETWORK] = requests @ placement.network_s
    sums[Of.ENGINE] = requests @ inside
    sums[Of.TTFT] = requests @ happened.ttft_s
    sums[Of.TBOT] = requests @ behaviour.tbot_s[placement.engine]
    sums[Of.UNMEASURED] = requests @ unmeasured
    sums[Of.BEYOND] = requests @ np.abs(behaviour.beyond_s[placement.engine])
    sums[Of.OVERLOADED] = np.count_nonzero(behaviour.wait_s > _SOMEBODY_S) * seconds
    sums[Of.LOAD], sums[Of.IMBALANCE] = _load(behaviour, engines, seconds)
    return sums


def _load(behaviour: Behaviour, engines: Engines, seconds: float) -> tuple[float, float]:
    """Give mean load, and the largest over the mean, x seconds; load is what is offered, so it may be above 1."""
    there = engines.capacity > 0.0
    if not there.any():
        return 0.0, 0.0
    offered, capacity = behaviour.offered[there], engines.capacity[there]
    mean = float(offered.sum() / capacity.sum())
    largest = float((offered / capacity).max())
    return mean * seconds, (largest / mean * seconds if mean > 0.0 else seconds)
