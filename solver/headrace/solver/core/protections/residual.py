"""residual = measured latency / what the profile says at the measured load: how wrong it is, not how busy the engine.

    load = finished requests per second / (ready replicas x capacity of one)

None where that cannot be told: no traffic, fewer than `FEWEST` requests, an engine at its wall (from load `WALL`),
whose latency is its queue's, or one on its way to another load, so that its rate and its latency are not of one load:
its smoothed latency is off the window's mean by more than `DRIFT`, or it holds other than the rate x latency requests
of Little's law by more than `IMBALANCE`.
"""

import math

import numpy as np

from headrace.solver.core.problem import Engine, Measured, Problem
from headrace.solver.core.profile.load_cost import MS, latency_ms

FEWEST = 20
WALL = 0.97
DRIFT = 0.1
IMBALANCE = 0.25


def measured_load(engine: Engine) -> float | None:
    """Give the load that an engine's measurement was made at, 0..; None where it has none."""
    capacity = engine.ready_replicas * engine.capacity_rps_per_replica
    if engine.exclusion is not None or engine.measured is None or capacity <= 0.0:
        return None
    return engine.measured.rate_rps / capacity


def steady(measured: Measured) -> bool:
    """Say whether rate and latency of a window belong to one load."""
    if measured.latency_s <= 0.0 or measured.smoothed_s <= 0.0:
        return False
    if abs(math.log(measured.smoothed_s / measured.latency_s)) > DRIFT:
        return False
    expected = measured.rate_rps * measured.latency_s
    return measured.inside is None or abs(measured.inside - expected) <= IMBALANCE * expected


def residual(problem: Problem, engine: Engine) -> float | None:
    """Give measured / predicted, above 0; None where it cannot be told."""
    load, profile = measured_load(engine), problem.profiles.get(engine.profile_id)
    measured = engine.measured
    if load is None or profile is None or measured is None or measured.samples < FEWEST or load >= WALL:
        return None
    if not steady(measured):
        return None
    ttft, tbot = latency_ms(profile, np.array([load]))
    predicted_s = float(ttft[0] + profile.output_tokens * tbot[0]) / MS
    return measured.latency_s / predicted_s if predicted_s > 0.0 else None
