"""Engine states as they lie in the state topic, as rows for people: who is heard, how quick it is, what is amiss."""

import time
from collections.abc import Mapping
from typing import Any

from headrace.infra.topic_readers.latest import read_latest
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState, Invalid
from headrace.solver.core.inputs.measure import outcomes
from headrace.solver.core.inputs.silence import hearing_of
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.settings import SolverSettings

Row = dict[str, Any]
ONLY_APART = (
    "an engine of which nothing is known but what a GATEWAY or CLIENT saw stays without a valid state: where that was "
    "measured at the engine, write vantage: ENGINE in the mapping"
)
COLUMNS: Mapping[str, int] = {
    "engine": 20,
    "model": 34,
    "age_s": 7,
    "requests": 9,
    "failed": 7,
    "ttft_s": 8,
    "ttft_p95_s": 11,
    "tbot_s": 8,
    "running": 8,
    "coverage": 9,
}


def engine_rows(kafka: KafkaSettings, topic: str, settings: SolverSettings) -> list[Row]:
    """Give a row for each engine and model, sorted; an engine without latencies has one row.

    Who is STALE is told as the solver counts it: by silence while others speak, and by each engine's own period.

    Raises:
        HeadraceError: the topic cannot be read.
    """
    now_ms = time.time_ns() // 1_000_000
    found = {key: decode(EngineState, record.value) for key, record in read_latest(kafka, topic).items()}
    return rows_at({key: state for key, state in found.items() if not isinstance(state, Rejected)}, settings, now_ms)


def rows_at(states: Mapping[bytes, EngineState], settings: SolverSettings, now_ms: int) -> list[Row]:
    """Give the rows of all engines' states as of `now_ms`."""
    hearing = hearing_of(StateView({}, {}, states, {}, {}), settings, now_ms)
    return [row for state in states.values() for row in rows_of(state, now_ms, hearing.stale(state))]


def line(row: Row) -> str:
    """Give a row as a line of the table; what was not measured is a dash."""
    cells = (f"{_cell(row[name]):<{width}}" for name, width in COLUMNS.items())
    return f"{' '.join(cells)} {row['valid']}{'; ' if row['filled'] else ''}{', '.join(row['filled'])}"


def heading() -> str:
    """Give the table's head."""
    return " ".join(f"{name:<{width}}" for name, width in COLUMNS.items()) + " state"


def rows_of(state: EngineState, now_ms: int, stale: str | None = None) -> list[Row]:
    """Give a state's rows as of `now_ms`; `stale` says why its engine is out for silence, None where it is not."""
    valid = "valid" if stale is None else f"STALE: {stale}"
    common = {
        "engine": state.engine_id,
        "age_s": _age_s(state, now_ms),
        "running": state.running,
        "coverage": round(state.coverage, 2),
        "valid": valid if state.invalid is Invalid.NO else f"not valid: {state.invalid}",
        "filled": list(state.filled),
    }
    models: list[str | None] = [*sorted({latency.model for latency in state.latencies})]
    return [{**common, "model": model, **_latencies(state, model)} for model in models or [None]]


def _age_s(state: EngineState, now_ms: int) -> float | None:
    """Give how long ago the engine was heard; None where all that came was kept apart: it never was."""
    if state.invalid is Invalid.NO_SIGNAL_YET:
        return None
    return round((now_ms - state.last_signal_ms) / 1000, 1) + 0.0  # no -0


def _latencies(state: EngineState, model: str | None) -> Row:
    own = {latency.metric: latency for latency in state.latencies if latency.model == model}
    ttft, tbot = own.get(Metric.TTFT), own.get(Metric.TBOT)
    return {
        "requests": max((latency.count for latency in own.values()), default=0),
        "failed": _failed(state, model),
        "ttft_s": None if ttft is None else ttft.mean_s,
        "ttft_p95_s": None if ttft is None else ttft.p95_s,
        "tbot_s": None if tbot is None else tbot.mean_s,
    }


def _failed(state: EngineState, model: str | None) -> float | None:
    """Give the share of a model's requests that failed, by whom the solver believes; None where nobody counted."""
    ended = outcomes(each for each in state.outcomes or () if each.model == model)
    return None if ended is None or not ended.requests else round(ended.failed / ended.requests, 4)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
