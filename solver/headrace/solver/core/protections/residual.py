"""residual = measured latency / what the profile says at the measured load: how wrong it is, not how busy the engine.

    load = finished requests per second / (share believed x ready replicas x capacity of one)

None where that cannot be told: no traffic, fewer than `FEWEST` requests, an engine at its wall (from load `WALL`),
whose latency is its queue's, or one on its way to another load, so that its rate and its latency are not of one load:
its smoothed latency is off the window's mean by more than `DRIFT`, or it holds other than the rate x latency requests
of Little's law by more than `IMBALANCE`. Nor while more than `QUEUE` of what is inside waits: an engine that is smaller
than stated has its queue at what would not be its wall, and the queue would be taken for slowness.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from headrace.solver.core.problem import Engine, Measured, Problem
from headrace.solver.core.profile.load_cost import MS, latency_ms

FEWEST = 20
WALL = 0.97
DRIFT = 0.1
IMBALANCE = 0.25
QUEUE = 0.05


def measured_load(engine: Engine, share: float = 1.0) -> float | None:
    """Give the load that an engine's measurement was made at, 0.., if it has that share of what is stated; or None."""
    capacity = share * engine.ready_replicas * engine.capacity_rps_per_replica
    if engine.exclusion is not None or engine.measured is None or capacity <= 0.0:
        return None
    return engine.measured.rate_rps / capacity


def steady(measured: Measured) -> bool:
    """Say whether rate and latency of a window belong to one load."""
    if measured.latency_s <= 0.0 or measured.smoothed_s <= 0.0:
        return False
    if abs(math.log(measured.smoothed_s / measured.latency_s)) > DRIFT:
        return False
    if measured.waiting > QUEUE * (measured.inside or 0.0):
        return False
    expected = measured.rate_rps * measured.latency_s
    return measured.inside is None or abs(measured.inside - expected) <= IMBALANCE * expected


def residual(problem: Problem, engine: Engine) -> float | None:
    """Give measured / predicted, above 0; None where it cannot be told."""
    return residuals(problem, (engine,)).get(engine.engine_id)


def residuals(
    problem: Problem, engines: Iterable[Engine], shares: Mapping[str, float] | None = None
) -> Mapping[str, float]:
    """Give the same of each engine by its id, without those of which it cannot be told."""
    told: dict[str, list[tuple[str, float, float]]] = {}
    for engine in engines:
        measured = engine.measured
        if measured is None or measured.samples < FEWEST:
            continue
        load = measured_load(engine, 1.0 if shares is None else shares.get(engine.engine_id, 1.0))
        if load is not None and load < WALL and steady(measured):
            told.setdefault(engine.profile_id, []).append((engine.engine_id, load, measured.latency_s))
    found: dict[str, float] = {}
    for profile_id, of_profile in told.items():
        profile = problem.profiles.get(profile_id)
        if profile is None:
            continue
        ttft, tbot = latency_ms(profile, np.array([load for _, load, _ in of_profile]))
        predicted_s: list[float] = ((ttft + profile.output_tokens * tbot) / MS).tolist()
        pairs = zip(of_profile, predicted_s, strict=True)
        found.update({name: latency_s / p for (name, _, latency_s), p in pairs if p > 0.0})
    return found
