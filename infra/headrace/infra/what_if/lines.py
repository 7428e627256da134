"""What an edit would come to, for people: two tables and the means."""

from collections.abc import Iterator, Sequence

from headrace.infra.what_if.answer import Totals, WhatIf
from headrace.schemas.weights import PPM

LOOK_FROM_PPM = 500
"""Shares that change by less are counted, not told."""
MAX_ROWS = 40


def what_if_lines(found: WhatIf) -> tuple[str, ...]:
    """Give the lines."""
    return tuple(_lines(found))


def _lines(found: WhatIf) -> Iterator[str]:
    yield f"what if {'; '.join(found.edits)}; against version {found.version}. Nothing is changed by asking."
    yield ""
    moved = [s for s in found.shares if abs(s.after_ppm - s.before_ppm) >= LOOK_FROM_PPM]
    rows = [
        (s.route, s.engine_id, _percent(s.before_ppm), _percent(s.after_ppm), f"{s.after_rps - s.before_rps:+.1f}")
        for s in moved[:MAX_ROWS]
    ]
    yield from _table(("route", "engine", "before", "after", "RPS"), rows, left=2)
    yield from _rest(len(moved) - MAX_ROWS, "shares")
    yield f"{len(found.shares) - len(moved)} of {len(found.shares)} shares stay" if moved else "no weight changes"
    yield ""
    loads = [
        (
            e.engine_id,
            f"{e.before_load_rps:.1f}/{e.before_capacity_rps:.1f}",
            f"{e.after_load_rps:.1f}/{e.after_capacity_rps:.1f}",
            _load(e.before_load_rps, e.before_capacity_rps),
            _load(e.after_load_rps, e.after_capacity_rps),
        )
        for e in found.engines
        if abs(e.after_load_rps - e.before_load_rps) > 0.05 or e.after_capacity_rps != e.before_capacity_rps
    ]
    yield from _table(("engine", "RPS before", "after", "load", "after"), loads[:MAX_ROWS], left=1)
    yield from _rest(len(loads) - MAX_ROWS, "engines")
    if loads:
        yield ""
    yield f"before  {_words(found.before)}"
    yield f"after   {_words(found.after)}"
    ticks = f"{found.ticks} tick{'' if found.ticks == 1 else 's'}"
    settled = f"settled after {ticks}" if found.settled else f"still moving after {ticks}"
    yield f"{found.moved_rps:.1f} RPS go elsewhere; {settled}: {found.sentence}"
    if not found.inputs_proved:
        yield "its inputs are not proved to be those that the version was made from"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    if not rows:
        return
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    for row in (heads, *rows):
        cells = [
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _rest(number: int, what: str) -> Iterator[str]:
    if number > 0:
        yield f"and {number} more {what} (--json has all)"


def _words(totals: Totals) -> str:
    over = f", {totals.overloaded_rps:.1f} RPS above capacity" if totals.overloaded_rps > 0.05 else ""
    return (
        f"mean {totals.mean_ms:.1f} ms = {totals.network_ms:.1f} network + {totals.engine_ms:.1f} engine; "
        f"{totals.demand_rps:.1f} RPS asked, {totals.capacity_rps:.1f} capacity, {totals.shed_rps:.1f} shed{over}"
    )


def _percent(ppm: int) -> str:
    return f"{100 * ppm / PPM:.1f} %"


def _load(load: float, capacity: float) -> str:
    return f"{100 * load / capacity:.0f} %" if capacity > 0.0 else "-"
