"""Azure LLM inference traces: TIMESTAMP,ContextTokens,GeneratedTokens; or as they ship here, with offsets in seconds.

    TIMESTAMP,ContextTokens,GeneratedTokens              t_s,input_tokens,output_tokens
    2023-11-16 18:15:46.6805900,374,44                   0.0,374,44

No sessions. The conversation trace of 2023 ships (CC-BY-4.0). Source: Patel et al., ISCA 2024.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from headrace.infra.traces.lines import csv_rows, each, number
from headrace.infra.traces.request_trace import RequestTrace, TraceRequest, trace_of


def read(file: Path | None) -> RequestTrace:
    """Read a file, or the trace that ships."""
    if file is None:
        packed = resources.files("headrace.infra.data") / "azure_llm_2023_conv.csv.gz"
        with resources.as_file(packed) as shipped:
            return trace_of("azure", "Azure LLM conversation trace, 2023", each(shipped, csv_rows(shipped, ()), _row))
    return trace_of("azure", f"Azure trace {file.name}", each(file, csv_rows(file, ()), _row))


def _row(row: Mapping[str, Any]) -> TraceRequest:
    if "t_s" in row:
        return TraceRequest(number(row, "t_s"), number(row, "input_tokens"), number(row, "output_tokens"))
    # Seven digits of a second, of which Python reads six.
    at = datetime.fromisoformat(str(row["TIMESTAMP"])[:26]).replace(tzinfo=UTC)
    return TraceRequest(at.timestamp(), number(row, "ContextTokens"), number(row, "GeneratedTokens"))
