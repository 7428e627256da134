"""Qwen (Bailian) usage traces: one JSON object a request, whose conversation is found through its parents.

    {"chat_id": 159, "parent_chat_id": 55, "timestamp": 61.114, "input_length": 521, "output_length": 132, "turn": 2}

`parent_chat_id` is -1 for a conversation's first request; timestamps are seconds. A parent that comes after its child,
or is not in the file, begins a session. Source: Wang et al., USENIX ATC 2025 (KV cache in the wild).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.infra.traces.lines import each, json_lines, number
from headrace.infra.traces.request_trace import RequestTrace, TraceRequest, trace_of
from headrace.schemas.errors import InvalidInputError


def read(file: Path | None) -> RequestTrace:
    """Read a file."""
    if file is None:
        raise InvalidInputError("trace", ("no Qwen trace ships: name its file",))
    first_of: dict[int, int] = {}

    def row(found: Mapping[str, Any]) -> TraceRequest:
        chat, parent = int(found["chat_id"]), int(found["parent_chat_id"])
        first = first_of[chat] = first_of.get(parent, chat)
        return TraceRequest(
            number(found, "timestamp"), number(found, "input_length"), number(found, "output_length"), str(first)
        )

    return trace_of("qwen", f"Qwen trace {file.name}", each(file, json_lines(file), row))
