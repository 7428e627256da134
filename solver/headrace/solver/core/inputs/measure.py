"""An engine's state -> what it does now: finished requests per second, and how long one takes.

    latency = TTFT + profile's output tokens x TBOT, of all models together, each weighted by its requests

At the profile's output length, so that a shorter or longer mix of answers is not taken for a faster or slower engine;
where either part is missing, the end-to-end mean as it was measured. No traffic, or a state that does not say what its
window covers: nothing is known.

How requests ended is told by gateways where they saw any end, since they also see what an engine cannot tell of, else
by the engine itself: the same requests, seen from two sides, are not added up.
"""

from collections.abc import Iterable

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.signals import Vantage
from headrace.schemas.state import EngineState, OutcomePane, OutcomeState
from headrace.solver.core.inputs.pooled_window import PooledWindow
from headrace.solver.core.problem import Measured, Outcomes, Throughput

_MS = 1000.0
_SEES_ALL = (Vantage.GATEWAY, Vantage.CLIENT)


def measure(state: EngineState, window: PooledWindow, profile: LatencyProfile) -> Measured | None:
    """Read an engine's window; None where it had no traffic."""
    samples = window.requests
    if not samples or not state.covered_ms:
        return None
    as_they_came = window.ttft_s is None or window.tbot_s is None
    if window.ttft_s is not None and window.tbot_s is not None:
        mean = window.ttft_s + profile.output_tokens * window.tbot_s
        smoothed = (window.ttft_smoothed_s or 0.0) + profile.output_tokens * (window.tbot_smoothed_s or 0.0)
    elif window.e2e_s is not None:
        mean, smoothed = window.e2e_s, window.e2e_smoothed_s or 0.0
    else:
        return None
    inside = None if state.running is None else state.running + (state.waiting or 0.0)
    rate_rps = samples / (state.covered_ms / _MS)
    return Measured(rate_rps, mean, smoothed, samples, inside, state.waiting or 0.0, as_they_came)


def throughput(state: EngineState, window: PooledWindow) -> Throughput | None:
    """Read what goes through an engine; None where it does not say what is in service and what waits."""
    if state.running is None or state.waiting is None or not state.covered_ms:
        return None
    window_s = state.covered_ms / _MS
    finished = window.requests / window_s
    return Throughput(state.last_signal_ms, state.running, state.waiting, state.finished_rps, finished, window_s)


def outcomes(states: Iterable[OutcomeState]) -> Outcomes | None:
    """Add up the models of the vantage that is believed; None where no pane is told."""
    told = [state for state in states if state.panes]
    for vantage in (*_SEES_ALL, Vantage.ENGINE):
        found = _added_up([state for state in told if state.vantage is vantage])
        if found is not None and (found.requests or vantage is Vantage.ENGINE):
            return found
    return None


def _added_up(states: list[OutcomeState]) -> Outcomes | None:
    if len(states) == 1:
        return Outcomes(states[0].panes, states[0].pane_ms)
    by_end: dict[int, OutcomePane] = {}
    for pane in (pane for state in states for pane in state.panes):
        known = by_end.get(pane.end_ms, OutcomePane(pane.end_ms, 0, 0, is_final=True))
        succeeded, failed = known.succeeded + pane.succeeded, known.failed + pane.failed
        by_end[pane.end_ms] = OutcomePane(pane.end_ms, succeeded, failed, known.is_final and pane.is_final)
    if not by_end:
        return None
    return Outcomes(tuple(pane for _, pane in sorted(by_end.items())), states[0].pane_ms)
