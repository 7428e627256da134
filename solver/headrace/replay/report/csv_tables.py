"""A comparison's document as CSV: one row per variant and number, and one per variant and bin of time."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]
NUMBER_COLUMNS = (
    "variant",
    "number",
    "unit",
    "value",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "word",
)
SERIES_COLUMNS = ("variant", "at_ms", "bin_s", "offered_rps", "mean_ms", "unserved_percent", "moved_percent")


def numbers_csv(document: Document) -> str:
    """Give every number of every variant; an empty cell is "not known"."""
    rows = (
        [variant["name"], name, number["unit"], *(number[column] for column in NUMBER_COLUMNS[3:])]
        for variant in document["variants"]
        for name, number in variant["numbers"].items()
    )
    return _csv(NUMBER_COLUMNS, rows)


def series_csv(document: Document) -> str:
    """Give each variant over time, with the load of each engine that is drawn in a column of its own."""
    engines = sorted({engine for variant in document["variants"] for engine in variant["series"]["load"]})
    return _csv((*SERIES_COLUMNS, *(f"load {engine}" for engine in engines)), _series_rows(document, engines))


def _series_rows(document: Document, engines: Sequence[str]) -> Iterable[list[object]]:
    for variant in document["variants"]:
        series = variant["series"]
        for i, at_ms in enumerate(series["at_ms"]):
            told = [series[column][i] for column in SERIES_COLUMNS[3:]]
            loads = [series["load"][engine][i] if engine in series["load"] else None for engine in engines]
            yield [variant["name"], at_ms, series["bin_s"], *told, *loads]


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()
