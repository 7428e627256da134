"""Which schema belongs to which output: every `--json` that is promised to stay, by the name of its file.

infra/json-schemas/NAME.schema.json      what `headrace COMMAND --schema` prints
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.infra.command_line.json_schema import json_schema
from headrace.infra.dead_letters.summary import LetterGroup
from headrace.infra.doctor.core.diagnosis import Report
from headrace.infra.redaction.redact import RedactedLine, RedactedReport
from headrace.infra.weight_why.report import WeightReport
from headrace.infra.weights_tail.diff import DiffLine
from headrace.infra.what_if.answer import WhatIf
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.weights import RouteWeights, SnapshotCommit


@dataclass(frozen=True, slots=True)
class TailLine:
    """A snapshot: its commit, the routes written since the line before (in the first line all), and those removed."""

    commit: SnapshotCommit
    routes: tuple[RouteWeights, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LetterLine:
    """A record that could not be used; its bytes in base64, null where it had none."""

    refused_ms: int
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    reason: str
    detail: str
    stage: str
    key_base64: str | None
    value_base64: str | None


OUTPUTS: Mapping[str, tuple[str, type]] = {
    "tail": ("a line of headrace tail --json", TailLine),
    "tail-redacted": ("a line of headrace tail --redact", RedactedLine),
    "tail-diff": ("a line of headrace tail --diff --json", DiffLine),
    "decisions": ("a line of headrace tail decisions --json", SolveRecord),
    "dead-letters": ("a line of headrace dead-letters --json", LetterLine),
    "dead-letters-summary": ("a line of headrace dead-letters --summary --json", LetterGroup),
    "explain": ("headrace explain --json", WeightReport),
    "explain-redacted": ("headrace explain --redact", RedactedReport),
    "what-if": ("headrace what-if --json", WhatIf),
    "doctor": ("headrace doctor --json", Report),
}


def schema_named(name: str) -> dict[str, Any]:
    """Give the schema of one output."""
    title, kind = OUTPUTS[name]
    return json_schema(kind, title)
