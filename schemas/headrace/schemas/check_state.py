"""What a state must be: run by the fold's writer before it writes, and by the solver before it believes."""

import math
from collections.abc import Iterator

from headrace.schemas.ids import identifier_problem
from headrace.schemas.state import DemandState, EngineState, Invalid, NetworkState, OutcomeState

State = EngineState | DemandState | NetworkState


def check_state(state: State) -> tuple[str, ...]:
    """Give every problem of a state as a sentence with value, bound and field; () where it is sound."""
    return tuple(_problems(state))


def _problems(state: State) -> Iterator[str]:
    if state.applied_offset < 0:
        yield f"applied_offset is {state.applied_offset}; at least 0"
    if state.late < 0:
        yield f"late is {state.late}; at least 0"
    if state.as_of_ms > state.last_signal_ms:
        yield f"as_of_ms is {state.as_of_ms}, newer than its newest signal {state.last_signal_ms}"
    if state.invalid is Invalid.UNKNOWN:
        yield "invalid is UNKNOWN; a state that may not be used always says why"
    match state:
        case EngineState():
            yield from _identifiers(engine_id=state.engine_id)
            yield from _engine_problems(state)
        case DemandState():
            yield from _identifiers(cluster=state.cluster, model=state.model, request_class=state.request_class)
            yield from _share("coverage", state.coverage)
            for name in ("rate_rps", "smoothed_rps", "peak_1s_rps", "rejected_rps", "retry_rps"):
                yield from _measured(name, getattr(state, name))
        case NetworkState():
            yield from _identifiers(from_cluster=state.from_cluster, to_site=state.to_site)
            yield from _measured("rtt_s", state.rtt_s)
            yield from _measured("smoothed_s", state.smoothed_s)
            if state.lost_share is not None:
                yield from _share("lost_share", state.lost_share)


def _engine_problems(state: EngineState) -> Iterator[str]:
    yield from _share("coverage", state.coverage)
    for name in (
        "replicas_desired",
        "replicas_ready",
        "replicas_reporting",
        "running",
        "waiting",
        "kv_usage",
        "finished_rps",
    ):
        yield from _measured(name, getattr(state, name))
    keys = [(latency.model, latency.metric) for latency in state.latencies]
    if keys != sorted(set(keys)):
        yield "latencies are not sorted by (model, metric) without repeats"
    for latency in state.latencies:
        at = f"latencies[{latency.model},{latency.metric}]"
        if latency.count < 0:
            yield f"{at}.count is {latency.count}; at least 0"
        if (latency.count == 0) != (latency.mean_s is None):
            yield f"{at}.mean_s is {latency.mean_s} with count {latency.count}; it is null exactly when count is 0"
        for name in ("mean_s", "smoothed_s", "p50_s", "p95_s", "p99_s"):
            yield from _measured(f"{at}.{name}", getattr(latency, name))
    if state.outcomes is not None:
        yield from _outcome_problems(state.outcomes)


def _outcome_problems(outcomes: tuple[OutcomeState, ...]) -> Iterator[str]:
    keys = [(each.model, each.vantage) for each in outcomes]
    if keys != sorted(set(keys)):
        yield "outcomes are not sorted by (model, vantage) without repeats"
    for each in outcomes:
        at = f"outcomes[{each.model},{each.vantage}]"
        if each.pane_ms <= 0:
            yield f"{at}.pane_ms is {each.pane_ms}; above 0"
        ends = [pane.end_ms for pane in each.panes]
        if ends != sorted(set(ends)):
            yield f"{at}.panes are not sorted by end_ms without repeats"
        for pane in each.panes:
            if pane.succeeded < 0 or pane.failed < 0:
                yield f"{at} has {pane.succeeded} succeeded and {pane.failed} failed at {pane.end_ms}; at least 0"


def _identifiers(**names: str) -> Iterator[str]:
    for name, value in names.items():
        problem = identifier_problem(name, value)
        if problem is not None:
            yield problem


def _share(name: str, value: float) -> Iterator[str]:
    if not 0.0 <= value <= 1.0:
        yield f"{name} is {value}; 0 to 1"


def _measured(name: str, value: float | None) -> Iterator[str]:
    if value is not None and not (math.isfinite(value) and value >= 0):
        yield f"{name} is {value}; a finite number of at least 0, or null"
