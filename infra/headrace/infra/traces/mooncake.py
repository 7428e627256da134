"""Mooncake traces: one JSON object a request; or reduced to CSV, with the session derived.

    {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}      milliseconds
    t_s,input_tokens,output_tokens,session,blocks

A session is the requests that share the first block beyond the one that all share (the system prompt). The trace's
clock ticks every 3 s, which is an artefact of its making: requests are spread over the tick, evenly, in their order.
Source: Qin et al., FAST 2025.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headrace.infra.traces.lines import csv_rows, each, json_lines, number
from headrace.infra.traces.request_trace import Floats, RequestTrace, TraceRequest, trace_of
from headrace.schemas.errors import InvalidInputError

TICK_S = 3.0


def read(file: Path | None) -> RequestTrace:
    """Read a file."""
    if file is None:
        raise InvalidInputError("trace", ("no Mooncake trace ships: name its file",))
    reduced = ".csv" in file.suffixes
    rows = csv_rows(file, ("t_s", "input_tokens", "output_tokens", "session")) if reduced else json_lines(file)
    requests = each(file, rows, _reduced if reduced else _original)
    trace = trace_of("mooncake", f"Mooncake trace {file.name}", requests)
    return RequestTrace(
        trace.name, trace.source, _spread(trace.t_s), trace.input_tokens, trace.output_tokens, trace.sessions
    )


def _reduced(row: Mapping[str, Any]) -> TraceRequest:
    return TraceRequest(
        number(row, "t_s"), number(row, "input_tokens"), number(row, "output_tokens"), str(row["session"])
    )


def _original(row: Mapping[str, Any]) -> TraceRequest:
    if "chat_id" in row:
        # It has every field that is read here, but its clock is in seconds: a thousand times as fast.
        raise ValueError("has a chat_id, which only Qwen traces have: read it as qwen")
    blocks = list(row["hash_ids"])
    session = str(blocks[1]) if len(blocks) > 1 else None
    at_s = number(row, "timestamp") / 1000.0
    return TraceRequest(at_s, number(row, "input_length"), number(row, "output_length"), session)


def _spread(t_s: Floats) -> Floats:
    """Spread requests of one instant over the tick that follows, evenly; a finer clock is left as it is."""
    instants, first, counts = np.unique(t_s, return_index=True, return_counts=True)
    if len(instants) < 2 or float(np.median(np.diff(instants))) < TICK_S / 2:
        return t_s
    place = np.arange(len(t_s)) - np.repeat(first, counts)
    spread: Floats = t_s + TICK_S * (place + 0.5) / np.repeat(counts, counts)
    spread -= spread[0]
    return spread
