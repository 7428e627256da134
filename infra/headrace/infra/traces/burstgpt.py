"""BurstGPT: Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type; newer files also Session ID.

Timestamps are seconds. A request without response tokens failed there; here it asks for one token.
Source: Wang et al., arXiv 2401.17644.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.infra.traces.lines import csv_rows, each, number
from headrace.infra.traces.request_trace import RequestTrace, TraceRequest, trace_of
from headrace.schemas.errors import InvalidInputError

_NEEDED = ("Timestamp", "Request tokens", "Response tokens")


def read(file: Path | None) -> RequestTrace:
    """Read a file."""
    if file is None:
        raise InvalidInputError("trace", ("no BurstGPT trace ships: name its file",))
    return trace_of("burstgpt", f"BurstGPT trace {file.name}", each(file, csv_rows(file, _NEEDED), _row))


def _row(row: Mapping[str, Any]) -> TraceRequest:
    session = row.get("Session ID") or None
    return TraceRequest(
        number(row, "Timestamp"), number(row, "Request tokens"), number(row, "Response tokens"), session
    )
