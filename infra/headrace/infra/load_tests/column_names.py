"""What load tests call their columns -> the names of the forms.

    TTFT (ms), ttft-ms, Mean TTFT (ms)  ->  ttft_ms          case, blanks and marks do not count, and a mean is a mean
    max_concurrency                     ->  concurrency
    osl, output_len                     ->  osl with a tpot and no offered rate, else output_tokens
    curve_id                            ->  likewise: curve_id, or curve

A column that has its own name keeps it, and none is renamed where another has that name already.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from headrace.infra.load_tests.csv_table import CsvRow, CsvTable

_TIMES: Mapping[str, tuple[str, ...]] = {
    "ttft": ("mean_ttft", "avg_ttft", "time_to_first_token"),
    "tpot": ("mean_tpot", "avg_tpot", "time_per_output_token", "inter_token_latency", "avg_inter_token_latency"),
    "e2e": (
        "mean_e2e",
        "avg_e2e",
        "mean_e2el",
        "e2e_latency",
        "mean_e2e_latency",
        "end_to_end_latency",
        "request_latency",
    ),
}
_LENGTHS = ("osl", "output_tokens", "output_len", "output_length", "output_sequence_length")
_OTHERS: Mapping[str, tuple[str, ...]] = {
    "concurrency": ("max_concurrency", "concurrent_requests", "concurrent_users"),
    "offered_rps": ("request_rate",),
    "completed_rps": ("request_throughput",),
}
_OFFERED = frozenset({"offered_rps", *_OTHERS["offered_rps"]})


def named(table: CsvTable) -> CsvTable:
    """Give the table with its columns under the forms' names, as far as they are known."""
    plain = _each_once(table.columns, [_plain(column) for column in table.columns])
    lengths = "osl" if _has_tpot(plain) and not _OFFERED.intersection(plain) else "output_tokens"
    known = dict.fromkeys(_LENGTHS, lengths)
    known |= {old: new for new, olds in _OTHERS.items() for old in olds}
    known |= {f"{old}_{u}": f"{new}_{u}" for new, olds in _TIMES.items() for old in olds for u in ("ms", "s")}
    known |= {"curve": "curve_id"} if lengths == "osl" else {"curve_id": "curve"}
    final = _each_once(plain, [known.get(name, name) for name in plain])
    if final == table.columns:
        return table
    rows = (CsvRow(row.line, dict(zip(final, row.cells.values(), strict=True))) for row in table.rows)
    called = dict(zip(final, table.columns, strict=True))
    return replace(table, columns=final, rows=tuple(rows), called=called)


def _plain(column: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_") or column


def _has_tpot(names: tuple[str, ...]) -> bool:
    tpots = ("tpot", *_TIMES["tpot"])
    return "ttft_mean_ms" not in names and any(f"{t}_{unit}" in names for t in tpots for unit in ("ms", "s"))


def _each_once(before: tuple[str, ...], after: list[str]) -> tuple[str, ...]:
    """Rename only where the new name is nobody else's, before or after."""
    return tuple(
        new if new == old or (after.count(new) == 1 and new not in before) else old
        for old, new in zip(before, after, strict=True)
    )
