"""`propose(records)`: a mapping file for these records, as YAML with a comment wherever a person must decide.

It is a proposal: names decide the preset, labels that differ between series decide who an engine is. What cannot be
told is written as a line to fill in, never as a guess that would pass silently.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import orjson

from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import Document, Point
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.trial.document_paths import scalar_paths, written
from headrace.streams.core.trial.sniff import Sniffed, best_preset, sniff, whole_points

_ENGINE_LABELS: Final = (
    "engine_id",
    "service.instance.id",
    "instance",
    "k8s.pod.name",
    "pod",
    "engine",
    "worker_id",
    "host",
    "server",
)
_MODEL_LABELS: Final = ("model_name", "model", "gen_ai.response.model", "gen_ai.request.model", "model_id")
_CLUSTER_LABELS: Final = ("cluster", "k8s.cluster.name", "region", "cloud.region")
_CLASS_LABELS: Final = ("request_class", "tenant_class", "class", "priority")
_TIMES: Final = ("time", "ts", "timestamp", "@timestamp", "event_time", "window_end", "end")
_STARTS: Final = ("window_start", "period_start", "start_time", "start")
_VANTAGE: Final = (
    "vantage: ENGINE  # please check: where were these measured?",
    "# GATEWAY or CLIENT where they include the network: such are kept apart, and make no state of an engine valid.",
)
_DOCUMENT_FIELDS: Final = (
    ("ttft", re.compile(r"(ttft|time_to_first_token|first_token)(_latency)?(_(?P<unit>ms|us|ns|s|seconds))?")),
    ("tbot", re.compile(r"(tpot|tbot|itl|time_per_output_token|inter_token_latency)(_(?P<unit>ms|us|ns|s|seconds))?")),
    ("e2e", re.compile(r"(e2e|e2e_latency|latency|duration|total_time)(_(?P<unit>ms|us|ns|s|seconds))?")),
    ("queue", re.compile(r"(queue|queue_time|queued|wait_time)(_(?P<unit>ms|us|ns|s|seconds))?")),
    ("running", re.compile(r"(num_)?(requests_)?running(_requests)?")),
    ("waiting", re.compile(r"(num_)?(requests_)?(waiting|queued)(_requests)?")),
    ("kv_usage", re.compile(r"(kv_usage|kv_cache_usage|kv_cache_usage_perc)")),
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A mapping file's text, and what was found: its carrier, and how many of the records that carrier reads."""

    text: str
    carrier: str
    preset: str | None
    usable: int
    messages: int


def propose(records: Sequence[RawRecord]) -> Proposal | None:
    """Give a proposal; None where no carrier reads even one of the records."""
    found = sniff(records)
    if found is None:
        return None
    documents = [document for each in found.decoded for document in each.documents]
    if any(each.signals for each in found.decoded):
        lines = ["# These are headrace's own signals: they need no mapping, only their topic.", "carrier: avro"]
        return _proposal(lines, found, None, len(records))
    if documents:
        return _proposal(_for_documents(found.carrier, documents), found, None, len(records))
    points = whole_points(found.decoded)
    preset = best_preset(points)
    return _proposal(_for_points(found.carrier, points, preset), found, preset, len(records))


def _proposal(lines: list[str], found: Sniffed, preset: str | None, messages: int) -> Proposal:
    return Proposal("\n".join(lines) + "\n", found.carrier, preset, found.usable, messages)


def _for_points(carrier: str, points: Sequence[Point], preset: str | None) -> list[str]:
    labels = _values_by_label(points)
    lines = [f"carrier: {carrier}"]
    if preset is None:
        lines += ["# No preset knows these names; the fields are to be filled in.", "vantage: ENGINE"]
    else:
        lines.append(f"preset: {preset}")
    lines += _identity(labels, preset)
    if preset is None:
        lines += _fields(points)
    lines += ["# labels seen, and how many values each has:"]
    lines += [f"#   {name}: {_shown(values)}" for name, values in sorted(labels.items())]
    return lines


def _identity(labels: Mapping[str, set[str]], preset: str | None) -> list[str]:
    lines = ["identity:"]
    known = {} if preset is None else dict(load_preset(preset).identities)
    for name, candidates in (("engine", _ENGINE_LABELS), ("model", _MODEL_LABELS), ("cluster", _CLUSTER_LABELS)):
        rule = known.get(name)
        if rule is not None and any(all(part in labels for part in t.parts[1::2]) for t in rule.templates):
            continue
        fitting = [label for label in candidates if label in labels]
        if fitting:
            lines.append(f'  {name}: ["{{{fitting[0]}}}"]  # {_shown(labels[fitting[0]])}')
        elif name != "cluster":
            lines.append(f'  {name}: ["<FILL IN>"]  # no label tells it: a text, {{@key}} or {{@header.NAME}}')
    if len(lines) == 1:
        return []
    return lines


