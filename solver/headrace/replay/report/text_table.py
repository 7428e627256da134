"""A comparison's document as lines for a terminal: the table of variants, then the verdict."""

from collections.abc import Iterator, Mapping
from typing import Any

COLUMNS = (
    ("mean_ms", "mean ms"),
    ("p95_ms", "p95 ms"),
    ("p99_ms", "p99 ms"),
    ("ttft_p95_ms", "ttft p95"),
    ("unserved_percent", "unserved %"),
    ("overload_s", "overload s"),
    ("moved_percent_a_minute", "moved %/min"),
    ("reversals_a_minute", "reversals"),
    ("cold_percent", "kv lost %"),
    ("imbalance", "max/avg"),
)
_MARK = {"BETTER": "+", "WORSE": "-"}


def table_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Give the table; `+` and `-` mark what is better and worse than the first variant beyond chance."""
    names = [variant["name"] for variant in document["variants"]]
    width = max(7, *map(len, names))
    yield f"{'variant':<{width}}" + "".join(f"{label:>13}" for _, label in COLUMNS)
    for variant in document["variants"]:
        cells = (_cell(variant["numbers"][name]) for name, _ in COLUMNS)
        yield f"{variant['name']:<{width}}" + "".join(f"{cell:>13}" for cell in cells)


def verdict_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Give the three sentences, and what must be known before they are believed."""
    yield from document["verdict"]
    yield from document.get("cautions", ())  # an older build wrote none


def _cell(number: Mapping[str, Any]) -> str:
    value = number["value"]
    if value is None:
        return "- "
    shown = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return shown + _MARK.get(number["word"], " ")
