"""A trace as rates: what each cluster asks for in each step of a run, without single requests.

The rate is the trace's count over a step, averaged over as many seconds as the trace is scaled up by: with k times the
users chance is smaller, and only what they share, the swing over minutes, is left (as in `trace_arrivals`).
"""

from dataclasses import dataclass

import numpy as np

from headrace.infra.fleet.scenario import Scenario
from headrace.infra.simulate.trace_arrivals import MAX_JITTER_S
from headrace.infra.traces.request_trace import Floats, RequestTrace

MAX_STEPS = 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class FlowDemand:
    """Requests per second, (clusters, steps), each step `step_s` long."""

    step_s: float
    rps: Floats


def flow_demand(scenario: Scenario, trace: RequestTrace, load: float, seconds: float, step_s: float) -> FlowDemand:
    """Give the rates of a run; a trace that is shorter begins again at its end."""
    length = trace.length_s + trace.length_s / len(trace.t_s)
    steps = int(np.ceil(seconds / step_s))
    wide = max(1, int(np.ceil(length / step_s)))
    counts, _ = np.histogram(trace.t_s, bins=wide, range=(0.0, wide * step_s))
    rates = counts / step_s
    rates[-1] *= wide * step_s / max(length - (wide - 1) * step_s, 1e-9) / wide if wide > 1 else 1.0
    capacity = sum(setup.replicas * setup.curve.capacity_rps for setup in scenario.engines)
    rate = load * capacity
    half = int(min(rate / trace.rate_rps, MAX_JITTER_S) / step_s / 2)
    ring = np.resize(_averaged(rates, half), steps)
    total = sum(cluster.rate_rps for cluster in scenario.clusters)
    shares = np.array([cluster.rate_rps / total for cluster in scenario.clusters])
    return FlowDemand(step_s, rate / rates.mean() * shares[:, None] * ring[None, :])


def _averaged(rates: Floats, half: int) -> Floats:
    """Average over 2 half + 1 steps around each; the ends meet."""
    if half == 0 or len(rates) <= 2 * half:
        return rates
    ring = np.concatenate([rates[-half:], rates, rates[:half]])
    averaged: Floats = np.convolve(ring, np.full(2 * half + 1, 1.0 / (2 * half + 1)), "valid")
    return averaged