def _fields(points: Sequence[Point]) -> list[str]:
    lines = ["fields:"]
    histograms = sorted({point.name for point in points if point.histogram is not None})
    for name, word in (("ttft", "first"), ("tbot", "per_output"), ("tbot", "inter_token"), ("e2e", "e2e")):
        fitting = [each for each in histograms if word in each.lower()]
        if fitting and not any(line.startswith(f"  {name}:") for line in lines):
            unit = "ms" if fitting[0].endswith(("_ms", "_milliseconds")) else "s"
            lines.append(f"  {name}: {{names: [{{name: {_quoted(fitting[0])}, unit: {unit}}}]}}  # unit: please check")
    if len(lines) == 1:
        lines.append('  ttft: {names: ["<FILL IN>"]}')
    lines += [f"# histogram here: {name}" for name in histograms]
    return lines


def _for_documents(carrier: str, documents: Sequence[Document]) -> list[str]:
    paths = scalar_paths(documents)
    lines = [f"carrier: {carrier}", *_VANTAGE]
    labels: list[tuple[str, str]] = []
    candidates = (
        ("engine", _ENGINE_LABELS),
        ("model", _MODEL_LABELS),
        ("cluster", _CLUSTER_LABELS),
        ("class", _CLASS_LABELS),
    )
    for name, known in candidates:
        fitting = next((label for label in known if label in paths), None)
        if fitting is not None:
            labels.append((name, fitting))
    time = next((name for name in _TIMES if name in paths), None)
    lines += ["document:"]
    lines += [f"  time: {_quoted(written(time))}"] if time is not None else ["  # time: none found; the message's own"]
    start = next((name for name in _STARTS if name in paths), None)
    lines += [f"  start: {_quoted(written(start))}"] if start is not None else []
    lines += ["  labels:", *(f"    {name}: {_quoted(written(path))}" for name, path in labels)] if labels else []
    lines += ["identity:"]
    found = [name for name, _ in labels]
    lines += [f'  {name}: ["{{{name}}}"]' for name in found]
    lines += [f'  {name}: ["<FILL IN>"]  # nothing here tells it' for name in ("engine", "model") if name not in found]
    fields = _document_fields(documents, paths)
    lines += ["fields:", *(fields or ['  ttft: {path: "<FILL IN>", unit: ms}'])]
    if not any("histogram" in line for line in fields):
        lines += ["  # arrivals: {each: 1}  # where one document is one request, this counts demand"]
    return lines


def _document_fields(documents: Sequence[Document], paths: Mapping[str, list[Any]]) -> list[str]:
    lines: list[str] = []
    for name, pattern in _DOCUMENT_FIELDS:
        for path in paths:
            match = pattern.fullmatch(path.rpartition(".")[2].lower())
            if match is None or any(line.startswith(f"  {name}:") for line in lines):
                continue
            unit = match.groupdict().get("unit")
            spelled = f", unit: {unit.replace('seconds', 's')}" if unit else ""
            doubt = "" if unit or name in ("running", "waiting", "kv_usage") else "  # unit: please check"
            lines.append(f"  {name}: {{path: {_quoted(written(path))}{spelled}}}{doubt}")
    for name in ("ttft", "tbot", "e2e", "queue"):
        body: object = documents[0].body.get(name)
        if isinstance(body, dict) and not any(line.startswith(f"  {name}:") for line in lines):
            lines += _document_histogram(name, cast("dict[str, Any]", body))
    return lines


def _document_histogram(name: str, body: Mapping[str, Any]) -> list[str]:
    total = next((key for key in ("sum_s", "sum", "total") if key in body), None)
    if "count" not in body or total is None:
        return []
    parts = [f"count: {name}.count", f"sum: {name}.{total}"]
    explicit: object = body.get("explicit")
    if isinstance(explicit, dict) and "counts" in explicit:
        bounds = next((key for key in ("bounds_s", "bounds") if key in explicit), None)
        if bounds is not None:
            parts += [f"bounds: {name}.explicit.{bounds}", f"counts: {name}.explicit.counts"]
    return [f"  {name}: {{histogram: {{{', '.join(parts)}}}, unit: s}}"]


def _values_by_label(points: Sequence[Point]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for point in points:
        for name, value in point.labels:
            found.setdefault(name, set()).add(value)
    return found


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def _shown(values: set[str]) -> str:
    some = sorted(values)
    return f"{len(some)} value{'s' if len(some) != 1 else ''}, such as {_quoted(some[0][:60])}"
