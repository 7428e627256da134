"""A comparison's document as lines for a terminal: the table of variants with intervals, then the verdict."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.replay.report.legend import legend_lines

_LATENCIES = (("mean_ms", "mean ms"), ("p95_ms", "p95 ms"), ("p99_ms", "p99 ms"))
_MOVEMENT = (
    ("moved_percent_a_minute", "moved %/min"),
    ("reversals_a_minute", "reversals/min"),
    ("cold_percent", "kv lost %"),
)
SCORED = (
    *_LATENCIES,
    ("refused_percent", "refused %"),
    ("shed_percent", "shed %"),
    *_MOVEMENT,
    ("overload_s", "overload s"),
    ("imbalance", "max/avg"),
)
MET = (
    *((f"met_{name}", label) for name, label in _LATENCIES),
    ("met_failed_percent", "failed %"),
    ("met_shed_percent", "shed %"),
    *_MOVEMENT,
)
"""Of a simulation: what its users met stands for what profiles score."""
_MARK = {"BETTER": "+", "WORSE": "-"}
WIDE = 15


def table_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Give the table: each variant's numbers, and below them their 95 % intervals where there are any."""
    variants: Sequence[Mapping[str, Any]] = document["variants"]
    met = "met_mean_ms" in variants[0]["numbers"]
    columns = MET if met else SCORED
    width = max(7, *(len(variant["name"]) for variant in variants))
    yield _told_by(document, columns, met=met)
    yield f"{'variant':<{width}}" + "".join(f"{label + ' ':>{WIDE}}" for _, label in columns)
    for variant in variants:
        numbers = [variant["numbers"][name] for name, _ in columns]
        yield f"{variant['name']:<{width}}" + "".join(f"{_cell(number):>{WIDE}}" for number in numbers)
        if any(number["low"] is not None for number in numbers):
            yield " " * width + "".join(f"{_interval(number):>{WIDE}}" for number in numbers)


def verdict_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Give the three sentences, and what must be known before they are believed."""
    yield from document["verdict"]
    yield from document.get("cautions", ())  # an older build wrote none


def report_lines(document: Mapping[str, Any], page: Path) -> Iterator[str]:
    """Give all that a command prints of a comparison."""
    yield from table_lines(document)
    for part in (legend_lines(document), verdict_lines(document)):
        lines = list(part)
        yield from ("", *lines) if lines else ()
    if not document["complete"]:
        yield "Stopped before the end: the numbers are of what was played until then."
    yield from ("", f"report: {page}")


def _told_by(document: Mapping[str, Any], columns: Sequence[tuple[str, str]], *, met: bool) -> str:
    """Say what the numbers are told by, and what the marks mean."""
    by = "latencies, failed and shed as simulated users met them" if met else "scored by load profiles"
    numbers = [variant["numbers"][name] for variant in document["variants"] for name, _ in columns]
    if all(number["low"] is None for number in numbers):
        return f"{by}; the run is too short for 95 % intervals"
    if len(document["variants"]) == 1:
        return f"{by}; below each number its 95 % interval"
    return f"{by}; below each number its 95 % interval; + better, - worse than {document['recorded']} beyond chance"


def _cell(number: Mapping[str, Any]) -> str:
    return "- " if number["value"] is None else _shown(number["value"]) + _MARK.get(number["word"], " ")


def _interval(number: Mapping[str, Any]) -> str:
    return "" if number["low"] is None else f"{_shown(number['low'])}..{_shown(number['high'])} "


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
