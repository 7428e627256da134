"""The console's JSON API, path by path: what each gives, in one place for the server, the schemas and the document."""

from collections.abc import Mapping
from typing import Any

from headrace.infra.command_line.json_schema import json_schema
from headrace.infra.console.core.decision import DecisionLog
from headrace.infra.console.core.engine_card import EngineCard
from headrace.infra.console.core.engine_table import EngineTable
from headrace.infra.console.core.flows import FlowMap
from headrace.infra.console.core.overview import Overview
from headrace.infra.console.core.status import Status
from headrace.infra.console.core.totals import TotalsSeries
from headrace.infra.console.core.weight_history import WeightHistory
from headrace.infra.console.core.weight_rows import WeightRows

CONSOLE_OUTPUTS: Mapping[str, tuple[str, type]] = {
    "console-status": ("GET /api/status, and each event of /api/events", Status),
    "console-overview": ("GET /api/overview", Overview),
    "console-engines": ("GET /api/engines", EngineTable),
    "console-engine": ("GET /api/engine", EngineCard),
    "console-flows": ("GET /api/flows", FlowMap),
    "console-weights": ("GET /api/weights", WeightRows),
    "console-history": ("GET /api/history", WeightHistory),
    "console-totals": ("GET /api/totals", TotalsSeries),
    "console-decisions": ("GET /api/decisions", DecisionLog),
}
"""Beside them GET /api/explain, which gives what `headrace explain --json` prints."""


def console_schema(name: str) -> dict[str, Any]:
    """Give the schema of one of them, as infra/json-schemas holds it."""
    title, kind = CONSOLE_OUTPUTS[name]
    return json_schema(kind, title)
